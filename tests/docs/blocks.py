"""What stands between fences on a page, and how each kind of it is tried."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = ROOT / "docs" / "pages"
FENCE = re.compile(r"^( *)```(\w+)?(?: title=\"([^\"]*)\")?\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
PRINTS, NEEDS = "prints", "needs "


@dataclass(frozen=True)
class Block:
    """One fenced block: its `language`, its `title`, its `text`, and where it stands as `page:line`."""

    language: str
    title: str
    text: str
    place: str

    @property
    def is_output(self) -> bool:
        """Whether it is what the block before it prints."""
        return self.title == PRINTS

    @property
    def is_only_read(self) -> bool:
        """Whether it needs what a test has not."""
        return self.title.startswith(NEEDS)

    @property
    def is_file(self) -> bool:
        """Whether it is a file with that title for a name."""
        return bool(self.title) and not self.is_output and not self.is_only_read

    @property
    def commands(self) -> list[str]:
        """The lines of a shell, with those put together that a backslash divides."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in their order."""
    text = page.read_text()
    return [
        Block(found[2] or "", found[3] or "", found[4], f"{page.name}:{text.count(chr(10), 0, found.start()) + 1}")
        for found in FENCE.finditer(text)
    ]


def pattern(text: str) -> re.Pattern:
    """What an output must hold: the lines in their order, `...` for anything, blanks and frames aside."""
    pieces = [" ".join(piece.split()) for line in text.splitlines() for piece in line.split("...")]
    return re.compile(".*?".join(re.escape(piece) for piece in pieces if piece), re.DOTALL)


def flattened(text: str) -> str:
    """An output with single blanks, without the frames of tables."""
    return " ".join(re.sub("[\u2500-\u257f]", " ", text).split())

"""Numbers of README.md and of the page on fusion: each is tied to the claim, the record or the test that it is from.

Numbers are those with a unit or an `x` in the prose. Fenced blocks are run by the tests, and the README's part about a
record is what a command prints about it; neither is read here.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docs.readme import BEGIN, END, ROOT

PAGES = ("README.md", "docs/pages/guides/fusion.md")
TIES = Path(__file__).with_name("numbers.toml")
_GENERATED = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
_FENCED = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
_UNITS = r"%|[kMGT]?B(?:/s)?\b|[GT]?FLOP/s|[mun]?s\b|µs|seconds\b|times\b(?= (?:as|faster))"
_NUMBER = re.compile(rf"(?<![\w.])\d[\d,.]*(?:x\b|\s?(?:{_UNITS}))")


@dataclass(frozen=True)
class NumberTie:
    """A number of a page as it is printed, and the file that it comes from."""

    page: str
    text: str
    source: str


def ties() -> tuple[NumberTie, ...]:
    """Return the ties of all pages."""
    return tuple(NumberTie(**one) for one in tomllib.loads(TIES.read_text("utf-8"))["number"])


def numbers(page: str, root: Path = ROOT) -> list[str]:
    """Return the numbers of a page's prose, in their order."""
    text = _FENCED.sub("", _GENERATED.sub("", (root / page).read_text("utf-8")))
    return [found[0].rstrip(".,") for found in _NUMBER.finditer(text)]


def faults(known: tuple[NumberTie, ...], root: Path = ROOT) -> Iterator[str]:
    """Yield what is wrong: a number without a tie, a tie without its number, a source that is not there."""
    for page in PAGES:
        printed, tied = numbers(page, root), [one.text for one in known if one.page == page]
        yield from (
            f"{page}: {text} is tied to nothing: name its source in {TIES.name}" for text in printed if text not in tied
        )
        yield from (f"{TIES.name}: {text} is not on {page}" for text in tied if text not in printed)
    for one in known:
        if one.page not in PAGES:
            yield f"{TIES.name}: {one.page} is none of {', '.join(PAGES)}"
        if not (root / one.source).is_file():
            yield f"{TIES.name}: {one.text} comes from {one.source}, which is not there"

"""Pieces of Markdown."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; nothing where there are no rows."""
    lines = [_row(row) for row in rows]
    return "\n".join([_row(head), _row(["---"] * len(head)), *lines]) if lines else ""


def _row(cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def code(text: object) -> str:
    """As it is written in a program."""
    return f"`{text}`" if str(text) else ""


def joined(parts: Iterable[str]) -> str:
    """Paragraphs with a blank line between them; what is empty is left out."""
    return "\n\n".join(part for part in parts if part) + "\n"


def plain(text: str) -> str:
    """Words of the program's as prose, in which nothing is markup."""
    for character in "\\`*_{}[]#":
        text = text.replace(character, f"\\{character}")
    return text.replace("<", "&lt;").replace(">", "&gt;")


def prose(text: str) -> str:
    """Words of the program's in which what stands between backticks is code, and nothing else is markup."""
    pieces = text.split("`")
    return "`".join(piece if place % 2 else plain(piece) for place, piece in enumerate(pieces))

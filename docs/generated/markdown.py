"""Pieces of Markdown."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; nothing where there are no rows."""
    lines = [_row(row) for row in rows]
    return "\n".join([_row(head), _row(["---"] * len(head)), *lines]) if lines else ""


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def code(text: object) -> str:
    """Return text as it is written in a program, between backticks."""
    return f"`{text}`" if str(text) else ""


def joined(parts: Iterable[str]) -> str:
    """Return paragraphs with a blank line between them; empty ones are left out."""
    return "\n\n".join(part for part in parts if part) + "\n"


def plain(text: str) -> str:
    """Return text of the program as prose, in which nothing is markup."""
    for character in "\\`*_{}[]#":
        text = text.replace(character, f"\\{character}")
    return text.replace("<", "&lt;").replace(">", "&gt;")


def prose(text: str) -> str:
    """Return text of the program in which only backticks are markup."""
    pieces = text.split("`")
    return "`".join(piece if place % 2 else plain(piece) for place, piece in enumerate(pieces))

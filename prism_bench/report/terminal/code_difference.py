"""A difference of machine code in the terminal: what changed of each entry, and where the code first differs."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from prism_bench.report.code_difference import EntryDifferenceJson, FirstDifferenceJson, changes_of

_SAME_NUMBERS = "the same counts, registers, spills and shared memory; other operands or another order"


def code_difference_view(entries: Sequence[EntryDifferenceJson], note: str | None = None) -> RenderableType:
    """Return two lines an entry and a few lines of its code; `note` is why instructions are not listed."""
    parts: list[RenderableType] = [line for one in entries for line in _entry(one)]
    parts += [Text(note, style="yellow")] if note and entries else []
    return Padding(Group(*parts), (0, 0, 0, 2), expand=False)


def _entry(one: EntryDifferenceJson) -> list[RenderableType]:
    head = Text(f"{one['entry']}: ", style="bold")
    head.append(one["state"] if one["state"] != "changed" else "", style="yellow")
    head.append("; " if one["state"] != "changed" else "", style="not bold")
    head.append(", ".join(changes_of(one)) or _SAME_NUMBERS, style="not bold")
    return [head, *(_first(one["first_difference"]) if one["first_difference"] else ())]


def _first(found: FirstDifferenceJson) -> list[RenderableType]:
    lines = [Text(f"first difference, in block {found['block']}:", style="dim")]
    lines += [Text(f"{sign} {line}", style=style) for sign, line, style in _marked(found)]
    return [Padding(Group(*lines), (0, 0, 0, 2), expand=False)]


def _marked(found: FirstDifferenceJson) -> list[tuple[str, str, str]]:
    """Return the lines of both sides with their sign and style; those that begin both are shown once."""
    before, after = found["before"], found["after"]
    pairs = enumerate(zip(before, after, strict=False))
    shared = next((number for number, (was, now) in pairs if was != now), min(len(before), len(after)))
    return [
        *((" ", line, "dim") for line in before[:shared]),
        *(("-", line, "red") for line in before[shared:]),
        *(("+", line, "green") for line in after[shared:]),
    ]

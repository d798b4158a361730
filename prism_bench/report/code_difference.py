"""A difference of machine code as plain values: for JSON, comments on pull requests, and pages."""

from collections.abc import Iterable, Sequence
from typing import Literal, TypedDict

from prism_bench.compilation.code_difference import EntryDifference

BeforeAfter = list[int | None]  # two numbers; null on a side without the entry, or where it is not known


class FirstDifferenceJson(TypedDict):
    """The first block that differs: its number from 0, and a few lines of it on each side."""

    block: int
    before: list[str]
    after: list[str]


class EntryDifferenceJson(TypedDict):
    """One entry. Each number is [before, after]; bytes are per thread, shared memory per block.

    `kinds` is empty and `instructions` and `code_bytes` are null where no disassembler is installed.
    """

    entry: str
    state: Literal["changed", "added", "removed"]
    registers: BeforeAfter
    spill_bytes: BeforeAfter
    stack_bytes: BeforeAfter
    shared_bytes: BeforeAfter
    code_bytes: BeforeAfter
    instructions: BeforeAfter
    kinds: dict[str, list[int]]
    first_difference: FirstDifferenceJson | None


def code_difference_json(entries: Iterable[EntryDifference]) -> list[EntryDifferenceJson]:
    """Return the differences of all entries as plain JSON values."""
    return [_entry(one) for one in entries]


def _entry(one: EntryDifference) -> EntryDifferenceJson:
    sides = one.before, one.after
    first = one.first
    return {
        "entry": one.entry,
        "state": "added" if one.before is None else "removed" if one.after is None else "changed",
        "registers": [side.resources.registers if side else None for side in sides],
        "spill_bytes": [side.spill_bytes if side else None for side in sides],
        "stack_bytes": [side.resources.stack_bytes if side else None for side in sides],
        "shared_bytes": [side.resources.shared_bytes if side else None for side in sides],
        "code_bytes": [side.code_bytes if side else None for side in sides],
        "instructions": [side.instructions if side else None for side in sides],
        "kinds": {kind: list(counts) for kind, counts in one.kinds.items()},
        "first_difference": first and {"block": first.number, "before": [*first.before], "after": [*first.after]},
    }


_FACTS = ("registers", "spill_bytes", "stack_bytes", "shared_bytes", "code_bytes", "instructions")


def changes_of(one: EntryDifferenceJson) -> list[str]:
    """Return in words every number of the entry that changed: `registers 32 -> 40`, `fp32 12 -> 14 (+2)`."""
    facts: list[tuple[str, Sequence[int | None]]] = [(name.replace("_", " "), one[name]) for name in _FACTS]
    words = [_change(name, *pair) for name, pair in facts if pair[0] != pair[1]]
    return words + [_change(kind, *pair) for kind, pair in one["kinds"].items() if pair[0] != pair[1]]


def _change(name: str, before: int | None, after: int | None) -> str:
    if before is None or after is None:
        return f"{name} {after if before is None else before}"
    return f"{name} {before} -> {after} ({after - before:+d})"

"""Difference of machine code: instructions by kind, registers, spills, shared memory, size, and the first other block.

Counts are of instructions in the code, not of instructions that run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from prism_bench.compilation.code import Resources
from prism_bench.compilation.instruction_kinds import KINDS, Kind
from prism_bench.compilation.listing import CodeBlock, FunctionListing

SHOWN = 6  # lines of a block on each side
CONTEXT = 1  # lines before the first one that differs


@dataclass(frozen=True)
class CodeFacts:
    """One entry of compiled code: its resources, and its listing where there is a disassembler."""

    resources: Resources
    listing: FunctionListing | None = None


@dataclass(frozen=True)
class EntryFacts:
    """Numbers of one entry: its resources, and the bytes and the number of its instructions; None if not listed."""

    resources: Resources
    code_bytes: int | None = None
    instructions: int | None = None

    @property
    def spill_bytes(self) -> int:
        """Spilled bytes per thread, stores and loads."""
        return self.resources.spill_stores + self.resources.spill_loads


@dataclass(frozen=True)
class BlockDifference:
    """The first block that differs: its `number` from 0, and a few lines of it `before` and `after`."""

    number: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class EntryDifference:
    """One entry on both sides; None on the side that does not have it.

    `kinds` has for each kind of instruction that occurs the counts before and after; it is empty, and `first` None,
    where a side has no listing. `first` is None too where the blocks are the same.
    """

    entry: str
    before: EntryFacts | None
    after: EntryFacts | None
    kinds: Mapping[Kind, tuple[int, int]]
    first: BlockDifference | None

    @property
    def is_listed(self) -> bool:
        """Whether every side that has the entry has its listing."""
        return all(side.code_bytes is not None for side in (self.before, self.after) if side)

    @property
    def spills_grew(self) -> bool:
        """Whether the entry spills more bytes than before, or any where it is new."""
        was, now = (side.spill_bytes if side else 0 for side in (self.before, self.after))
        return now > was


def differences(before: Mapping[str, CodeFacts], after: Mapping[str, CodeFacts]) -> tuple[EntryDifference, ...]:
    """Return the entries whose code or resources differ, those of `after` first, and those that only one side has."""
    names = [*after, *(name for name in before if name not in after)]
    found = (entry_difference(name, before.get(name), after.get(name)) for name in names)
    return tuple(one for one in found if _differs(one))


def entry_difference(entry: str, before: CodeFacts | None, after: CodeFacts | None) -> EntryDifference:
    """Return the difference of one entry, which may be none at all."""
    was, now = (side.listing if side else None for side in (before, after))
    facts = _numbers(before), _numbers(after)
    if (before and not was) or (after and not now):
        return EntryDifference(entry, *facts, {}, None)
    counts: list[Mapping[Kind, int]] = [listing.kinds if listing else {} for listing in (was, now)]
    kinds: dict[Kind, tuple[int, int]] = {}
    for kind in KINDS:
        if any(kind in one for one in counts):
            kinds[kind] = counts[0].get(kind, 0), counts[1].get(kind, 0)
    first = first_difference(was.blocks, now.blocks) if was and now else None
    return EntryDifference(entry, *facts, kinds, first)


def _numbers(side: CodeFacts | None) -> EntryFacts | None:
    if side is None or side.listing is None:
        return EntryFacts(side.resources) if side else None
    return EntryFacts(side.resources, side.listing.code_bytes, len(side.listing.instructions))


def first_difference(before: Sequence[CodeBlock], after: Sequence[CodeBlock]) -> BlockDifference | None:
    """Return the first block that differs between two functions; None where all are the same."""
    for number, (was, now) in enumerate(zip_longest(before, after, fillvalue=CodeBlock(()))):
        if was.comparable != now.comparable:
            start = max(0, _shared(was.comparable, now.comparable) - CONTEXT)
            return BlockDifference(number, _shown(was, start), _shown(now, start))
    return None


def _shared(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many instructions are the same from the beginning on."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((number for number, (was, now) in pairs if was != now), min(len(before), len(after)))


def _shown(block: CodeBlock, start: int) -> tuple[str, ...]:
    return block.instructions[start : start + SHOWN]


def _differs(one: EntryDifference) -> bool:
    if one.before is None or one.after is None or not one.is_listed:
        return True
    return one.before.resources != one.after.resources or one.first is not None

"""Machine code of a case next to that of an earlier run: records, and instructions where both exist."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from prism_bench.compilation.code_difference import EntryDifference
from prism_bench.compilation.disassembly import CompiledEntry, code_differences
from prism_bench.compilation.kept_code import kept_entries
from prism_bench.record.run_record import CaseResult

_FACTS = ("registers", "spill_bytes", "shared_bytes", "launches")
_LAUNCH = ("configuration", "plan")
NOT_KEPT = "instructions are not compared: the compiler's cache here does not hold the machine code of {sides}"

CodeOf = Callable[[CaseResult], Mapping[str, CompiledEntry]]


@dataclass(frozen=True)
class CodeAgainst:
    """Machine code against an earlier run, called `before`.

    `state` is `unknown` where a record knows no machine code. `facts` are the numbers that differ, before and after;
    `relaunched` is whether the launches differ. `entries` are the differences of instructions, `note` why they are
    missing, or in what else the code differs.
    """

    before: str
    state: Literal["same", "changed", "unknown"]
    facts: Mapping[str, tuple[int | None, int | None]]
    relaunched: bool = False
    entries: tuple[EntryDifference, ...] = ()
    note: str | None = None


def kept_code(case: CaseResult) -> Mapping[str, CompiledEntry]:
    """Return the entries of the case's machine code from the compiler's cache; empty where it is not there."""
    sass, architecture = case.code.get("sass"), case.code.get("architecture")
    if not isinstance(sass, str) or not isinstance(architecture, str):
        return {}
    kept = kept_entries(case.kernel, architecture, sass)
    launched: list[str] = case.code.get("entries") or []
    return {name: kept[name] for name in launched} if kept.keys() >= set(launched) else kept


def code_against(before: CaseResult, after: CaseResult, name: str, code_of: CodeOf = kept_code) -> CodeAgainst:
    """Return how the machine code of a case changed since an earlier run called `name`."""
    pairs = {fact: (_number(before, fact), _number(after, fact)) for fact in _FACTS}
    facts = {fact: pair for fact, pair in pairs.items() if pair[0] != pair[1]}
    relaunched = any(_known(before, after, word) for word in _LAUNCH)
    was, now = before.code.get("sass"), after.code.get("sass")
    if not was or not now:
        side = "the earlier run" if now else "this run"
        return CodeAgainst(name, "unknown", facts, relaunched, note=f"the record of {side} knows no machine code")
    if was == now:
        return CodeAgainst(name, "same", facts, relaunched)
    return CodeAgainst(name, "changed", facts, relaunched, *_instructions(before, after, code_of))


def _instructions(
    before: CaseResult, after: CaseResult, code_of: CodeOf
) -> tuple[tuple[EntryDifference, ...], str | None]:
    if before.code.get("architecture") != after.code.get("architecture"):
        return (), "the runs were on different architectures"
    was, now = code_of(before), code_of(after)
    sides = [word for word, code in (("the earlier run", was), ("this run", now)) if not code]
    return ((), NOT_KEPT.format(sides=" and of ".join(sides))) if sides else code_differences(was, now)


def _number(case: CaseResult, fact: str) -> int | None:
    value = case.code.get(fact)
    return value if isinstance(value, int) else None


def _known(before: CaseResult, after: CaseResult, word: str) -> bool:
    """Return whether both cases know what the word names, and differ in it."""
    was, now = ({**case.code, "configuration": case.configuration}.get(word) for case in (before, after))
    return bool(was and now) and was != now

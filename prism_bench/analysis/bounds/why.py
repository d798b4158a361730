"""Why a case takes its time: bottleneck, counters, distance to the limits, and changes of its machine code."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from prism_bench.analysis.bounds.bottleneck import (
    BUSY,
    PARTS,
    SourceLine,
    binding,
    bound_of,
    check_bytes,
    counted_near,
    empty_duration,
    hot_lines,
    missing_limits,
    value,
)
from prism_bench.analysis.bounds.profiles import Counted
from prism_bench.analysis.peers import clock_of, peers
from prism_bench.analysis.summary import cache_bytes, limits_of
from prism_bench.compilation.listing import CompiledEntry, EntryDifference, code_differences
from prism_bench.compilation.program import kept_entries
from prism_bench.measure.plausibility import Limits, valid_median
from prism_bench.profilers.metrics import LOGICAL
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.units import bytes_text, share_text, time_text

# Machine code of a case against that of an earlier run: facts of the records, and instructions if both are kept.

_FACTS = ("registers", "spill_bytes", "shared_bytes", "launches")
_LAUNCH = ("configuration", "plan")
_NOT_KEPT = "instructions are not compared: the compiler's cache here does not hold the machine code of {sides}"

CodeOf = Callable[[CaseResult], Mapping[str, CompiledEntry]]


@dataclass(frozen=True)
class CodeAgainst:
    """Machine code against an earlier run, called `before`.

    `state` is `unknown` if a record lacks the machine code. `facts` are the numbers that differ, before and after;
    `relaunched` is whether the launches differ. `entries` are the differences of instructions, `note` is why they are
    missing, or another difference of the code.
    """

    before: str
    state: Literal["same", "changed", "unknown"]
    facts: Mapping[str, tuple[int | None, int | None]]
    relaunched: bool = False
    entries: tuple[EntryDifference, ...] = ()
    note: str | None = None


def _kept_code(case: CaseResult) -> Mapping[str, CompiledEntry]:
    """Return the entries of the case's machine code from the compiler's cache; empty if it is not kept."""
    sass, architecture = case.code.get("sass"), case.code.get("architecture")
    if not isinstance(sass, str) or not isinstance(architecture, str):
        return {}
    kept = kept_entries(case.kernel, architecture, sass)
    launched: list[str] = case.code.get("entries") or []
    return {name: kept[name] for name in launched} if kept.keys() >= set(launched) else kept


def code_against(before: CaseResult, after: CaseResult, name: str, code_of: CodeOf = _kept_code) -> CodeAgainst:
    """Return how the machine code of a case changed since an earlier run called `name`."""
    pairs = {fact: (_number(before, fact), _number(after, fact)) for fact in _FACTS}
    facts = {fact: pair for fact, pair in pairs.items() if pair[0] != pair[1]}
    launches = [{**case.code, "configuration": case.configuration} for case in (before, after)]
    relaunched = any(
        bool(was and now) and was != now for was, now in (tuple(of.get(name) for of in launches) for name in _LAUNCH)
    )
    was, now = before.code.get("sass"), after.code.get("sass")
    if not was or not now:
        side = "the earlier run" if now else "this run"
        return CodeAgainst(name, "unknown", facts, relaunched, note=f"the record of {side} knows no machine code")
    if was == now:
        return CodeAgainst(name, "same", facts, relaunched)
    if before.code.get("architecture") != after.code.get("architecture"):
        return CodeAgainst(name, "changed", facts, relaunched, note="the runs were on different architectures")
    codes = {"the earlier run": code_of(before), "this run": code_of(after)}
    sides = [side for side, code in codes.items() if not code]
    if sides:
        return CodeAgainst(name, "changed", facts, relaunched, note=_NOT_KEPT.format(sides=" and of ".join(sides)))
    return CodeAgainst(name, "changed", facts, relaunched, *code_differences(*codes.values()))


def _number(case: CaseResult, fact: str) -> int | None:
    value = case.code.get(fact)
    return value if isinstance(value, int) else None


# Why a case takes its time: bottleneck, the counters that show it, distance to the roof, and possible fixes.
#
# All follows from the record, the newest profile of its machine, and an earlier run if there is any. Missing counters
# and measurements are left out, and `notes` report them.

Basis = Literal["counters", "time", "nothing"]
COUNTERS = 3
_SLOWER_THAN_PEER = 0.97  # a peer is worth a line if it takes less than this share of the kernel's time
_WORTH = 0.98  # of the time: a fix that leaves more is not worth a line
_NEAR = 0.95  # of the roof: from this share on, reaching it is no fix
# The counters that show each bottleneck, the most important first.
SHOWN = {
    "dram": ("dram_share", "l2_hit_rate", "occupancy"),
    "l2": ("l2_share", "l2_hit_rate", "dram_share"),
    "l1": ("l1_share", "l1_hit_rate", "issue_share"),
    "fp32": ("fp32_share", "issue_share", "occupancy"),
    "tensor": ("tensor_share", "l1_share", "occupancy"),
    "sfu": ("sfu_share", "issue_share", "fp32_share"),
    "issue": ("issue_share", "fp32_share", "occupancy"),
    "latency": ("occupancy", "waves", "issue_share"),
    "launch": ("profiler_duration", "launches", "waves"),
}
_REPLACEMENTS = ("dram_share", "l2_share", "l1_share", "issue_share", "occupancy", "waves")
_RATES = ("l1_hit_rate", "l2_hit_rate")


@dataclass(frozen=True)
class WhyCounter:
    """One counter of the profile: its logical `name`, its meaning, and its value in SI units."""

    name: str
    meaning: str
    value: float
    unit: str

    @property
    def text(self) -> str:
        """The value as text: `87 %`, `1.07 GB`, `12.3 us`, `0.5`."""
        if self.unit == "s":
            return time_text(self.value)
        if self.unit == "B":
            return bytes_text(self.value)
        return share_text(self.value) if self.name.endswith(("_share", "_rate", "occupancy")) else f"{self.value:.3g}"


@dataclass(frozen=True)
class RoofDistance:
    """The limit that binds a case (`memory`, `compute`, `launch`), the `least` seconds it allows, and the cold time."""

    limit: str
    least: float
    seconds: float

    @property
    def share(self) -> float:
        """The reached share of the limit."""
        return self.least / self.seconds


@dataclass(frozen=True)
class Fix:
    """Change that would make the case faster, with the best possible cold time, None if unknown."""

    words: str
    seconds: float | None = None


@dataclass(frozen=True)
class CountedNear:
    """Counters of another workload of the same implementation, `case`, for a case without counters."""

    case: str
    label: str
    verdict: str
    counters: tuple[WhyCounter, ...]
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True)
class Why:
    """Why a case takes its time.

    `bottleneck` is one of `SHOWN` from counters, `memory`, `compute` or `launch` from only its time (`basis`), None if
    neither shows a bottleneck; `verdict` is the sentence. `seconds` is its cold time, and `counted_in` the record of
    the counters. Without counters `near` has another workload's, and `tables` what the compiler's table and the count
    of memory accesses show, each with its source.
    """

    case: str
    bottleneck: str | None
    verdict: str
    basis: Basis
    counted_in: str | None = None
    counters: tuple[WhyCounter, ...] = ()
    roof: RoofDistance | None = None
    fixes: tuple[Fix, ...] = ()
    lines: tuple[SourceLine, ...] = ()
    code: CodeAgainst | None = None
    notes: tuple[str, ...] = ()
    seconds: float | None = None
    near: CountedNear | None = None
    tables: tuple[str, ...] = ()


def why(case: CaseResult, limits: Limits, counted: Counted | None = None, code: CodeAgainst | None = None) -> Why:
    """Return why the case takes its time.

    `counted` is the case in a profile, `code` its machine code against an earlier run.
    """
    seconds, limit = valid_median(case, "cold_time"), binding(case, limits)
    roof = RoofDistance(*limit, seconds) if seconds and limit else None
    if counted is None or not counted.case.profile.get("values"):
        account = _by_time(case, roof)
        notes = (*account.notes, *_missing(case, limits), *_spill_notes(case.code))
        return replace(account, code=code, fixes=tuple(_fixes(case, limits, roof, None)), notes=notes, seconds=seconds)
    profiled = counted.case
    bound = bound_of(profiled, empty_duration(counted.record.cases))
    part = PARTS.get(bound.by) if bound.by else None
    prefix = f"bound by {part[1]}: " if part else f"{bound.by}-bound: " if bound.by else ""
    names = dict.fromkeys((*SHOWN.get(bound.by or "", ()), *_REPLACEMENTS))
    return Why(
        case.name,
        bound.by,
        f"{prefix}{bound.evidence}",
        "counters",
        counted_in=counted.file or None,
        counters=tuple(counter for name in names if (counter := _counter(profiled, name)))[:COUNTERS],
        roof=roof,
        fixes=tuple(_fixes(case, limits, roof, counted, bound.by)),
        lines=hot_lines(profiled),
        code=code,
        notes=(*_missing(case, limits), *_notes(case, counted)),
        seconds=seconds,
    )


def why_in(
    record: RunRecord, case: CaseResult, profiles: Mapping[str, Counted], before: tuple[str, CaseResult] | None = None
) -> Why:
    """Return why a case of the record takes its time.

    `profiles` has the newest profile of the machine by case; `before` is an earlier run's name and its same case.
    """
    known = {name for name, counted in profiles.items() if counted.case.profile.get("values")}
    known |= {other.name for other in record.cases if other.profile.get("values")}
    limits, code = limits_of(record), code_against(before[1], case, before[0]) if before else None
    account = why(case, limits, _counted(record, case, profiles), code)
    other = counted_near(case, record.cases, known)
    if account.basis == "counters" or other is None:
        return account
    return with_near(account, other, why(other, limits, _counted(record, other, profiles)))


def with_near(account: Why, case: CaseResult, near: Why) -> Why:
    """Return the account of an uncounted case with that of another, counted workload, `case`."""
    return replace(account, near=CountedNear(case.name, case.label, near.verdict, near.counters, near.lines))


def _counted(record: RunRecord, case: CaseResult, profiles: Mapping[str, Counted]) -> Counted | None:
    return Counted(case, record, "") if case.profile.get("values") else profiles.get(case.name)


def _by_time(case: CaseResult, roof: RoofDistance | None) -> Why:
    """Return the account of a case without counters."""
    note = f"no profiler has counted it: prism-bench profile '{case.name}'"
    if roof is None:
        reason = case.reason or "its time alone shows no bottleneck"
        return Why(case.name, None, reason.splitlines()[0], "nothing", notes=(note,))
    reached = f"{share_text(roof.share)} of the {roof.limit} limit"
    if roof.share >= BUSY:
        return Why(case.name, roof.limit, f"{roof.limit}-bound: it reaches {reached}", "time", roof=roof, notes=(note,))
    return Why(case.name, None, f"no limit is near: it reaches {reached}", "time", roof=roof, notes=(note,))


def _counter(case: CaseResult, name: str) -> WhyCounter | None:
    counted = value(case, name)
    if counted is None or (name in _RATES and counted > 1):  # with few sectors, the passes disagree
        return None
    metric = LOGICAL.get(name)
    meaning = metric.meaning if metric else "launches of one call"
    return WhyCounter(name, meaning, counted, metric.unit if metric else "1")


def _fixes(
    case: CaseResult, limits: Limits, roof: RoofDistance | None, counted: Counted | None, bottleneck: str | None = None
) -> Iterator[Fix]:
    """Yield changes that would make the case faster, the largest gain first."""
    fixes: list[Fix] = []
    if counted and roof and bottleneck == "dram":
        checked = check_bytes(counted.case, cache_bytes(counted.record.machine))
        if checked.verdict == "more" and checked.ratio:
            text = f"move only the compulsory bytes: DRAM moved {checked.words}"
            fixes.append(Fix(text, max(roof.least, roof.seconds / checked.ratio)))
    launches, overhead = case.code.get("launches"), limits.floors.get("hot_time")  # of consecutive launches
    if roof and overhead and isinstance(launches, int) and launches > 1:
        saved = (launches - 1) * overhead
        if saved < roof.seconds:
            fixes.append(Fix(f"one launch instead of {launches}", max(roof.least, roof.seconds - saved)))
    best, seconds = next(iter(peers(case)), None), valid_median(case, "cold_time")
    if best and seconds and clock_of(case) == "cold_time" and best.seconds < _SLOWER_THAN_PEER * seconds:
        fixes.append(Fix(f"do as the peer {best.name} does", best.seconds))
    if roof and roof.share < _NEAR:
        fixes.append(Fix(f"reach the {roof.limit} limit that this run measured", roof.least))
    worth = [fix for fix in fixes if not roof or not fix.seconds or fix.seconds < _WORTH * roof.seconds]
    yield from sorted(worth, key=lambda fix: fix.seconds or 0.0)


def _missing(case: CaseResult, limits: Limits) -> Iterator[str]:
    """Yield a note on missing limits, without which the distance to the roof is unknown."""
    missing = missing_limits(case, limits)
    if missing and valid_median(case, "cold_time"):
        yield f"the distance to its roof is unknown: the run measured no {' and no '.join(missing)}"


def _notes(case: CaseResult, counted: Counted) -> Iterator[str]:
    was, now = counted.case.code.get("sass"), case.code.get("sass")
    if was and now and was != now:
        yield "the counters are of other machine code than this run's"
    if now and not was and counted.file:
        commit = (counted.record.commit or "no commit")[:8]
        yield f"the profile of {commit} does not name its machine code: this run's may differ"
    yield from _spill_notes(case.code)
    if counted.case.profile.get("no_lines"):
        yield f"source lines were sampled and are not known: {counted.case.profile['no_lines']}"
    checked = check_bytes(counted.case, cache_bytes(counted.record.machine))
    if checked.verdict == "less":
        yield f"fewer DRAM bytes were counted than must move: {checked.words}"


def _spill_notes(code: Mapping[str, object]) -> Iterator[str]:
    """Yield a note if the machine code spills registers."""
    spilled = code.get("spill_bytes")
    if isinstance(spilled, int) and spilled:
        yield f"registers are spilled: {spilled} bytes a thread"

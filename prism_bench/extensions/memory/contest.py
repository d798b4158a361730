"""Allocators against CuPy's own pool: what an allocation takes, what they hold, what a program notices of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from prism_bench.analysis.compare.comparison import ComparedCase, compare
from prism_bench.extensions.memory.names import ALLOCATORS
from prism_bench.measure.limits import valid_median
from prism_bench.record.run_record import CaseResult, RunRecord

BASE = ALLOCATORS[0]
TRACES, PROGRAMS = "allocators", "pipelines"  # families of a record's cases
PROGRAM_METRICS = ("steady_time", "end_to_end_time")


@dataclass(frozen=True)
class TraceRow:
    """One trace on one allocator.

    Times are medians of single operations in seconds, `tail` is the 99th percentile of allocations. `values` are what
    the replay counted (peaks in bytes, shares), None where the allocator does not report it; `compared` is the time of
    an allocation against CuPy's pool, None for that itself.
    """

    trace: str
    allocator: str
    allocation: float | None
    release: float | None
    tail: float | None
    values: Mapping[str, float | None]
    compared: ComparedCase | None
    reason: str | None = None


@dataclass(frozen=True)
class Noticed:
    """A program on one allocator against the same program on CuPy's pool, in one metric."""

    allocator: str
    compared: ComparedCase


@dataclass(frozen=True)
class Contest:
    """Everything that was measured, and why an allocator is `missing`."""

    traces: tuple[TraceRow, ...]
    programs: tuple[Noticed, ...]
    missing: Mapping[str, str]

    def verdict(self, allocator: str) -> str:
        """Return the verdict of the programs.

        It is `faster`, `slower`, `same`, `mixed`, `inconclusive` if none changed and not all are known to be the same,
        or `unmeasured` if none was compared.
        """
        words = {one.compared.verdict for one in self.programs if one.allocator == allocator} - {"not compared"}
        changed = words & {"faster", "slower"}
        if changed:
            return "mixed" if len(changed) > 1 else changed.pop()
        return "unmeasured" if not words else "same" if words == {"same"} else "inconclusive"

    @property
    def default(self) -> str:
        """What a program should use: CuPy's own pool, unless another makes some program faster and none slower."""
        better = [name for name in ALLOCATORS if name != BASE and self.verdict(name) == "faster"]
        return better[0] if len(better) == 1 else min(better, key=self._geometric, default=BASE)

    def _geometric(self, allocator: str) -> float:
        logs = [one.compared.judgement.estimate.log for one in self.programs
                if one.allocator == allocator and one.compared.judgement]  # fmt: skip
        return sum(logs) / len(logs) if logs else 0.0


def contest(records: Mapping[str, RunRecord], missing: Mapping[str, str]) -> Contest:
    """Compare the records by allocator with CuPy's; without that one there are only values."""
    base = records.get(BASE)
    traces: list[TraceRow] = []
    programs: list[Noticed] = []
    for name, record in records.items():
        against = base if name != BASE else None
        times = _compared(against, record, name, TRACES, "allocation_time")
        traces += [_row(case, name, times.get(case.name)) for case in record.cases if case.family == TRACES]
        for metric in PROGRAM_METRICS:
            found = _compared(against, record, name, PROGRAMS, metric)
            programs += [Noticed(name, one) for one in found.values()]
    order = {name: place for place, name in enumerate(ALLOCATORS)}
    traces.sort(key=lambda row: (row.trace, order[row.allocator]))
    return Contest(tuple(traces), tuple(programs), missing)


def _compared(
    base: RunRecord | None, record: RunRecord, name: str, family: str, metric: str
) -> dict[str, ComparedCase]:
    if base is None:
        return {}
    sides = [replace(one, cases=tuple(c for c in one.cases if c.family == family)) for one in (base, record)]
    return {one.case: one for one in compare(sides[0], sides[1], metric=metric, names=(BASE, name)).cases}


def _row(case: CaseResult, allocator: str, compared: ComparedCase | None) -> TraceRow:
    values = case.profile.get("values", {})
    return TraceRow(
        trace=case.kernel.removeprefix("trace:"), allocator=allocator,
        allocation=valid_median(case, "allocation_time"), release=valid_median(case, "release_time"),
        tail=valid_median(case, "allocation_tail"),
        values={name: one.get("value") for name, one in values.items()}, compared=compared, reason=case.reason,
    )  # fmt: skip

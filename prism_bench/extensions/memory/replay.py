"""Replays of traces on allocators, and the comparison with CuPy's own pool."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import count, groupby
from operator import attrgetter
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from prism_bench.analysis.compare.comparison import ComparedCase, compare
from prism_bench.backends import Backend
from prism_bench.backends.base import Flow
from prism_bench.extension import offered
from prism_bench.extensions.memory import trace as traces
from prism_bench.extensions.memory.pool import ALLOCATORS, PoolLimits, PoolState, SizeClassPool
from prism_bench.extensions.memory.trace import Trace
from prism_bench.measure.plausibility import valid_median
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.schema import Status
from prism_bench.run.measuring import is_sticky
from prism_bench.run.task_worker import Programs, TaskContext
from prism_bench.run.verification import verify

if TYPE_CHECKING:
    from prism_bench.extensions.memory.cupy_pool import Allocator, Recorder


# Replays of a trace on an allocator: times of allocations from Python, and the memory of the device in use.


@dataclass(frozen=True)
class ReplayTimes:
    """Seconds of every allocation and of every release of one replay, in the trace's order."""

    allocations: tuple[float, ...]
    releases: tuple[float, ...]


@dataclass(frozen=True)
class Footprint:
    """Peaks of a replay: bytes `asked` by the trace, `used` and `held` by the allocator, in use on the `device`."""

    asked: int
    used: int | None
    held: int | None
    device: int
    external: float | None = None

    @property
    def overhead(self) -> float | None:
        """The allocator's peak over the peak of the requests; by the device's count if it does not report its own."""
        held = self.device if self.held is None else self.held
        return held / self.asked if self.asked else None

    @property
    def internal(self) -> float | None:
        """The share of the memory in use at its peak that rounding adds."""
        return None if not self.used else max(0.0, 1 - self.asked / self.used)


def replay(
    trace: Trace,
    allocate: Callable[[int], object],
    lanes: Sequence[AbstractContextManager[object]] = (),
    clock: Callable[[], int] = perf_counter_ns,
) -> ReplayTimes:
    """Time `allocate` and the releases of the trace, on lane `event.stream`. Nothing runs on the device meanwhile."""
    live: dict[int, object] = {}
    allocations: list[float] = []
    releases: list[float] = []
    for number, events in groupby(trace.events, key=attrgetter("stream")):
        with lanes[number] if lanes else nullcontext():
            for event in events:
                if event.size:
                    before = clock()
                    live[event.id] = allocate(event.size)
                    allocations.append((clock() - before) * 1e-9)
                else:
                    before = clock()
                    del live[event.id]
                    releases.append((clock() - before) * 1e-9)
    return ReplayTimes(tuple(allocations), tuple(releases))


def footprint(
    trace: Trace,
    allocate: Callable[[int], object],
    *,
    used: Callable[[], int | None],
    held: Callable[[], int | None],
    device: Callable[[], int],
    external: Callable[[], float | None] = lambda: None,
) -> Footprint:
    """Return the peaks of memory in a replay on one stream, as counted after every allocation.

    `used` and `held` return the allocator's bytes in use and of the device, `device` the device's own count, and
    `external` the share of the free memory outside its largest piece; None if not reported. Memory in use before the
    replay does not count.
    """
    live: dict[int, tuple[object, int]] = {}
    counts: list[tuple[Any, ...]] = []
    asked, before = 0, (used() or 0, held() or 0, device())
    for event in trace.events:
        if event.size:
            live[event.id] = allocate(event.size), event.size
            asked += event.size
            now = zip((used(), held(), device()), before, strict=True)
            counts.append((asked, *(None if value is None else value - begun for value, begun in now), external()))
        else:
            asked -= live.pop(event.id)[1]
    peaks: list[Any] = [max((v for v in values if v is not None), default=None) for values in zip(*counts, strict=True)]
    return Footprint(*peaks) if peaks else Footprint(0, None, None, 0)


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Return median, 99th percentile and mean of single operations, in seconds."""
    if len(seconds) < 2:
        return {"count": len(seconds)}
    tail = quantiles(seconds, n=100)[98]
    return {"count": len(seconds), "median": median(seconds), "p99": tail, "mean": sum(seconds) / len(seconds)}


# Replays of traces on the allocator of this process, and recordings of traces: of programs, and of a catalogue.

_FAMILY = "allocators"
_REPLAYS = 12
_LARGEST = 1 << 30  # bytes of a case; larger ones would make a trace of the memory's size


def measure_trace(path: Path, allocator: "Allocator", backend: Backend, first: bool) -> CaseResult:
    """Return the trace's case on an open allocator.

    In the first process its profile holds the peaks of memory; the others time single allocations and releases and keep
    their median, one sample a replay.
    """
    from prism_bench.extensions.memory.cupy_pool import device_used

    trace = traces.read(path)
    try:
        if not first:
            return _result(trace, "ok", measurements=tuple(_times(trace, allocator.allocate, backend.flow())))
        allocator.close()
        with allocator.watched() as external:
            counts = {"used": allocator.used, "held": allocator.held, "device": device_used, "external": external}
            peaks = footprint(trace, allocator.allocate, **counts)
        return _result(trace, "ok", profile={"tool": "replay", "values": _values(peaks)})
    except MemoryError as error:
        return _result(trace, "skipped", reason=f"out of memory: {error}")


def _result(trace: Trace, status: Status, **facts: Any) -> CaseResult:
    return CaseResult(
        name=f"trace:{trace.name}",
        kernel=f"trace:{trace.name}",
        family=_FAMILY,
        label="trace",
        workload={"allocations": trace.allocations},
        bytes=trace.tracked().peak,
        flops=None,
        status=status,
        **facts,
    )


def _times(trace: Trace, allocate: Callable[[int], object], flow: Flow) -> Iterator[Measurement]:
    lanes = [flow.lane(number) for number in range(trace.streams)]
    replay(trace, allocate, lanes)
    replays = [replay(trace, allocate, lanes) for _ in range(_REPLAYS)]
    for metric, part, statistic in (
        ("allocation_time", "allocations", "median"),
        ("allocation_tail", "allocations", "p99"),
        ("release_time", "releases", "median"),
    ):
        yield Measurement(metric, "kernel", (tuple(summary(getattr(times, part))[statistic] for times in replays),))


def _values(peaks: Footprint) -> dict[str, dict[str, Any]]:
    """Return bytes and shares with their units; a value that the allocator does not report has its reason."""
    pairs = {
        "peak_asked": (peaks.asked, "B"),
        "peak_used": (peaks.used, "B"),
        "peak_held": (peaks.held, "B"),
        "peak_device": (peaks.device, "B"),
        "overhead": (peaks.overhead, "1"),
        "internal_fragmentation": (peaks.internal, "1"),
        "external_fragmentation": (peaks.external, "1"),
    }
    return {
        name: {"value": value, "unit": unit, "source": "replay"}
        | ({"reason": "this allocator does not report it"} if value is None else {})
        for name, (value, unit) in pairs.items()
    }


def record_programs(programs: Programs, context: TaskContext, folder: Path) -> Path:
    """Record the trace of the programs; return its file."""
    from prism_bench.extensions.memory.cupy_pool import recording

    with recording("pipelines") as recorder:
        programs.evaluate(context)
    return _save(recorder, folder, context)


def record_catalogue(context: TaskContext, folder: Path) -> Path:
    """Record the trace of a catalogue run: every case of the label prepared and verified; return its file."""
    from prism_bench.extensions.memory.cupy_pool import recording

    with recording("catalogue") as recorder:
        for case in context.catalogue.cases(labels=(context.order["label"],)):
            if case.variant or case.sizes.allocated_bytes > _LARGEST:
                continue
            try:
                verify(context.backend, case, seeds=(0,))
            except Exception as error:  # what cannot run here, for whatever reason, allocates nothing
                if is_sticky(context.backend, error):
                    raise
    return _save(recorder, folder, context)


def _save(recorder: "Recorder", folder: Path, context: TaskContext) -> Path:
    trace = recorder.trace(device=context.backend.facts()["device"], label=context.order["label"])
    facts = {**trace.facts, "tracker": recorder.tracker.tracked().plain()}
    return traces.save(Trace(trace.name, trace.events, facts), folder / f"{trace.name}.json.gz")


# Allocators compared with CuPy's own pool: times of allocations, memory held, times of programs.

BASE = ALLOCATORS[0]
_TRACES, PROGRAMS = "allocators", "pipelines"  # families of a record's cases
_PROGRAM_METRICS = ("steady_time", "end_to_end_time")


@dataclass(frozen=True)
class TraceRow:
    """One trace on one allocator.

    Times are medians of single operations in seconds, `tail` is the 99th percentile of allocations. `values` are the
    counts of the replay (peaks in bytes, shares), None if the allocator does not report them; `compared` is the time of
    an allocation against CuPy's pool, None for CuPy's pool.
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
class ProgramRow:
    """A program on one allocator against the same program on CuPy's pool, in one metric."""

    allocator: str
    compared: ComparedCase


@dataclass(frozen=True)
class Contest:
    """Traces and programs on all allocators, and the reasons of the `missing` ones."""

    traces: tuple[TraceRow, ...]
    programs: tuple[ProgramRow, ...]
    missing: Mapping[str, str]

    def verdict(self, allocator: str) -> str:
        """Return the verdict of the programs.

        It is `faster`, `slower`, `same`, `mixed`, `inconclusive` if no program changed and not all are known to be the
        same, or `unmeasured` if no program was compared.
        """
        verdicts = {program.compared.verdict for program in self.programs if program.allocator == allocator}
        verdicts.discard("not compared")
        changed = verdicts & {"faster", "slower"}
        if changed:
            return "mixed" if len(changed) > 1 else changed.pop()
        return "unmeasured" if not verdicts else "same" if verdicts == {"same"} else "inconclusive"

    @property
    def default(self) -> str:
        """The recommended allocator: CuPy's own pool, unless another makes a program faster and no program slower."""
        better = [name for name in ALLOCATORS if name != BASE and self.verdict(name) == "faster"]
        return better[0] if len(better) == 1 else min(better, key=self._mean_log_ratio, default=BASE)

    def _mean_log_ratio(self, allocator: str) -> float:
        logs = [
            program.compared.judgement.estimate.log
            for program in self.programs
            if program.allocator == allocator and program.compared.judgement
        ]
        return sum(logs) / len(logs) if logs else 0.0


def contest(records: Mapping[str, RunRecord], missing: Mapping[str, str]) -> Contest:
    """Compare the records by allocator with CuPy's; without CuPy's record there are only values."""
    base = records.get(BASE)
    rows: list[TraceRow] = []
    programs: list[ProgramRow] = []
    for name, record in records.items():
        against = base if name != BASE else None
        times = _compared(against, record, name, _TRACES, "allocation_time")
        rows += [_row(case, name, times.get(case.name)) for case in record.cases if case.family == _TRACES]
        for metric in _PROGRAM_METRICS:
            compared = _compared(against, record, name, PROGRAMS, metric)
            programs += [ProgramRow(name, case) for case in compared.values()]
    order = {name: place for place, name in enumerate(ALLOCATORS)}
    rows.sort(key=lambda row: (row.trace, order[row.allocator]))
    return Contest(tuple(rows), tuple(programs), missing)


def _compared(
    base: RunRecord | None, record: RunRecord, name: str, family: str, metric: str
) -> dict[str, ComparedCase]:
    if base is None:
        return {}
    sides = [replace(side, cases=tuple(c for c in side.cases if c.family == family)) for side in (base, record)]
    return {case.case: case for case in compare(sides[0], sides[1], metric=metric, names=(BASE, name)).cases}


def _row(case: CaseResult, allocator: str, compared: ComparedCase | None) -> TraceRow:
    values = case.profile.get("values", {})
    return TraceRow(
        trace=case.kernel.removeprefix("trace:"),
        allocator=allocator,
        allocation=valid_median(case, "allocation_time"),
        release=valid_median(case, "release_time"),
        tail=valid_median(case, "allocation_tail"),
        values={name: entry.get("value") for name, entry in values.items()},
        compared=compared,
        reason=case.reason,
    )


# Programs of other extensions that are measured under each allocator.


def installed_programs() -> Programs | None:
    """Return the programs that an installed extension offers, or None."""
    offer = offered("pipeline programs")
    return offer() if offer else None


# A source without a device: addresses that are only numbers, and one stream whose work is always done.
#
# The hits, peak and rounding of the size-class pool follow from the order and sizes of a trace, without a GPU. Its
# times do not.


class CountingSource:
    """Source that counts bytes; its time does not advance."""

    def __init__(self) -> None:
        self.held: dict[int, int] = {}
        self._addresses = count(1 << 20, 1 << 40)

    def allocate(self, size: int) -> int:
        address = next(self._addresses)
        self.held[address] = size
        return address

    def release(self, address: int) -> None:
        del self.held[address]

    def stream(self) -> Hashable:
        return 0

    def mark(self, stream: Hashable) -> object:
        return None

    def passed(self, mark: object) -> bool:
        return True

    def wait(self, stream: Hashable, mark: object) -> None:
        """Do nothing: there is nothing to wait for."""

    def clear(self, address: int, size: int, stream: Hashable) -> None:
        """Do nothing: there is nothing to clear."""

    def now(self) -> float:
        return 0.0


def planned(trace: Trace, limits: PoolLimits | None = None) -> PoolState:
    """Return the pool's counts after the trace, if all of it were on one stream and took no time."""
    pool, live = SizeClassPool(CountingSource(), limits), {}
    for event in trace.events:
        if event.size:
            live[event.id] = pool.allocate(event.size)
        else:
            pool.free(live.pop(event.id))
    return pool.state()

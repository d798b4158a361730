"""Replays of traces on allocators, and the comparison with CuPy's own pool."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from prism_bench.analysis.compare.comparison import ComparedCase, compare
from prism_bench.backends import Backend
from prism_bench.backends.base import Flow
from prism_bench.extension import offered
from prism_bench.extensions.memory import trace
from prism_bench.extensions.memory.pool import ALLOCATORS, PoolLimits, PoolState, SizeClassPool
from prism_bench.extensions.memory.trace import Event, Trace
from prism_bench.measure.plausibility import valid_median
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.schema import Status
from prism_bench.run.measuring import is_sticky
from prism_bench.run.task_worker import Programs, TaskContext
from prism_bench.run.verification import verify

if TYPE_CHECKING:
    from prism_bench.extensions.memory.cupy_pool import Opened, Recorder


# Replays of a trace on an allocator: times of allocations from Python, and the memory of the device in use.


@dataclass(frozen=True)
class Replayed:
    """Seconds of every allocation and of every release of one replay, in the trace's order."""

    allocations: tuple[float, ...]
    releases: tuple[float, ...]


@dataclass(frozen=True)
class DeviceUse:
    """Functions that return memory in use.

    `used` and `held` are the allocator's bytes in use and of the device, `device` those that the device counts, and
    `external` the share of the free memory outside its largest piece; None if not reported.
    """

    used: Callable[[], int | None]
    held: Callable[[], int | None]
    device: Callable[[], int]
    external: Callable[[], float | None] = lambda: None


@dataclass(frozen=True)
class Footprint:
    """The books at their most while a trace is replayed, and bytes `asked` by the trace."""

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
) -> Replayed:
    """Call `allocate` as the trace did, on lane `event.stream`. Nothing runs on the device meanwhile."""
    live: dict[int, object] = {}
    allocations: list[float] = []
    releases: list[float] = []
    for number, events in _by_lane(trace):
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
    return Replayed(tuple(allocations), tuple(releases))


def _by_lane(trace: Trace) -> Iterator[tuple[int, list[Event]]]:
    """Yield the stream's number and its events for each stretch on one stream."""
    stretch: list[Event] = []
    number = 0
    for event in trace.events:
        if event.stream != number and stretch:
            yield number, stretch
            stretch = []
        number = event.stream
        stretch.append(event)
    if stretch:
        yield number, stretch


def footprint(trace: Trace, allocate: Callable[[int], object], books: DeviceUse) -> Footprint:
    """Return the same on one stream, without a clock, looking at the books after every allocation.

    What was in use before, of others, does not count.
    """
    live, seen, asked = {}, [], 0
    before = [books.used() or 0, books.held() or 0, books.device()]
    for event in trace.events:
        if event.size:
            live[event.id] = allocate(event.size), event.size
            asked += event.size
            seen.append((asked, *_since(before, books), books.external()))
        else:
            asked -= live.pop(event.id)[1]
    return Footprint(*(_most(values) for values in zip(*seen, strict=True))) if seen else Footprint(0, None, None, 0)


def _since(before: Sequence[int], books: DeviceUse) -> list[int | None]:
    now = books.used(), books.held(), books.device()
    return [None if value is None else value - begun for value, begun in zip(now, before, strict=True)]


def _most(values: Iterable[Any]) -> Any:
    return max((value for value in values if value is not None), default=None)


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


def replayed(path: Path, opened: "Opened", backend: Backend, first: bool) -> CaseResult:
    """Return the trace's case on an opened allocator.

    In the first process its profile holds the largest use of memory; the others time single allocations and releases
    and keep their median, one sample a replay.
    """
    found = trace.read(path)
    try:
        if first:
            return _result(found, "ok", profile={"tool": "replay", "values": _values(_footprint(found, opened))})
        return _result(found, "ok", measurements=tuple(_times(found, opened.allocate, backend.flow())))
    except MemoryError as error:
        return _result(found, "skipped", reason=f"out of memory: {error}")


def _result(found: Trace, status: Status, **facts: Any) -> CaseResult:
    return CaseResult(
        name=f"trace:{found.name}",
        kernel=f"trace:{found.name}",
        family=_FAMILY,
        label="trace",
        workload={"allocations": found.allocations},
        bytes=found.tracked().peak,
        flops=None,
        status=status,
        **facts,
    )


def _footprint(found: Trace, opened: "Opened") -> Footprint:
    from prism_bench.extensions.memory.cupy_pool import device_used

    opened.close()
    with opened.watched() as external:
        return footprint(found, opened.allocate, DeviceUse(opened.used, opened.held, device_used, external))


def _times(found: Trace, allocate: Callable[[int], object], flow: Flow) -> Iterator[Measurement]:
    lanes = [flow.lane(number) for number in range(found.streams)]
    replay(found, allocate, lanes)
    rounds = [replay(found, allocate, lanes) for _ in range(_REPLAYS)]
    for metric, part, word in (
        ("allocation_time", "allocations", "median"),
        ("allocation_tail", "allocations", "p99"),
        ("release_time", "releases", "median"),
    ):
        yield Measurement(metric, "kernel", (tuple(summary(getattr(one, part))[word] for one in rounds),))


def _values(held: Footprint) -> dict[str, dict[str, Any]]:
    """Return bytes and shares with their units; a value that the allocator does not report has its reason."""
    pairs = {
        "peak_asked": (held.asked, "B"),
        "peak_used": (held.used, "B"),
        "peak_held": (held.held, "B"),
        "peak_device": (held.device, "B"),
        "overhead": (held.overhead, "1"),
        "internal_fragmentation": (held.internal, "1"),
        "external_fragmentation": (held.external, "1"),
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
    found = recorder.trace(device=context.backend.facts()["device"], label=context.order["label"])
    facts = {**found.facts, "tracker": recorder.tracker.tracked().plain()}
    return trace.save(Trace(found.name, found.events, facts), folder / f"{found.name}.json.gz")


# Allocators against CuPy's own pool: what an allocation takes, what they hold, what a program notices of it.

BASE = ALLOCATORS[0]
_TRACES, PROGRAMS = "allocators", "pipelines"  # families of a record's cases
_PROGRAM_METRICS = ("steady_time", "end_to_end_time")


@dataclass(frozen=True)
class TraceRow:
    """One trace on one allocator.

    Times are medians of single operations in seconds, `tail` is the 99th percentile of allocations. `values` are what
    the replay counted (peaks in bytes, shares), None if the allocator does not report it; `compared` is the time of
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
        words = {program.compared.verdict for program in self.programs if program.allocator == allocator} - {
            "not compared"
        }
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
        logs = [
            program.compared.judgement.estimate.log
            for program in self.programs
            if program.allocator == allocator and program.compared.judgement
        ]
        return sum(logs) / len(logs) if logs else 0.0


def contest(records: Mapping[str, RunRecord], missing: Mapping[str, str]) -> Contest:
    """Compare the records by allocator with CuPy's; without that one there are only values."""
    base = records.get(BASE)
    traces: list[TraceRow] = []
    programs: list[Noticed] = []
    for name, record in records.items():
        against = base if name != BASE else None
        times = _compared(against, record, name, _TRACES, "allocation_time")
        traces += [_row(case, name, times.get(case.name)) for case in record.cases if case.family == _TRACES]
        for metric in _PROGRAM_METRICS:
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
    return {case.case: case for case in compare(sides[0], sides[1], metric=metric, names=(BASE, name)).cases}


def _row(case: CaseResult, allocator: str, compared: ComparedCase | None) -> TraceRow:
    values = case.profile.get("values", {})
    return TraceRow(
        trace=case.kernel.removeprefix("trace:"),
        allocator=allocator,
        allocation=valid_median(case, "allocation_time"),
        release=valid_median(case, "release_time"),
        tail=valid_median(case, "allocation_tail"),
        values={name: one.get("value") for name, one in values.items()},
        compared=compared,
        reason=case.reason,
    )


# Programs of other extensions that are measured under each allocator.


def installed_programs() -> Programs | None:
    """Return the programs that an installed extension offers; None if there are none."""
    offer = offered("programs")
    return offer() if offer else None


# A source without a device: addresses that are only numbers, one stream whose work is always done.
#
# What the size-class pool would do for a trace is known without a GPU: its hits, peak and rounding follow from order
# and size alone. What it takes is not.


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

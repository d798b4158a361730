"""A trace asked of an allocator again: what an allocation takes from Python, and what the device gives up for it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter_ns

from prism_bench.extensions.memory.trace import Trace


@dataclass(frozen=True)
class Replayed:
    """Seconds of every allocation and of every release of one replay, in the trace's order."""

    allocations: tuple[float, ...]
    releases: tuple[float, ...]


@dataclass(frozen=True)
class DeviceUse:
    """Where to look: bytes `used` for what is in use and `held` of the device as the allocator tells, bytes that the
    `device` has given away by its own account, and the share of the free memory outside its largest piece (`external`);
    None where that is not told.
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
        """What the allocator held at most over what was asked for at most; by the device where it does not tell."""
        held = self.device if self.held is None else self.held
        return held / self.asked if self.asked else None

    @property
    def internal(self) -> float | None:
        """The share of the memory in use at its peak that rounding adds."""
        return None if not self.used else max(0.0, 1 - self.asked / self.used)


def replay(
    trace: Trace, allocate: Callable, lanes: Sequence[AbstractContextManager] = (), clock: Callable = perf_counter_ns
) -> Replayed:
    """Ask `allocate` for what the trace asked for, on lane `event.stream`. Nothing runs on the device meanwhile."""
    live, allocations, releases = {}, [], []
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


def _by_lane(trace):
    """Stretches of events on one stream."""
    stretch, number = [], 0
    for event in trace.events:
        if event.stream != number and stretch:
            yield number, stretch
            stretch = []
        number = event.stream
        stretch.append(event)
    if stretch:
        yield number, stretch


def footprint(trace: Trace, allocate: Callable, books: DeviceUse) -> Footprint:
    """The same on one stream, without a clock, looking at the books after every allocation.

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


def _since(before, books):
    now = books.used(), books.held(), books.device()
    return [None if value is None else value - begun for value, begun in zip(now, before, strict=True)]


def _most(values):
    return max((value for value in values if value is not None), default=None)


def summary(seconds: Sequence[float]) -> dict:
    """Median, 99th percentile and mean of single operations, in seconds."""
    if len(seconds) < 2:
        return {"count": len(seconds)}
    tail = quantiles(seconds, n=100)[98]
    return {"count": len(seconds), "median": median(seconds), "p99": tail, "mean": sum(seconds) / len(seconds)}

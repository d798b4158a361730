"""A trace asked of an allocator again: what an allocation takes from Python, and what the device gives up for it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter_ns

from prism_bench.memory.trace import Trace


@dataclass(frozen=True)
class Replayed:
    """Seconds of every allocation and of every release of one replay, in the trace's order."""

    allocations: tuple[float, ...]
    releases: tuple[float, ...]


@dataclass(frozen=True)
class Footprint:
    """Bytes at their most while a trace is replayed: `asked` by the trace, `used` and `held` as the allocator tells
    (None where it does not), and what the `device` gave up by its own account.
    """

    asked: int
    used: int | None
    held: int | None
    device: int

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


def footprint(trace: Trace, allocate: Callable, used: Callable, held: Callable, device: Callable[[], int]) -> Footprint:
    """The same on one stream, without a clock, looking at the books after every allocation."""
    live, sizes, most, before = {}, {}, [0, 0, 0, 0], device()
    for event in trace.events:
        if event.size:
            live[event.id], sizes[event.id] = allocate(event.size), event.size
            now = (sum(sizes.values()), used() or 0, held() or 0, device() - before)
            most = [max(pair) for pair in zip(most, now, strict=True)]
        else:
            del live[event.id], sizes[event.id]
    asked, most_used, most_held, most_device = most
    return Footprint(asked, most_used or None, most_held or None, most_device)


def summary(seconds: Sequence[float]) -> dict:
    """Median, 99th percentile and mean of single operations, in seconds."""
    if len(seconds) < 2:
        return {"count": len(seconds)}
    tail = quantiles(seconds, n=100)[98]
    return {"count": len(seconds), "median": median(seconds), "p99": tail, "mean": sum(seconds) / len(seconds)}

"""Replays of a trace on an allocator: times of allocations from Python, and the memory of the device in use."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter_ns
from typing import Any

from prism_bench.extensions.memory.trace import Event, Trace


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
    trace: Trace, allocate: Callable[[int], object], lanes: Sequence[AbstractContextManager[object]] = (),
    clock: Callable[[], int] = perf_counter_ns,
) -> Replayed:  # fmt: skip
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

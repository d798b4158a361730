"""Times of items served by the executor, as records."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from prism_bench.backends import Backend
from prism_bench.backends.base import Flow
from prism_bench.errors import ResultsError
from prism_bench.extensions.persistent.executor import Executor
from prism_bench.io.documents import Schema, no_collection
from prism_bench.spec.case import Case

# Records of items' times, one JSON file each: the time until an answer, and the share of one of many items.

_SCHEMA = Schema("a record of items' times", 1, "scripts/persistent")
EMPTY = "empty"  # the case of an item without work
GRAPH, LAUNCH = "graph", "launch"  # forms of answer that need no executor: a replayed graph, plain launches


@dataclass(frozen=True)
class ItemSpread:
    """Seconds of `count` samples: their median, quartiles and 99th percentile."""

    median: float
    low: float
    high: float
    p99: float
    count: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> "ItemSpread":
        """Return the spread of at least one sample."""
        low, median, high, p99 = (float(f"{one:.4g}") for one in np.percentile(samples, (25, 50, 75, 99)))
        return cls(median, low, high, p99, len(samples))


@dataclass(frozen=True)
class ItemTimes:
    """Times of a case in a form.

    The form is `persistent`, `launches` (the executor's fallback), `graph` or `launch` (in the host's own process).
    `answer` is the time from the host's request until it knows that all is done, one item at a time; `each` is an
    item's share of many that are submitted at once. `error` is the largest relative one against the reference.
    """

    case: str
    form: str
    answer: ItemSpread
    each: ItemSpread
    error: float | None = None


@dataclass(frozen=True)
class LatencyRecord:
    """Everything that one run measured on one machine."""

    machine: dict[str, Any]
    created: str
    commit: str | None
    rows: tuple[ItemTimes, ...]

    def row(self, case: str, form: str) -> ItemTimes | None:
        """Return the case in that form, or None."""
        return next((row for row in self.rows if (row.case, row.form) == (case, form)), None)

    def write(self, path: Path) -> None:
        """Write the record as JSON, completely or not at all; ResultsError if that fails."""
        _SCHEMA.write(path, asdict(self))


def read_latencies(path: Path) -> LatencyRecord:
    """Return the record in that file; ResultsError if it is none."""
    plain = _SCHEMA.read(path)
    if plain is None:
        raise ResultsError(f"{path}: no such file")
    return _SCHEMA.kind_of(plain, LatencyRecord, path)


def newest(folder: Path) -> Path | None:
    """Return the file of the newest record below `folder`; None if there is no record."""
    found = sorted(folder.glob("*/*.json"), key=lambda path: path.name)
    return found[-1] if found else None


# How long items take, by the host's clock: served by the executor, and for comparison as graphs and launches.
#
# The two never share the device: while a queue kernel runs, the other process's context has no work.

_WARM_UP = 100


@dataclass(frozen=True)
class LatencySizes:
    """How many answers are timed, how many items are submitted at once, and how often."""

    answers: int = 2000
    burst: int = 64
    bursts: int = 50


@dataclass
class LatencySamples:
    """Seconds of answers, and of items submitted at once; samples of other processes may be added."""

    answers: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def take(self, one: Callable[[], None], many: Callable[[int], None], sizes: LatencySizes) -> None:
        """Time `one()`, an item from request to answer, and `many(count)`."""
        with no_collection():
            for _ in range(min(_WARM_UP, sizes.answers)):
                one()
            self.answers += [_seconds(one) for _ in range(sizes.answers)]
            self.shares += [_seconds(lambda: many(sizes.burst)) / sizes.burst for _ in range(sizes.bursts)]

    def times(self, case: str, form: str, error: float | None) -> ItemTimes:
        """Return their spread."""
        return ItemTimes(case, form, ItemSpread.of(self.answers), ItemSpread.of(self.shares), error)


def take_served(samples: LatencySamples, executor: Executor, name: str, sizes: LatencySizes) -> None:
    """Time the executor's program, in the form in which it serves now."""

    def many(count: int) -> None:
        items = [executor.submit(name) for _ in range(count)]
        for item in items:
            item.result()

    samples.take(lambda: executor.submit(name).result(), many, sizes)


def take_launched(samples: dict[str, LatencySamples], backend: Backend, case: Case, sizes: LatencySizes) -> None:
    """Time the case in this process, as launches and as a graph of them. The host waits for the stream."""
    flow = backend.flow()
    with backend.prepare(case, case.inputs(0)) as runnable:
        runnable()  # code that the first launch loads would not be loaded within a capture
        for form, call in {GRAPH: flow.captured(runnable), LAUNCH: runnable}.items():
            _take_in_flow(samples[form], flow, call, sizes)


def _take_in_flow(samples: LatencySamples, flow: Flow, call: Callable[[], None], sizes: LatencySizes) -> None:
    def one() -> None:
        call()
        flow.synchronize()

    def many(count: int) -> None:
        for _ in range(count):
            call()
        flow.synchronize()

    samples.take(one, many, sizes)


def _seconds(call: Callable[[], None]) -> float:
    before = perf_counter()
    call()
    return perf_counter() - before

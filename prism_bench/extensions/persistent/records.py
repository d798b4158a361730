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
        low, median, high, p99 = (float(f"{value:.4g}") for value in np.percentile(samples, (25, 50, 75, 99)))
        return cls(median, low, high, p99, len(samples))


@dataclass(frozen=True)
class ItemTimes:
    """Times of a case in a form.

    The form is `persistent`, `launches` (the executor's fallback), `graph` or `launch` (in the host's own process).
    `answer` is the time from the host's request until its answer, with a single item at a time; `each` is an item's
    share of many that are submitted at once. `error` is the largest relative error against the reference.
    """

    case: str
    form: str
    answer: ItemSpread
    each: ItemSpread
    error: float | None = None


@dataclass(frozen=True)
class LatencyRecord:
    """The times of a run on a machine."""

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
    """Return the record in the file; ResultsError for anything else."""
    plain = _SCHEMA.read(path)
    if plain is None:
        raise ResultsError(f"{path}: no such file")
    return _SCHEMA.kind_of(plain, LatencyRecord, path)


def newest(folder: Path) -> Path | None:
    """Return the file of the newest record below `folder`; None if there is no record."""
    paths = sorted(folder.glob("*/*.json"), key=lambda path: path.name)
    return paths[-1] if paths else None


# Times of items by the host's clock: served by the executor, and for comparison as graphs and launches.
#
# Both never share the device: while a queue kernel runs, the other process's context has no work.

_WARM_UP = 100


@dataclass(frozen=True)
class LatencySizes:
    """Numbers of timed answers, of items that are submitted at once, and of such bursts."""

    answers: int = 2000
    burst: int = 64
    bursts: int = 50


@dataclass
class LatencySamples:
    """Seconds of answers, and each item's share of bursts; samples of other processes may be added."""

    answers: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def take(self, answer: Callable[[], None], burst: Callable[[int], None], sizes: LatencySizes) -> None:
        """Time `answer()`, an item from request to answer, and `burst(count)`."""
        with no_collection():
            for _ in range(min(_WARM_UP, sizes.answers)):
                answer()
            self.answers += [_seconds(answer) for _ in range(sizes.answers)]
            self.shares += [_seconds(lambda: burst(sizes.burst)) / sizes.burst for _ in range(sizes.bursts)]

    def times(self, case: str, form: str, error: float | None) -> ItemTimes:
        """Return the spread of the samples."""
        return ItemTimes(case, form, ItemSpread.of(self.answers), ItemSpread.of(self.shares), error)


def take_served(samples: LatencySamples, executor: Executor, name: str, sizes: LatencySizes) -> None:
    """Time the executor's program, in the form in which it serves now."""

    def burst(count: int) -> None:
        items = [executor.submit(name) for _ in range(count)]
        for item in items:
            item.result()

    samples.take(lambda: executor.submit(name).result(), burst, sizes)


def take_launched(samples: dict[str, LatencySamples], backend: Backend, case: Case, sizes: LatencySizes) -> None:
    """Time the case in this process, as launches and as a graph of them. The host waits for the stream."""
    flow = backend.flow()
    with backend.prepare(case, case.inputs(0)) as runnable:
        runnable()  # code that the first launch loads would not be loaded within a capture
        for form, call in {GRAPH: flow.captured(runnable), LAUNCH: runnable}.items():
            _take_in_flow(samples[form], flow, call, sizes)


def _take_in_flow(samples: LatencySamples, flow: Flow, call: Callable[[], None], sizes: LatencySizes) -> None:
    def answer() -> None:
        call()
        flow.synchronize()

    def burst(count: int) -> None:
        for _ in range(count):
            call()
        flow.synchronize()

    samples.take(answer, burst, sizes)


def _seconds(call: Callable[[], None]) -> float:
    before = perf_counter()
    call()
    return perf_counter() - before

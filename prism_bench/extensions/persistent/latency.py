"""How long items take, by the host's clock: served by the executor, and for comparison as graphs and launches.

The two never share the device: while a queue kernel runs, the other process's context has no work.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

from prism_bench.backends import Backend
from prism_bench.backends.base import Flow
from prism_bench.extensions.persistent.executor import Executor
from prism_bench.extensions.persistent.record import GRAPH, LAUNCH, ItemSpread, ItemTimes
from prism_bench.io.documents import no_collection
from prism_bench.spec.case import Case

WARM_UP = 100


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
            for _ in range(min(WARM_UP, sizes.answers)):
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

"""How long items take, by the host's clock: served by the executor, and beside that as graphs and launches.

The two never share the device: while a queue kernel runs, the other process's context has no work.
"""

import gc
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from prism_bench.backends import Backend
from prism_bench.case import Case
from prism_bench.extensions.persistent.executor import Executor
from prism_bench.extensions.persistent.record import GRAPH, LAUNCH, ItemTimes, Spread

WARM_UP = 100


@dataclass(frozen=True)
class Sizes:
    """How many answers are timed, how many items are asked for at once, and how often."""

    answers: int = 2000
    burst: int = 64
    bursts: int = 50


@dataclass
class Samples:
    """Seconds of answers, and of items asked for at once; more may be added, from other processes too."""

    answers: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def take(self, one: Callable[[], None], many: Callable[[int], None], sizes: Sizes) -> None:
        """Time `one()`, an item from request to answer, and `many(count)`."""
        with _undisturbed():
            for _ in range(min(WARM_UP, sizes.answers)):
                one()
            self.answers += [_seconds(one) for _ in range(sizes.answers)]
            self.shares += [_seconds(lambda: many(sizes.burst)) / sizes.burst for _ in range(sizes.bursts)]

    def told(self, case: str, form: str, error: float | None) -> ItemTimes:
        """Their spread."""
        return ItemTimes(case, form, Spread.of(self.answers), Spread.of(self.shares), error)


def take_served(samples: Samples, executor: Executor, name: str, sizes: Sizes) -> None:
    """The executor's program, in the form in which it serves now."""

    def many(count):
        items = [executor.submit(name) for _ in range(count)]
        for item in items:
            item.result()

    samples.take(lambda: executor.submit(name).result(), many, sizes)


def take_launched(samples: dict[str, Samples], backend: Backend, case: Case, sizes: Sizes) -> None:
    """The case in this process, by form: its launches, and its launches in a graph. The host waits for the stream."""
    flow = backend.flow()
    with backend.prepare(case, case.inputs(0)) as runnable:
        runnable()  # what is loaded at the first launch is not loaded into a graph
        for form, call in {GRAPH: flow.captured(runnable), LAUNCH: runnable}.items():
            _take_in_flow(samples[form], flow, call, sizes)


def _take_in_flow(samples, flow, call, sizes):
    def one():
        call()
        flow.synchronize()

    def many(count):
        for _ in range(count):
            call()
        flow.synchronize()

    samples.take(one, many, sizes)


def _seconds(call):
    before = perf_counter()
    call()
    return perf_counter() - before


@contextmanager
def _undisturbed():
    """No collection of garbage while a clock runs."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()

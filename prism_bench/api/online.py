"""A kernel that tunes itself while it is used: each call launches the tuner's choice, times it and records the time."""

from collections.abc import Callable, Iterable, Mapping
from time import perf_counter
from typing import Any

from prism_bench.backends import Backend, Runnable
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray
from prism_bench.workflows.tuning.online import OnlineTuner

Stopwatch = Callable[[Callable[[], None]], float]  # calls what it is given and returns the seconds it took


class OnlineRunnable(Runnable):
    """A case in all of its configurations, prepared as they are chosen, each with own buffers.

    `arrays` are those of the configuration that was launched last.
    """

    def __init__(self, backend: Backend, case: Case, tuner: OnlineTuner, stopwatch: Stopwatch | None = None) -> None:
        self.case, self._backend, self._tuner = case, backend, tuner
        self._cases = {tuple(one.configuration.items()): one for one in case.configurations(backend.device)}
        self._prepared: dict[tuple[Any, ...], Runnable] = {}
        self._watch = stopwatch or stopwatch_of(backend)
        self.reset(case.inputs())

    def __call__(self) -> None:
        space = [dict(one) for one in self._cases]
        chosen = self._tuner.next(self.case.kernel, self.case.workload, space)
        self._last = self._runnable(tuple(chosen.items()))
        seconds = self._watch(self._last)
        self._tuner.record(self.case.kernel, self.case.workload, chosen, seconds)

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self.inputs = inputs
        for runnable in self._prepared.values():
            runnable.reset(inputs)
        self._last = self._runnable(next(iter(self._cases)))

    def arrays(self, names: Iterable[str]) -> dict[str, Any]:
        return self._last.arrays(names)

    def __exit__(self, *exception: object) -> None:
        for runnable in self._prepared.values():
            runnable.__exit__(*exception)
        self._prepared = {}

    def _runnable(self, key: tuple[Any, ...]) -> Runnable:
        """Return the configuration, prepared. Its first call is not timed: it compiles and loads."""
        if key not in self._prepared:
            self._prepared[key] = self._backend.prepare(self._cases[key], self.inputs)
            self._prepared[key]()
            self._prepared[key].reset(self.inputs)
        return self._prepared[key]


def stopwatch_of(backend: Backend) -> Stopwatch:
    """Return the time between events around a call on a device, caches as they are; elsewhere the wall clock's."""
    if backend.name == "cuda":
        harness: Any = vars(backend)["harness"]  # which no other backend has
        return lambda call: harness.timed(call, cold=False).seconds

    def watched(call: Callable[[], None]) -> float:
        before = perf_counter()
        call()
        return perf_counter() - before

    return watched

"""A callable measured and cross-checked: inspected, timed, timed again the other way, its claims checked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

from prism_bench.api.progress import Step
from prism_bench.errors import MeasurementInvalid
from prism_bench.measure import ClockGate, Criterion, work_signs
from prism_bench.measure.clock_guard import refuse_replaced
from prism_bench.record.measurement import Measurement
from prism_bench.run.measuring import measure_metric
from prism_bench.units import time_text

CRITERION = Criterion(precision=0.004, min_samples=24, max_samples=60, seconds=1.0)
MORE = Criterion(precision=0.0, min_samples=60, max_samples=60, seconds=1.0)  # where one sample is odd
CHECKED_SAMPLES = 5
WARM_UP = 3  # calls in which libraries compile, choose and record; none of them is looked at
STEPS = 4  # of a measurement: calls of the callable to warm up, its inspection, its times, the checks of these
NEAR_OVERHEAD = 1.5  # times an empty kernel


@dataclass(frozen=True)
class TimedCallable:
    """A callable, the metric to time it by, its name, and the bytes and operations that one call is claimed to take."""

    function: Callable[[], object]
    metric: str
    name: str
    bytes: int | None = None
    flops: int | None = None


def measured(backend: Any, library: str, subject: TimedCallable, step: Step = lambda words: None) -> Measurement:
    """Measure a callable, and call `step` before each of the STEPS of that.

    MeasurementInvalid where it cannot be timed honestly, or its time cannot be true.
    """
    with backend.harness.ordinary_cache() as cache:
        step("warming up")
        for _ in range(WARM_UP):
            subject.function()
        found = _Checked(backend, library, subject).measurement(step)
        if cache.is_used:
            raise MeasurementInvalid("the call sets a part of L2 aside, so caches cannot be cleared")
    refuse_replaced()
    return found


class _Checked:
    """One callable on one backend."""

    def __init__(self, backend: Any, library: str, subject: TimedCallable) -> None:
        self._backend, self._subject = backend, subject
        self._harness = backend.harness
        self._timers = backend.callable_timers(subject.function, library)
        self._bounds = backend.bounds()

    def measurement(self, step: Step) -> Measurement:
        """Return the measurement with its notes; MeasurementInvalid where a check fails."""
        step("inspecting")
        inspector = self._backend.inspector()
        inspection, floors = inspector.inspect(self._subject.function), inspector.floors()
        step("timing")
        found = self._timed(self._subject.metric)
        notes = [*inspection.notes, *self._levels(found.samples)]
        step("checking")
        cold, problem = self._compared(found.median or 0.0, floors)
        _refuse(work_signs.at_overhead(cold, floors.nothing, floors.launch))
        _refuse(problem)
        self._refuse_rates(found)
        if cold < NEAR_OVERHEAD * floors.launch:
            notes.append(f"near launch overhead: an empty kernel takes {time_text(floors.launch)}")
        return replace(found, notes=(*found.notes, *notes))

    def _timed(self, metric: str) -> Measurement:
        """Return samples of the metric, more where a single one is odd: it may be alone, or of a second level."""
        once = self._timers[metric]()
        found = measure_metric(metric, self._subject.name, once, CRITERION, ClockGate())[0]
        if work_signs.levels(found.samples) or not work_signs.has_odd_sample(found.samples):
            return found
        more = measure_metric(metric, self._subject.name, once, MORE, ClockGate())[0]
        clocks = ((*found.clocks[0], *more.clocks[0]),) if found.clocks and more.clocks else found.clocks
        return replace(found, processes=((*found.samples, *more.samples),), clocks=clocks)

    def _compared(self, seconds: float, floors: Any) -> tuple[float, str | None]:
        """Return the cold time, and why the other kind of time does not go with it."""
        warming = self._bounds.l2_bytes / self._bounds.bus if self._bounds.bus else 0.0
        if self._subject.metric == "cold_time":
            once = partial(self._harness.timed, self._subject.function, cold=False)
            warm = median(once().seconds for _ in range(CHECKED_SAMPLES))
            return seconds, work_signs.less_work_when_cold(seconds, warm, warming)
        alone = self._timed("cold_time")  # a graph holds many calls, and its time is their mean
        self._levels(alone.samples)
        cold = alone.median or 0.0
        problem = work_signs.less_work_when_hot(cold, seconds, floors.launch, warming)
        return cold, problem or work_signs.less_work_when_cold(cold, seconds, warming)

    def _levels(self, samples: Sequence[float]) -> list[str]:
        """Return a note where samples have two levels; MeasurementInvalid where those are two kinds of work."""
        found = work_signs.levels(samples)
        if found and found.is_other_work:
            raise MeasurementInvalid(
                f"{found}: the call does not do the same work every time, or something else works on the device"
            )
        return [str(found)] if found else []

    def _refuse_rates(self, found: Measurement) -> None:
        bounds, subject, seconds = self._bounds, self._subject, found.median or 0.0
        held = bounds.l2_bytes if subject.metric == "hot_time" else 0
        _refuse(
            work_signs.too_many_bytes(subject.bytes, seconds, bounds.bus, held, bounds.cache_bandwidth(found.clock))
        )
        _refuse(work_signs.too_many_operations(subject.flops, seconds, bounds.operations(found.clock)))


def _refuse(problem: str | None) -> None:
    if problem:
        raise MeasurementInvalid(problem)

"""Times of an evaluation: alone and from the host's memory, or one of many that are enqueued without waiting."""

from collections.abc import Callable
from time import perf_counter

from prism_bench.extensions.pipelines.prepared import Prepared
from prism_bench.measure import ClockGate, Criterion, sample
from prism_bench.record.measurement import Measurement, Sample

BATCH_SECONDS = 20e-3  # of evaluations without waiting, so that the one wait at their end does not count
MOST = 2000
CRITERIA = {
    "end_to_end_time": Criterion(precision=0.01, min_samples=10, max_samples=60, seconds=0.4),
    "steady_time": Criterion(precision=0.01, min_samples=6, max_samples=20, seconds=0.5),
    "wall_time": Criterion(precision=0.05, min_samples=3, max_samples=10, seconds=0.5),
}


class EndToEnd:
    """Times the frame from the host, an evaluation, and the results back on the host."""

    def __init__(self, prepared: Prepared, evaluate: Callable[[], None], moves: bool = True) -> None:
        self._prepared, self._evaluate, self._moves = prepared, evaluate, moves

    def __call__(self) -> Sample:
        prepared = self._prepared
        before = perf_counter()
        if self._moves:
            prepared.upload()
        self._evaluate()
        if self._moves:
            prepared.download()
        prepared.flow.synchronize()
        return Sample(perf_counter() - before)


class Steady:
    """Times evaluations one after the other on the device's data; a sample's launch cost is that of one of them."""

    def __init__(self, prepared: Prepared, evaluate: Callable[[], None]) -> None:
        self._flow, self._evaluate = prepared.flow, evaluate
        self._count = 2
        estimate = min(self().seconds for _ in range(2))
        self._count = max(2, min(MOST, round(BATCH_SECONDS / max(estimate, 1e-9))))

    def __call__(self) -> Sample:
        self._flow.synchronize()
        before = perf_counter()
        for _ in range(self._count):
            self._evaluate()
        enqueued = perf_counter() - before
        self._flow.synchronize()
        return Sample((perf_counter() - before) / self._count, launch_seconds=enqueued / self._count)


def timed(metric: str, once: Callable[[], Sample], subject: str = "kernel") -> list[Measurement]:
    """Return the metric's measurement in this process; with steady times also the host's share, `launch_time`."""
    once()
    series = sample(once, CRITERIA[metric], ClockGate())
    found = [Measurement(metric, subject, (tuple(one.seconds for one in series.samples),))]
    launches = tuple(one.launch_seconds for one in series.samples if one.launch_seconds is not None)
    return found + ([Measurement("launch_time", subject, (launches,))] if launches else [])


def end_to_end(prepared: Prepared, evaluate: Callable[[], None], name: str) -> list[Measurement]:
    """Return the time from the host's memory to the host's memory."""
    return timed("end_to_end_time", EndToEnd(prepared, evaluate, moves=name != "per_call"))


def steady(prepared: Prepared, evaluate: Callable[[], None]) -> list[Measurement]:
    """Return the time without waiting."""
    return timed("steady_time", Steady(prepared, evaluate))

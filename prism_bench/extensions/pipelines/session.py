"""Session of one worker: verifies, times and traces forms of pipelines."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_bench.backends import Backend
from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable, MeasurementInvalid, PrismBenchError
from prism_bench.extensions.pipelines.definitions import pipelines
from prism_bench.extensions.pipelines.pipeline import Pipeline, Prepared, form, placed
from prism_bench.measure import ClockGate, Criterion, sample
from prism_bench.profilers.timeline import COPY, KERNEL, Timeline
from prism_bench.record.measurement import Measurement, Sample
from prism_bench.record.run_record import CaseResult
from prism_bench.record.schema import JsonTable, Status
from prism_bench.run.verification import Entry, compare_outputs
from prism_bench.spec.inputs import InputArray, input_of

if TYPE_CHECKING:
    from prism_bench.profilers.cupti import ActivityCollector


# Verification of pipelines: every stage compared with its reference on its actual inputs, then the planted results.


def check_stages(prepared: Prepared) -> list[Entry]:
    """Evaluate once, stage by stage; return an entry per output, named `stage.output`, as records keep them."""
    prepared.begin()
    prepared.upload()
    entries = []
    for stage in prepared.stages:
        runnable = prepared.runnables[stage.name]
        inputs: dict[str, InputArray] = {}
        for array in stage.case.spec.inputs:
            content = runnable.arrays([array.name])[array.name]
            content = content.get() if hasattr(content, "get") else content.copy()
            inputs[array.name] = input_of(content, array.storage.name)
        runnable()
        outputs = runnable.arrays([output.name for output in stage.case.spec.outputs])
        compared = compare_outputs(prepared.backend, stage.case, inputs, outputs, 0)
        entries += [entry | {"output": f"{stage.name}.{entry['output']}"} for entry in compared]
    return entries


def check_results(prepared: Prepared, name: str) -> list[Entry]:
    """Evaluate in the form `name`; require the results of one stream, and those that the pipeline's check expects."""
    expected = _evaluated(prepared, "one_stream")
    actual = _evaluated(prepared, name)
    different = [key for key in expected if not np.array_equal(expected[key], actual[key], equal_nan=True)]
    complaint = f"{different[0]} is not what one stream makes of the same frame" if different else None
    if not complaint and prepared.pipeline.check:
        complaint = prepared.pipeline.check(actual, prepared.axes)
    return [{"seed": 0, "output": f"results, {name}", "passed": complaint is None, "error": complaint}]


def _evaluated(prepared: Prepared, name: str) -> dict[str, np.ndarray]:
    """Return the results of an evaluation from the pipeline's initial state."""
    evaluate = form(name, prepared)
    prepared.begin()
    prepared.upload()
    evaluate()
    prepared.download()
    prepared.flow.synchronize()
    return {result: prepared.host[result].copy() for result in prepared.pipeline.results}


# Times of an evaluation: a single one from the host's memory, or one of many that are enqueued without waiting.

_BATCH_SECONDS = 20e-3  # of evaluations without waiting, so that the wait at their end does not count
_MOST_EVALUATIONS = 2000
_CRITERIA = {
    "end_to_end_time": Criterion(precision=0.01, min_samples=10, max_samples=60, seconds=0.4),
    "steady_time": Criterion(precision=0.01, min_samples=6, max_samples=20, seconds=0.5),
    "wall_time": Criterion(precision=0.05, min_samples=3, max_samples=10, seconds=0.5),
}


class _EndToEnd:
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


class _Steady:
    """Times evaluations one after the other on the device's data; a sample's launch cost is the mean of its calls."""

    def __init__(self, prepared: Prepared, evaluate: Callable[[], None]) -> None:
        self._flow, self._evaluate = prepared.flow, evaluate
        self._count = 2
        estimate = min(self().seconds for _ in range(2))
        self._count = max(2, min(_MOST_EVALUATIONS, round(_BATCH_SECONDS / max(estimate, 1e-9))))

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
    samples = sample(once, _CRITERIA[metric], ClockGate()).samples
    measurements = [Measurement(metric, subject, (tuple(sample.seconds for sample in samples),))]
    launches = tuple(sample.launch_seconds for sample in samples if sample.launch_seconds is not None)
    return measurements + ([Measurement("launch_time", subject, (launches,))] if launches else [])


# Overlap: the share of the device's busy time in which several pieces of work ran at once.


@dataclass(frozen=True)
class Overlap:
    """Overlap in a named range.

    It has the numbers of `kernels` and `copies`, the seconds in which any work ran (`busy`) and in which two or more
    pieces of work ran (`shared`); `span` is from the first start to the last end.
    """

    kernels: int
    copies: int
    span: float
    busy: float
    shared: float

    @property
    def share(self) -> float:
        """The part of the busy time in which two or more pieces of work ran."""
        return self.shared / self.busy if self.busy else 0.0


def overlap(timeline: Timeline, name: str) -> Overlap:
    """Return the overlap between the begin and the end of the range `name`, which must hold all of its work.

    MeasurementInvalid where the timeline has no such range or no work in it.
    """
    chosen = np.zeros(len(timeline.work), bool)
    names = np.array(timeline.names, object)
    for place in np.flatnonzero(names[timeline.ranges.name] == name) if len(timeline.ranges) else ():
        begin, end = timeline.ranges.start[place], timeline.ranges.end[place]
        chosen |= (timeline.work.start >= begin) & (timeline.work.start < end)
    if not chosen.any():
        raise MeasurementInvalid(f"the timeline holds no work in a range '{name}'")
    start, kind = timeline.work.start[chosen], timeline.work.kind[chosen]
    end = start + timeline.work.length[chosen]
    busy, shared = depths(start, end)
    span = (end.max() - start.min()) * 1e-9
    return Overlap(int((kind == KERNEL).sum()), int((kind == COPY).sum()), float(span), busy * 1e-9, shared * 1e-9)


def depths(start: np.ndarray, end: np.ndarray) -> tuple[float, float]:
    """Return the times in which at least one, and at least two, of the intervals are open."""
    times = np.concatenate([start, end])
    steps = np.concatenate([np.ones(len(start), int), -np.ones(len(end), int)])
    order = np.lexsort((steps, times))  # at one time ends come first: what follows at once does not overlap
    depth, lengths = np.cumsum(steps[order])[:-1], np.diff(times[order])
    return float(lengths[depth >= 1].sum()), float(lengths[depth >= 2].sum())


# Trace of a form by CUPTI: kernels, copies, and their overlap.

EVALUATIONS = 10


class PipelineTracer:
    """Tracer of a process, which CUPTI allows once; without CUPTI every profile has the reason."""

    def __init__(self) -> None:
        self._collector: ActivityCollector | None = None

    def profile(self, name: str, prepared: Prepared, make: Callable[[], Callable[[], None]]) -> JsonTable:
        """Return the profile of the form that `make` returns: values of an evaluation, or null with the reason."""
        try:
            return _profile(overlap(self._watched(name, prepared, make), name))
        except Exception as error:  # CUPTI has its own error types; a tool that fails loses only its values
            reason = str(error) or type(error).__name__
            return {"tool": "cupti", "values": {"overlap_share": {"value": None, "unit": "1", "reason": reason}}}

    def _watched(self, name: str, prepared: Prepared, make: Callable[[], Callable[[], None]]) -> Timeline:
        """Trace the form, made while CUPTI watches: an older graph need not show its kernels."""
        from prism_bench.profilers.cupti import ActivityCollector

        if self._collector is None:
            self._collector = ActivityCollector()
        prepared.flow.synchronize()
        with self._collector:
            evaluate = make()
            evaluate()
            prepared.flow.synchronize()
            with self._collector.range(name):
                for _ in range(EVALUATIONS):
                    evaluate()
                prepared.flow.synchronize()
        return self._collector.timeline()


def _profile(work: Overlap) -> JsonTable:
    seconds = {"busy_seconds": work.busy, "span_seconds": work.span, "shared_seconds": work.shared}
    values = {
        "overlap_share": _value(work.share, "1"),
        "kernels": _value(work.kernels / EVALUATIONS, "1"),
        "copies": _value(work.copies / EVALUATIONS, "1"),
        **{key: _value(value / EVALUATIONS, "s") for key, value in seconds.items()},
    }
    return {"tool": "cupti", "kernels": work.kernels, "values": values}


def _value(value: float | None, unit: str) -> JsonTable:
    return {"value": value, "unit": unit, "source": "activity records"}


# Session of a worker: verifies and times forms of pipelines.

FAMILY = "pipelines"
_ON_CPU = "one_stream"  # the form whose record has the time of the CPU


class PipelineSession:
    """A session on a backend that stays open.

    The first process only verifies, traces and times the CPU: a tracer cannot be removed from its process. The others
    only time.
    """

    def __init__(self, backend: Backend, catalogue: Catalogue, label: str, *, first: bool, timed: bool = True) -> None:
        self._backend, self._catalogue, self._label = backend, catalogue, label
        self._first, self._watches, self._tracer = first, timed and first and backend.name == "cuda", PipelineTracer()
        self._stages: dict[str, list[Entry]] = {}

    def task(self, name: str) -> CaseResult:
        """Verify `pipeline:form` in the first process, time it in the others."""
        known, _, form_name = name.partition(":")
        pipeline = pipelines([known])[0]
        try:
            with Prepared(pipeline, self._label, self._catalogue, self._backend) as prepared:
                return self._measured(prepared, form_name)
        except MemoryError as error:
            return self._result(pipeline, form_name, "skipped", f"out of memory: {error}")
        except BackendUnavailable as error:
            return self._result(pipeline, form_name, "skipped", str(error))
        except PrismBenchError as error:
            return self._result(pipeline, form_name, "failed", str(error))

    def _measured(self, prepared: Prepared, name: str) -> CaseResult:
        pipeline = prepared.pipeline
        if not self._first:
            return self._result(pipeline, name, "ok", measurements=tuple(self._times(prepared, name)))
        if pipeline.name not in self._stages:  # all forms run the same stages
            self._stages[pipeline.name] = check_stages(prepared)
        entries = self._stages[pipeline.name] + check_results(prepared, name)
        wrong = next((entry for entry in entries if not entry["passed"]), None)
        if wrong:
            reason = self._complaint(pipeline, wrong)
            return self._result(pipeline, name, "wrong", reason, verification=tuple(entries))
        code, profile = _moved(prepared, form(name, prepared), name), {}
        measurements: list[Measurement] = []
        if self._watches:
            profile = self._tracer.profile(f"{pipeline.name}:{name}", prepared, lambda: form(name, prepared))
        if self._watches and name == _ON_CPU:  # the float64 references one after the other, on NumPy
            with Prepared(pipeline, self._label, self._catalogue, NumpyBackend()) as on_cpu:
                measurements = timed("wall_time", _EndToEnd(on_cpu, form(_ON_CPU, on_cpu)), "cpu")
        return self._result(
            pipeline,
            name,
            "ok",
            verification=tuple(entries),
            code=code,
            profile=profile,
            measurements=tuple(measurements),
        )

    def _times(self, prepared: Prepared, name: str) -> list[Measurement]:
        evaluate, moves, on_device = form(name, prepared), name != "per_call", self._backend.name == "cuda"
        end_to_end = _EndToEnd(prepared, evaluate, moves)
        measurements = timed("end_to_end_time" if on_device else "wall_time", end_to_end)
        return measurements + (timed("steady_time", _Steady(prepared, evaluate)) if on_device and moves else [])

    def _complaint(self, pipeline: Pipeline, entry: Entry) -> str:
        where = f"{pipeline.name} on {self._backend.name}: {entry['output']}"
        if entry.get("error"):
            return f"{where}: {entry['error']}"
        return (
            f"{where}: {entry['differing']} of {entry['compared']} elements differ, the worst is "
            f"{entry['actual']:.9g}, reference {entry['expected']:.9g} ({entry['tolerance']})"
        )

    def _result(
        self, pipeline: Pipeline, name: str, status: Status, reason: str | None = None, **facts: Any
    ) -> CaseResult:
        workload = dict(pipeline.workloads.get(self._label, {}))
        text = ",".join(f"{axis}={value}" for axis, value in workload.items())
        cases = [stage.case for stage in placed(pipeline, self._label, self._catalogue)]
        return CaseResult(
            name=f"{pipeline.name}:{name}[{text}]",
            kernel=pipeline.name,
            variant=name,
            family=FAMILY,
            label=self._label,
            workload=workload,
            bytes=sum(case.sizes.bytes_moved for case in cases),
            flops=sum(case.sizes.flops or 0 for case in cases),
            status=status,
            reason=reason,
            **facts,
        )


def _moved(prepared: Prepared, evaluate: Callable[[], None], name: str) -> JsonTable:
    """Return the copies of one evaluation, counted where they are enqueued, and its launches."""
    before = vars(prepared.transfers).copy()
    _EndToEnd(prepared, evaluate, moves=name != "per_call")()
    moved = {key: value - before[key] for key, value in vars(prepared.transfers).items()}
    launches = sum(runnable.evidence().get("launches", 0) for runnable in prepared.runnables.values())
    return {"transfers": moved, "launches": launches, "lanes": 1 + max(lane.number for lane in prepared.lanes)}

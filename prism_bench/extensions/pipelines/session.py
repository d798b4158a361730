"""Session of one worker: verifies, times and traces forms of pipelines."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_bench.backends import Backend, Runnable
from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable, MeasurementInvalid, PrismBenchError
from prism_bench.extensions.pipelines.definitions import pipelines
from prism_bench.extensions.pipelines.pipeline import Pipeline, Prepared, form, placed, results_of
from prism_bench.measure import ClockGate, Criterion, sample
from prism_bench.profilers.timeline import COPY, KERNEL, Timeline
from prism_bench.record.measurement import Measurement, Sample
from prism_bench.record.run_record import CaseResult, JsonTable, Status
from prism_bench.run.verification import Entry, compare_outputs
from prism_bench.spec.arguments import FilledArray
from prism_bench.spec.inputs import InputArray, given

if TYPE_CHECKING:
    from prism_bench.profilers.cupti import ActivityCollector


# Verification of pipelines: every stage against its reference on its actual inputs, then the planted results.


def check_stages(prepared: Prepared) -> list[Entry]:
    """Evaluate once, stage by stage; return an entry per output, named `stage.output`, as records keep them."""
    prepared.begin()
    prepared.upload()
    entries = []
    for stage in prepared.stages:
        runnable = prepared.runnables[stage.stage.name]
        inputs = {array.name: _kept(runnable, array) for array in stage.case.spec.inputs}
        runnable()
        outputs = runnable.arrays([output.name for output in stage.case.spec.outputs])
        found = compare_outputs(prepared.backend, stage.case, inputs, outputs, 0)
        entries += [entry | {"output": f"{stage.stage.name}.{entry['output']}"} for entry in found]
    return entries


def _kept(runnable: Runnable, array: FilledArray) -> InputArray:
    """Return what the input holds now, as an input array."""
    held = runnable.arrays([array.name])[array.name]
    return given(held.get() if hasattr(held, "get") else held.copy(), array.dtype)


def check_results(prepared: Prepared, name: str) -> list[Entry]:
    """Evaluate in the form `name`; its results must equal those of one stream, and hold what was planted."""
    expected = _evaluated(prepared, "one_stream")
    found = _evaluated(prepared, name)
    different = [word for word in expected if not np.array_equal(expected[word], found[word], equal_nan=True)]
    complaint = f"{different[0]} is not what one stream makes of the same frame" if different else None
    if not complaint and prepared.pipeline.check:
        complaint = prepared.pipeline.check(found, prepared.axes)
    return [{"seed": 0, "output": f"results, {name}", "passed": complaint is None, "error": complaint}]


def _evaluated(prepared: Prepared, name: str) -> dict[str, np.ndarray]:
    """Return the results of an evaluation from the state that the pipeline was prepared with."""
    evaluate = form(name, prepared)
    prepared.begin()
    prepared.upload()
    evaluate()
    prepared.download()
    prepared.flow.synchronize()
    return {word: array.copy() for word, array in results_of(prepared).items()}


# Times of an evaluation: alone and from the host's memory, or one of many that are enqueued without waiting.

_BATCH_SECONDS = 20e-3  # of evaluations without waiting, so that the one wait at their end does not count
MOST = 2000
_CRITERIA = {
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
        self._count = max(2, min(MOST, round(_BATCH_SECONDS / max(estimate, 1e-9))))

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
    series = sample(once, _CRITERIA[metric], ClockGate())
    found = [Measurement(metric, subject, (tuple(one.seconds for one in series.samples),))]
    launches = tuple(one.launch_seconds for one in series.samples if one.launch_seconds is not None)
    return found + ([Measurement("launch_time", subject, (launches,))] if launches else [])


def end_to_end(prepared: Prepared, evaluate: Callable[[], None], name: str) -> list[Measurement]:
    """Return the time from the host's memory to the host's memory."""
    return timed("end_to_end_time", EndToEnd(prepared, evaluate, moves=name != "per_call"))


def steady(prepared: Prepared, evaluate: Callable[[], None]) -> list[Measurement]:
    """Return the time without waiting."""
    return timed("steady_time", Steady(prepared, evaluate))


# How much of the time in which a device worked it worked on several things at once.


@dataclass(frozen=True)
class Overlap:
    """Overlap in one named range.

    It has `kernels` and `copies`, seconds in which anything ran (`busy`), and in which two pieces of work or more did
    (`shared`); `span` is from the first start to the last end.
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
    """Return what ran between the begin and the end of the range called `name`, which must hold all of its work.

    MeasurementInvalid where the timeline has no such range or no work in it.
    """
    chosen = _inside(timeline, name)
    if not chosen.any():
        raise MeasurementInvalid(f"the timeline holds no work in a range '{name}'")
    start, kind = timeline.work.start[chosen], timeline.work.kind[chosen]
    end = start + timeline.work.length[chosen]
    busy, shared = depths(start, end)
    span = (end.max() - start.min()) * 1e-9
    return Overlap(int((kind == KERNEL).sum()), int((kind == COPY).sum()), float(span), busy * 1e-9, shared * 1e-9)


def _inside(timeline: Timeline, name: str) -> np.ndarray:
    chosen = np.zeros(len(timeline.work), bool)
    words = np.array(timeline.names, object)
    for place in np.flatnonzero(words[timeline.ranges.name] == name) if len(timeline.ranges) else ():
        begin, end = timeline.ranges.start[place], timeline.ranges.end[place]
        chosen |= (timeline.work.start >= begin) & (timeline.work.start < end)
    return chosen


def depths(start: np.ndarray, end: np.ndarray) -> tuple[float, float]:
    """How long at least one of the intervals is open, and how long at least two."""
    times = np.concatenate([start, end])
    steps = np.concatenate([np.ones(len(start), int), -np.ones(len(end), int)])
    order = np.lexsort((steps, times))  # at one time ends come first: what follows at once does not overlap
    depth, lengths = np.cumsum(steps[order])[:-1], np.diff(times[order])
    return float(lengths[depth >= 1].sum()), float(lengths[depth >= 2].sum())


# Trace of a form by CUPTI: kernels, copies, and the share that ran side by side.

EVALUATIONS = 10


class PipelineTracer:
    """The tracer of a process, which CUPTI allows once; without CUPTI every profile has the reason."""

    def __init__(self) -> None:
        self._collector: ActivityCollector | None = None

    def profile(self, name: str, prepared: Prepared, make: Callable[[], Callable[[], None]]) -> JsonTable:
        """Return the profile of the form that `make` makes: values of one evaluation, or null with the reason."""
        try:
            return _profile(overlap(self._watched(name, prepared, make), name))
        except Exception as error:  # CUPTI raises its own kinds of errors; a tool that fails costs its values alone
            reason = str(error) or type(error).__name__
            return {"tool": "cupti", "values": {"overlap_share": {"value": None, "unit": "1", "reason": reason}}}

    def _watched(self, name: str, prepared: Prepared, make: Callable[[], Callable[[], None]]) -> Timeline:
        """Trace the form, made while CUPTI watches: a graph that was made before need not show its kernels."""
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


def _profile(found: Overlap) -> JsonTable:
    seconds = {"busy_seconds": found.busy, "span_seconds": found.span, "shared_seconds": found.shared}
    values = {
        "overlap_share": _value(found.share, "1"),
        "kernels": _value(found.kernels / EVALUATIONS, "1"),
        "copies": _value(found.copies / EVALUATIONS, "1"),
        **{key: _value(value / EVALUATIONS, "s") for key, value in seconds.items()},
    }
    return {"tool": "cupti", "kernels": found.kernels, "values": values}


def _value(value: float | None, unit: str) -> JsonTable:
    return {"value": value, "unit": unit, "source": "activity records"}


# Session of one worker: verifies and times forms of pipelines.

FAMILY = "pipelines"
_ON_CPU = "one_stream"  # the form whose record holds the time of the CPU


class PipelineSession:
    """A session on a backend that stays open.

    The first process verifies, traces and times the CPU, and nothing else: a tracer cannot be removed from its process.
    The others only time.
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
        entries = self._verified(prepared, name) if self._first else []
        wrong = next((entry for entry in entries if not entry["passed"]), None)
        if wrong:
            reason = self._complaint(pipeline, wrong)
            return self._result(pipeline, name, "wrong", reason, verification=tuple(entries))
        evaluate = form(name, prepared)
        if not self._first:
            return self._result(pipeline, name, "ok", measurements=tuple(self._times(prepared, evaluate, name)))
        code = _moved(prepared, evaluate, name)
        profile = self._traced(prepared, name) if self._watches else {}
        return self._result(
            pipeline,
            name,
            "ok",
            verification=tuple(entries),
            code=code,
            profile=profile,
            measurements=tuple(self._on_cpu(pipeline)) if self._watches and name == _ON_CPU else (),
        )

    def _traced(self, prepared: Prepared, name: str) -> JsonTable:
        return self._tracer.profile(f"{prepared.pipeline.name}:{name}", prepared, lambda: form(name, prepared))

    def _verified(self, prepared: Prepared, name: str) -> list[Entry]:
        """Verify the stages once for all forms, which run the same ones, and the results of this form."""
        known = self._stages.get(prepared.pipeline.name)
        if known is None:
            known = self._stages[prepared.pipeline.name] = check_stages(prepared)
        return known + check_results(prepared, name)

    def _times(self, prepared: Prepared, evaluate: Callable[[], None], name: str) -> list[Measurement]:
        if self._backend.name != "cuda":
            return timed("wall_time", EndToEnd(prepared, evaluate, moves=name != "per_call"))
        return end_to_end(prepared, evaluate, name) + (steady(prepared, evaluate) if name != "per_call" else [])

    def _on_cpu(self, pipeline: Pipeline) -> list[Measurement]:
        """Time the float64 references one after the other, on NumPy."""
        with Prepared(pipeline, self._label, self._catalogue, NumpyBackend()) as prepared:
            return timed("wall_time", EndToEnd(prepared, form(_ON_CPU, prepared)), "cpu")

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
        cases = [one.case for one in placed(pipeline, self._label, self._catalogue)]
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
    EndToEnd(prepared, evaluate, moves=name != "per_call")()
    moved = {key: value - before[key] for key, value in vars(prepared.transfers).items()}
    launches = sum(runnable.evidence().get("launches", 0) for runnable in prepared.runnables.values())
    return {"transfers": moved, "launches": launches, "lanes": 1 + max(lane.number for lane in prepared.lanes)}

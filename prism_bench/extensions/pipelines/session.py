"""Session of one worker: verifies and times forms of pipelines."""

from collections.abc import Callable
from typing import Any

from prism_bench.backends import Backend
from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.extensions.pipelines.checking import check_results, check_stages
from prism_bench.extensions.pipelines.forms import form
from prism_bench.extensions.pipelines.known import pipelines
from prism_bench.extensions.pipelines.pipeline import Pipeline, placed
from prism_bench.extensions.pipelines.prepared import Prepared
from prism_bench.extensions.pipelines.timing import EndToEnd, end_to_end, steady, timed
from prism_bench.extensions.pipelines.tracing import PipelineTracer
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, JsonTable, Status
from prism_bench.run.verification import Entry

FAMILY = "pipelines"
ON_CPU = "one_stream"  # the form whose record holds the time of the CPU


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
            pipeline, name, "ok", verification=tuple(entries), code=code, profile=profile,
            measurements=tuple(self._on_cpu(pipeline)) if self._watches and name == ON_CPU else (),
        )  # fmt: skip

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
            return timed("wall_time", EndToEnd(prepared, form(ON_CPU, prepared)), "cpu")

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
            name=f"{pipeline.name}:{name}[{text}]", kernel=pipeline.name, variant=name, family=FAMILY,
            label=self._label, workload=workload, bytes=sum(case.sizes.bytes_moved for case in cases),
            flops=sum(case.sizes.flops or 0 for case in cases), status=status, reason=reason, **facts,
        )  # fmt: skip


def _moved(prepared: Prepared, evaluate: Callable[[], None], name: str) -> JsonTable:
    """Return the copies of one evaluation, counted where they are enqueued, and its launches."""
    before = vars(prepared.transfers).copy()
    EndToEnd(prepared, evaluate, moves=name != "per_call")()
    moved = {key: value - before[key] for key, value in vars(prepared.transfers).items()}
    launches = sum(runnable.evidence().get("launches", 0) for runnable in prepared.runnables.values())
    return {"transfers": moved, "launches": launches, "lanes": 1 + max(lane.number for lane in prepared.lanes)}

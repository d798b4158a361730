"""Trace of a form by CUPTI: kernels, copies, and the share that ran side by side."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from prism_bench.extensions.pipelines.overlap import Overlap, overlap
from prism_bench.extensions.pipelines.prepared import Prepared
from prism_bench.profilers.timeline import Timeline
from prism_bench.record.run_record import JsonTable

if TYPE_CHECKING:  # CUPTI is optional
    from prism_bench.profilers.cupti import ActivityCollector

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

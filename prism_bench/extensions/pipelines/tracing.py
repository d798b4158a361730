"""What CUPTI sees of a form: kernels, copies, and how much of it ran side by side."""

from collections.abc import Callable

from prism_bench.extensions.pipelines.prepared import Prepared
from prism_bench.profilers.overlap import overlap

EVALUATIONS = 10


class Tracer:
    """One for a process, as CUPTI allows; without CUPTI it says why of everything."""

    def __init__(self):
        self._collector = None

    def profile(self, name: str, prepared: Prepared, make: Callable[[], Callable[[], None]]) -> dict:
        """The profile of the form that `make` makes, as records keep it: values of one evaluation, or null with the
        reason.
        """
        try:
            return _profile(overlap(self._watched(name, prepared, make), name))
        except Exception as error:  # CUPTI has errors of its own kinds; a tool that fails costs its values alone
            reason = str(error) or type(error).__name__
            return {"tool": "cupti", "values": {"overlap_share": {"value": None, "unit": "1", "reason": reason}}}

    def _watched(self, name, prepared, make):
        """The form is made while CUPTI watches: a graph that was there before need not show its kernels."""
        from prism_bench.profilers.cupti import Collector

        if self._collector is None:
            self._collector = Collector()
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


def _profile(found):
    seconds = {"busy_seconds": found.busy, "span_seconds": found.span, "shared_seconds": found.shared}
    values = {
        "overlap_share": _value(found.share, "1"),
        "kernels": _value(found.kernels / EVALUATIONS, "1"),
        "copies": _value(found.copies / EVALUATIONS, "1"),
        **{key: _value(value / EVALUATIONS, "s") for key, value in seconds.items()},
    }
    return {"tool": "cupti", "kernels": found.kernels, "values": values}


def _value(value, unit):
    return {"value": value, "unit": unit, "source": "activity records"}

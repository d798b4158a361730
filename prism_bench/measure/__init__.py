"""Statistics, stopping rule, sampling and schedule of a measurement, on floats and callables."""

import sys

from prism_bench.measure.call_checks import keep
from prism_bench.measure.sampling import (
    ClockGate,
    Criterion,
    Series,
    median_interval,
    relative_half_width,
    sample,
    shuffled,
)

__all__ = ["ClockGate", "Criterion", "Series", "median_interval", "relative_half_width", "sample", "shuffled"]

keep("prism_bench.measure", sys.modules[__name__], ("sample",))
for _counted in (ClockGate, Criterion, Series):
    keep(f"prism_bench.measure.{_counted.__name__}", _counted)

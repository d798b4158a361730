"""Statistics, stopping rule, sampling and schedule of a measurement. Knows floats and callables, nothing else."""

import sys

from prism_bench.measure.clock_guard import keep
from prism_bench.measure.sampling import ClockGate, Series, sample
from prism_bench.measure.schedule import shuffled
from prism_bench.measure.statistics import median_interval, relative_half_width
from prism_bench.measure.stopping import Criterion

__all__ = ["ClockGate", "Criterion", "Series", "median_interval", "relative_half_width", "sample", "shuffled"]

keep("prism_bench.measure", sys.modules[__name__], ("sample",))
for _counted in (ClockGate, Criterion, Series):
    keep(f"prism_bench.measure.{_counted.__name__}", _counted)

"""Counting: statistics, stopping, sampling, schedule. Knows floats and callables, nothing else."""

from prism_bench.measure.sampling import ClockGate, Series, sample
from prism_bench.measure.schedule import shuffled
from prism_bench.measure.statistics import median_interval, relative_half_width
from prism_bench.measure.stopping import Criterion

__all__ = ["ClockGate", "Criterion", "Series", "median_interval", "relative_half_width", "sample", "shuffled"]

"""What the processes of one measurement say: their medians on a log scale, and how well those are known.

The error bar is the hierarchical bootstrap's: draw processes, then samples within each. A median's bootstrap
distribution is known in closed form, so its moments are computed and nothing is drawn: the same samples always give the
same verdict. J. Maritz, R. Jarrett, JASA 73 (1978) 194; F. Harrell, C. Davis, Biometrika 69 (1982) 635.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import exp

import numpy as np
from scipy.special import betainc

from prism_bench.measurement import Measurement

_SAME = 1e-7  # relative; closer samples differ only by how they were rounded


@dataclass(frozen=True)
class Medians:
    """The log of each process's median (`logs`), that median's own variance (`variances`), and the relative
    `resolution` of the samples: the smallest difference that the clock showed.
    """

    logs: tuple[float, ...]
    variances: tuple[float, ...]
    resolution: float = 0.0

    @property
    def centre(self) -> float:
        """The mean of the logs: the geometric mean of the processes' medians."""
        return float(np.mean(self.logs))

    @property
    def total(self) -> float:
        """The variance between the processes' medians, their sampling included; NaN for a single process."""
        return float(np.var(self.logs, ddof=1)) if len(self.logs) > 1 else float("nan")

    @property
    def within(self) -> float:
        """The mean variance of a median that comes from its process's own samples."""
        return float(np.mean(self.variances))

    @property
    def variance(self) -> float:
        """The bootstrap's variance of `centre`; NaN for a single process.

        Drawing with replacement makes the spread of n processes too narrow by (n - 1) / n, which matters for three or
        five: it is given back. T. Hesterberg, The American Statistician 69 (2015) 371, section 3.
        """
        count = len(self.logs)
        return (self.total + self.within * count / (count - 1)) / count if count > 1 else float("nan")

    @property
    def typical(self) -> float:
        """The geometric mean of the processes' medians, in the samples' unit."""
        return exp(self.centre)

    def __add__(self, other: "Medians") -> "Medians":
        """The processes of both."""
        return Medians(self.logs + other.logs, self.variances + other.variances, min(self.resolution, other.resolution))

    def only(self, chosen: Sequence[int]) -> "Medians":
        """The same for the processes of those positions."""
        return Medians(tuple(self.logs[i] for i in chosen), tuple(self.variances[i] for i in chosen), self.resolution)


def medians(processes: Sequence[Sequence[float]]) -> Medians:
    """The medians of the processes' positive samples; empty processes are left out."""
    groups = [np.sort(np.log(np.asarray(process, float))) for process in processes if len(process)]
    moments = [_moments(group) for group in groups]
    logs, variances = zip(*moments, strict=True) if moments else ((), ())
    return Medians(logs, variances, _resolution(groups))


def cycles(measurement: Measurement) -> Medians | None:
    """The same for the samples in cycles of the SM clock; None unless every sample has its clock."""
    pairs = list(zip(measurement.processes, measurement.clocks, strict=False))
    whole = len(pairs) == len(measurement.processes) and all(len(times) == len(clocks) for times, clocks in pairs)
    if not whole or any(clocks and min(clocks) <= 0 for _, clocks in pairs):
        return None
    return medians([np.multiply(times, clocks) for times, clocks in pairs])


def _moments(ordered):
    """Mean and variance of the median over all bootstrap samples of the ordered values."""
    weights = _weights(len(ordered))
    mean = float(weights @ ordered)
    return mean, float(weights @ (ordered - mean) ** 2)


@cache
def _weights(count):
    """How likely each order statistic is the median of a bootstrap sample: exact for odd counts."""
    half = (count + 1) / 2
    steps = betainc(half, half, np.arange(count + 1) / count)
    return np.diff(steps)


def _resolution(groups):
    steps = np.diff(np.sort(np.concatenate(groups))) if groups else np.empty(0)
    steps = steps[steps > _SAME]
    return float(steps.min()) if len(steps) else 0.0

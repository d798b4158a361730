"""Medians of the processes of one measurement, on a log scale, with how well they are known.

A median's bootstrap distribution is known in closed form, so its moments are computed and nothing is drawn: the same
samples always give the same verdict. J. Maritz, R. Jarrett, JASA 73 (1978) 194; F. Harrell, C. Davis, Biometrika 69
(1982) 635. The error bar of several processes is that of their medians.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import exp, fsum

import numpy as np
from numpy.typing import NDArray

from prism_bench.analysis.distributions import incomplete_beta
from prism_bench.record.measurement import Measurement

Floats = NDArray[np.float64]
SAMPLED = 0.25  # the share of their samples' variance below which the spread of medians is luck or rounding
_SAME = 1e-7  # relative; closer samples differ only by how they were rounded


@dataclass(frozen=True)
class Medians:
    """Medians of the processes: their `logs`, and the own variance of each (`variances`).

    `resolution`, relative, is the smallest difference between samples that the clock showed.
    """

    logs: tuple[float, ...]
    variances: tuple[float, ...]
    resolution: float = 0.0

    @cached_property
    def centre(self) -> float:
        """The mean of the logs: the geometric mean of the processes' medians."""
        return fsum(self.logs) / len(self.logs) if self.logs else float("nan")

    @cached_property
    def total(self) -> float:
        """The variance between the processes' medians, their sampling included; NaN for a single process."""
        if len(self.logs) < 2:
            return float("nan")
        centre = self.centre
        return fsum((log - centre) ** 2 for log in self.logs) / (len(self.logs) - 1)

    @cached_property
    def within(self) -> float:
        """The mean variance of a median that comes from its process's own samples."""
        return fsum(self.variances) / len(self.variances) if self.variances else float("nan")

    @cached_property
    def spread(self) -> float:
        """The difference between the slowest and the fastest process, in logs."""
        return max(self.logs) - min(self.logs)

    @cached_property
    def variance(self) -> float:
        """The variance of `centre`; NaN for a single process.

        The processes' medians differ by what the processes differ by and by their own sampling, so that `total` holds
        both. Where they agree far better than their samples allow, as rounded ones may, the samples have a word too.
        """
        count = len(self.logs)
        return max(self.total, SAMPLED * self.within) / count if count > 1 else float("nan")

    @property
    def typical(self) -> float:
        """The geometric mean of the processes' medians, in the samples' unit."""
        return exp(self.centre)

    def __add__(self, other: "Medians") -> "Medians":
        """Return the processes of both."""
        return Medians(self.logs + other.logs, self.variances + other.variances, min(self.resolution, other.resolution))

    def only(self, chosen: Sequence[int]) -> "Medians":
        """Return the same for the processes of those positions."""
        return Medians(tuple(self.logs[i] for i in chosen), tuple(self.variances[i] for i in chosen), self.resolution)


def medians(processes: Sequence[Sequence[float]]) -> Medians:
    """Return the medians of the processes' positive samples; empty processes are left out."""
    groups = [np.sort(np.log(np.asarray(process, float))) for process in processes if len(process)]
    moments = [_moments(group) for group in groups]
    return Medians(tuple(log for log, _ in moments), tuple(error for _, error in moments), _resolution(groups))


def medians_of_rows(logs: Floats) -> list[Medians]:
    """Return the medians of many cases at once, from the logs of their samples: (cases, processes, samples)."""
    ordered = np.sort(logs, axis=-1)
    weights = _weights(int(logs.shape[-1]))
    means: Floats = ordered @ weights
    variances: Floats = (ordered - means[..., None]) ** 2 @ weights
    return [Medians(tuple(a), tuple(b)) for a, b in zip(means.tolist(), variances.tolist(), strict=True)]


def cycles(measurement: Measurement) -> Medians | None:
    """Return the medians in cycles of the SM clock; None unless every sample has its clock."""
    pairs = list(zip(measurement.processes, measurement.clocks, strict=False))
    whole = len(pairs) == len(measurement.processes) and all(len(times) == len(clocks) for times, clocks in pairs)
    if not whole or any(clocks and min(clocks) <= 0 for _, clocks in pairs):
        return None
    return medians([np.multiply(times, clocks).tolist() for times, clocks in pairs])


def _moments(ordered: Floats) -> tuple[float, float]:
    """Return mean and variance of the median over all bootstrap samples of the ordered values."""
    weights = _weights(len(ordered))
    mean = float(weights @ ordered)
    return mean, float(weights @ (ordered - mean) ** 2)


@cache
def _weights(count: int) -> Floats:
    """Return how likely each order statistic is the median of a bootstrap sample: exact for odd counts."""
    half = (count + 1) / 2
    steps = incomplete_beta(half, half, np.arange(count + 1) / count)
    return np.diff(steps)


def _resolution(groups: Sequence[Floats]) -> float:
    steps = np.diff(np.sort(np.concatenate(groups))) if groups else np.empty(0)
    steps = steps[steps > _SAME]
    return float(steps.min()) if len(steps) else 0.0

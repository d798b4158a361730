"""Estimate of the ratio of B's time to A's from the medians of processes, with its error and placement levels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import comb, exp, expm1, fsum, hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from prism_bench.measure.distributions import incomplete_beta, student, student_quantile
from prism_bench.record.measurement import Measurement

# Medians of the processes of one measurement, on a log scale, with their variances.
#
# A median's bootstrap distribution is known in closed form, so its moments are computed, not drawn: the same samples
# always give the same verdict. J. Maritz, R. Jarrett, JASA 73 (1978) 194; F. Harrell, C. Davis, Biometrika 69 (1982)
# 635. The error bar of several processes is that of their medians.

_Floats = NDArray[np.float64]
SAMPLED = 0.25  # the share of their samples' variance below which the spread of medians is luck or rounding
_SAME = 1e-7  # relative; closer samples differ only by how they were rounded


@dataclass(frozen=True)
class Medians:
    """Medians of the processes: their `logs`, and the variance of each from its samples (`variances`).

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
        """The mean variance of a median from the samples of its process."""
        return fsum(self.variances) / len(self.variances) if self.variances else float("nan")

    @cached_property
    def spread(self) -> float:
        """The difference between the slowest and the fastest process, in logs."""
        return max(self.logs) - min(self.logs)

    @cached_property
    def variance(self) -> float:
        """The variance of `centre`; NaN for a single process.

        `total` contains the differences between processes and their sampling. If the medians agree far better than
        their samples allow, as rounded times may, a share of the samples' variance is the lower limit.
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
        """Return the medians of the processes at those positions."""
        return Medians(tuple(self.logs[i] for i in chosen), tuple(self.variances[i] for i in chosen), self.resolution)


def medians(processes: Sequence[Sequence[float]]) -> Medians:
    """Return the medians of the processes' positive samples; empty processes are left out."""
    groups = [np.sort(np.log(np.asarray(process, float))) for process in processes if len(process)]
    means: list[float] = []
    variances: list[float] = []
    for group in groups:  # mean and variance of the median over all bootstrap samples
        weights = _weights(len(group))
        means.append(float(weights @ group))
        variances.append(float(weights @ (group - means[-1]) ** 2))
    steps = np.diff(np.sort(np.concatenate(groups))) if groups else np.empty(0)
    steps = steps[steps > _SAME]
    return Medians(tuple(means), tuple(variances), float(steps.min()) if len(steps) else 0.0)


def medians_of_rows(logs: _Floats) -> list[Medians]:
    """Return the medians of many cases at once, from the logs of their samples: (cases, processes, samples)."""
    ordered = np.sort(logs, axis=-1)
    weights = _weights(int(logs.shape[-1]))
    means: _Floats = ordered @ weights
    variances: _Floats = (ordered - means[..., None]) ** 2 @ weights
    return [Medians(tuple(a), tuple(b)) for a, b in zip(means.tolist(), variances.tolist(), strict=True)]


def cycles(measurement: Measurement) -> Medians | None:
    """Return the medians in cycles of the SM clock; None unless every sample has its clock."""
    pairs = list(zip(measurement.processes, measurement.clocks, strict=False))
    whole = len(pairs) == len(measurement.processes) and all(len(times) == len(clocks) for times, clocks in pairs)
    if not whole or any(clocks and min(clocks) <= 0 for _, clocks in pairs):
        return None
    return medians([np.multiply(times, clocks).tolist() for times, clocks in pairs])


@cache
def _weights(count: int) -> _Floats:
    """Return the probability of each order statistic to be the median of a bootstrap sample: exact for odd counts."""
    half = (count + 1) / 2
    steps = np.array([incomplete_beta(half, half, place / count) for place in range(count + 1)])
    return np.diff(steps)


# Estimate of a ratio: B over A, with its error and the smallest detectable change.

ALPHA, POWER = 0.01, 0.95  # of the smallest detectable change
OUTGROWN = 4.0  # times the stored variance: beyond it the machine is noisier now (F of 8 and 10 at the 2.5 % level)


@cache
def quantile(chance: float, freedom: float) -> float:
    """Return the quantile of Student's t."""
    return student_quantile(freedom, chance)


@cache
def reach(freedom: float) -> float:
    """Return the size, in standard errors, of a change that is found at the 1 % level in 95 of 100 cases."""
    return quantile(1 - ALPHA / 2, freedom) + quantile(POWER, freedom)


@dataclass(frozen=True)
class Spread:
    """The variance of a process's log median, known with `freedom` degrees; `within` is the samples' share of it.

    `runs` is the variance between runs, if the sides are different runs. `earlier` counts the runs of side A from which
    the spread was learned; 0 if it was learned elsewhere.
    """

    variance: float
    freedom: float
    within: float = 0.0
    runs: float = 0.0
    earlier: int = 0

    @property
    def between(self) -> float:
        """The variance between processes: without the samples' share."""
        return max(self.variance - self.within, 0.0)

    @property
    def lasting(self) -> float:
        """The variance of the difference of two sides that more processes do not reduce: that between runs."""
        return self.runs * (1 + 1 / max(self.earlier, 1))

    def of(self, processes_a: int, processes_b: int) -> float:
        """Return the variance of the difference of two sides of that many processes."""
        return self.variance * (1 / processes_a + 1 / processes_b) + self.lasting


@dataclass(frozen=True)
class Estimate:
    """The `log` of B over A, its standard `error` and degrees of `freedom`; NaN where a side has a single process."""

    log: float
    error: float
    freedom: float

    @property
    def ratio(self) -> float:
        """B over A: above 1 where B takes longer."""
        return exp(self.log)

    @property
    def p(self) -> float:
        """The two-sided p-value of the difference; 1 if the error is unknown."""
        if not self.freedom or np.isnan(self.error):
            return 1.0
        if self.error == 0:
            return 1.0 if self.log == 0 else 0.0
        return 2 * student(self.freedom, -abs(self.log) / self.error)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ratio's interval; from 0 to infinity with too few processes."""
        if not self.freedom or np.isnan(self.error):
            return 0.0, float("inf")
        half = quantile((1 + confidence) / 2, self.freedom) * self.error
        return exp(self.log - half), exp(self.log + half)

    def widened(self, factor: float) -> "Estimate":
        """Return the estimate with its error multiplied."""
        return self if factor == 1 else Estimate(self.log, self.error * factor, self.freedom)

    def without(self, log: float, error: float) -> "Estimate":
        """Return the estimate divided by a shift, given by its log and the error of the log."""
        return Estimate(self.log - log, hypot(self.error, error), self.freedom) if log or error else self


def larger(stored: Spread | None, learned: Spread | None) -> Spread | None:
    """Return the larger of a stored noise floor and the spread of earlier runs, with the variance between runs."""
    if stored is None or learned is None:
        return stored or learned
    if stored.variance > learned.variance:
        return replace(learned, variance=stored.variance, freedom=stored.freedom)
    return learned


def pooled(*sides: Medians) -> Spread:
    """Return the spread of process medians around the centre of their side."""
    freedom = sum(len(side.logs) - 1 for side in sides)
    if freedom < 1:
        return Spread(float("nan"), 0)
    squares = fsum(side.total * (len(side.logs) - 1) for side in sides if len(side.logs) > 1)
    within = fsum(side.within for side in sides) / len(sides)
    return Spread(squares / freedom, freedom, within)


def estimate(a: Medians, b: Medians, known: Spread | None = None) -> Estimate:
    """Return B over A. A spread known from A/A measurement is weighed in by its degrees of freedom.

    Few processes estimate their spread badly: three that happen to agree would make any difference certain. Weighing
    variances by their degrees of freedom is the moderated t of G. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3.
    Processes that agree better than the known spread do not reduce it: they may all be on one of two levels. If they
    differ by much more, the machine is noisier now and only they count. Processes of A from which the spread was
    learned are not counted twice.
    """
    freedom = max(len(a.logs) - 1, 0) + max(len(b.logs) - 1, 0)
    variance = a.variance + b.variance
    log = b.centre - a.centre
    if known is None or not known.freedom:
        is_known = freedom and variance == variance
        return Estimate(log, sqrt(variance), freedom) if is_known else Estimate(log, float("nan"), 0)
    prior = known.of(len(a.logs), len(b.logs))
    if known.earlier:
        newest = Spread(b.variance * len(b.logs), len(b.logs) - 1, runs=known.runs, earlier=known.earlier)
        variance, freedom = newest.of(len(a.logs), len(b.logs)), int(newest.freedom)
    if variance != variance:
        return Estimate(log, sqrt(prior), known.freedom)
    if variance > (OUTGROWN * (1 + 2 / freedom) if known.earlier else OUTGROWN) * prior:
        return Estimate(log, sqrt(variance), freedom)
    together = freedom + known.freedom
    return Estimate(log, sqrt(max(prior, (freedom * variance + known.freedom * prior) / together)), together)


def smallest_change(spread: Spread, processes_a: int, processes_b: int) -> float:
    """Return the relative change that these numbers of processes find at the 1 % level in 95 of 100 cases."""
    if not spread.freedom or not processes_a or not processes_b:
        return float("inf")
    freedom = spread.freedom + (processes_b - 1 if spread.earlier else 0)
    return expm1(reach(freedom) * sqrt(spread.of(processes_a, processes_b)))


# Placement levels: differences between processes of equal code that last as long as the processes.
#
# A process may be placed well or badly (memory, clock, other tenants) and keep its level until it ends. Three processes
# of either side may then differ as two kernels would, without any spread within a side. Enough processes exclude this:
# the chance that processes dealt at random are separated, or nearly so, becomes small enough. With fewer processes, a
# difference proves nothing if processes of one side differ by as much anywhere in the suite.

# The chance of complete separation below which levels explain no difference: 13 processes a side. It is that small
# because one or two processes on the wrong side leave the difference almost as large, and are far more likely.
SUPPORTED = 2e-7
TRIMMED = 0.01  # the share of cases whose stray processes are no evidence about the other cases
STALE = 16.0  # times the stored variance: an F of 8 and 8 degrees of freedom that one case in 3,000 reaches
WITNESSES = 20  # fewer cases may show no level by luck
FEW = 5  # fewer processes a side rarely show a level in one case, so no case is left out


@cache
def supported(processes_a: int, processes_b: int) -> bool:
    """Return whether these numbers of processes exclude that chance dealt them into two sides.

    Of all ways to choose A's processes, two separate the sides completely: the smallest p of a permutation test.
    """
    return processes_a > 0 < processes_b and 2 / comb(processes_a + processes_b, processes_a) <= SUPPORTED


NEEDED = next(count for count in range(1, 99) if supported(count, count))


def level_floor(sides: Sequence[tuple[Medians, Medians]]) -> float:
    """Return the log difference between processes of one side that this suite shows: nearly the largest of all cases.

    With few processes a side no case is left out; with more, the 1 % of the cases that stray most are.
    """
    spreads = sorted((max(_spread(a), _spread(b)) for a, b in sides), reverse=True)
    few = any(min(len(a.logs), len(b.logs)) < FEW for a, b in sides)
    return spreads[0 if few else min(int(TRIMMED * len(spreads)), len(spreads) - 1)] if spreads else 0.0


def stale_floor(sides: Sequence[tuple[Medians, Medians, float]]) -> float:
    """Return the level of cases with a known noise that no longer holds.

    0 unless the variance of more than 1 % of them exceeds the known variance by a factor (the third value) that chance
    excludes.
    """
    spreads = sorted((max(_spread(a), _spread(b)) for a, b, factor in sides if factor > STALE), reverse=True)
    trimmed = int(TRIMMED * len(sides))
    return spreads[trimmed] if len(spreads) > trimmed else 0.0


def _spread(side: Medians) -> float:
    return side.spread if side.logs else 0.0

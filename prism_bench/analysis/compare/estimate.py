"""Estimate of a ratio from the medians of processes: how much longer B takes than A, with its error."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import comb, exp, expm1, fsum, hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from prism_bench.analysis.distributions import incomplete_beta, student, student_quantile
from prism_bench.record.measurement import Measurement

# Medians of the processes of one measurement, on a log scale, with how well they are known.
#
# A median's bootstrap distribution is known in closed form, so its moments are computed and nothing is drawn: the same
# samples always give the same verdict. J. Maritz, R. Jarrett, JASA 73 (1978) 194; F. Harrell, C. Davis, Biometrika 69
# (1982) 635. The error bar of several processes is that of their medians.

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


# Estimate of a ratio: how much longer B takes than A, with its error and the smallest change that can be seen.

ALPHA, POWER = 0.01, 0.95  # of the smallest change that counts as detectable
OUTGROWN = 4.0  # times the stored variance: beyond it the machine is noisier now (F of 8 and 10 at the 2.5 % level)


@cache
def quantile(chance: float, freedom: float) -> float:
    """Return the quantile of Student's t."""
    return student_quantile(freedom, chance)


@cache
def reach(freedom: float) -> float:
    """Return how many standard errors a change must measure to be found at the 1 % level in 95 of 100 cases."""
    return quantile(1 - ALPHA / 2, freedom) + quantile(POWER, freedom)


@dataclass(frozen=True)
class Spread:
    """The variance of a process's log median, known with `freedom` degrees; `within` is the samples' share of it.

    `runs` is the variance of what all processes of a run have in common, where the sides are different runs. `earlier`
    counts the runs that are side A and taught the spread; 0 where it was learned elsewhere.
    """

    variance: float
    freedom: float
    within: float = 0.0
    runs: float = 0.0
    earlier: int = 0

    @property
    def between(self) -> float:
        """What is left of the variance when the samples' share is taken off: the processes differ."""
        return max(self.variance - self.within, 0.0)

    @property
    def lasting(self) -> float:
        """The variance of the difference of two sides that more processes do not reduce: they are different runs."""
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
        """How likely so large a difference is where there is none (two-sided); 1 where that is unknown."""
        if not self.freedom or np.isnan(self.error):
            return 1.0
        if self.error == 0:
            return 1.0 if self.log == 0 else 0.0
        return 2 * student(self.freedom, -abs(self.log) / self.error)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ratio's interval; from 0 to infinity where there are too few processes for one."""
        if not self.freedom or np.isnan(self.error):
            return 0.0, float("inf")
        half = quantile((1 + confidence) / 2, self.freedom) * self.error
        return exp(self.log - half), exp(self.log + half)

    def widened(self, factor: float) -> "Estimate":
        """Return the same with the error multiplied."""
        return self if factor == 1 else Estimate(self.log, self.error * factor, self.freedom)

    def without(self, log: float, error: float) -> "Estimate":
        """Return the same divided by a shift, of which the log is known with that error."""
        return Estimate(self.log - log, hypot(self.error, error), self.freedom) if log or error else self


def larger(stored: Spread | None, learned: Spread | None) -> Spread | None:
    """Return the larger of a stored noise floor and what earlier runs showed, with what those runs differ by."""
    if stored is None or learned is None:
        return stored or learned
    return (
        replace(learned, variance=stored.variance, freedom=stored.freedom)
        if stored.variance > learned.variance
        else learned
    )


def pooled(*sides: Medians) -> Spread:
    """Return the spread of process medians around each side's own centre."""
    freedom = sum(len(side.logs) - 1 for side in sides)
    if freedom < 1:
        return Spread(float("nan"), 0)
    squares = fsum(side.total * (len(side.logs) - 1) for side in sides if len(side.logs) > 1)
    within = fsum(side.within for side in sides) / len(sides)
    return Spread(squares / freedom, freedom, within)


def estimate(a: Medians, b: Medians, known: Spread | None = None) -> Estimate:
    """Return B over A. A spread known from A/A measurement is weighed in by its degrees of freedom.

    Few processes know their own spread badly: three that happen to agree would make any difference certain. Weighing
    variances by their degrees of freedom is the moderated t of G. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3.
    Processes that agree better than is known take nothing off it: they may all be on one of two levels. Where they
    differ by much more, the machine is noisier now and they alone count. Processes of A that taught the spread are not
    counted twice.
    """
    freedom = max(len(a.logs) - 1, 0) + max(len(b.logs) - 1, 0)
    own = a.variance + b.variance
    log = b.centre - a.centre
    if known is None or not known.freedom:
        return Estimate(log, sqrt(own), freedom) if freedom and own == own else Estimate(log, float("nan"), 0)
    prior = known.of(len(a.logs), len(b.logs))
    if known.earlier:
        alone = Spread(b.variance * len(b.logs), len(b.logs) - 1, runs=known.runs, earlier=known.earlier)
        own, freedom = alone.of(len(a.logs), len(b.logs)), int(alone.freedom)
    if own != own:
        return Estimate(log, sqrt(prior), known.freedom)
    if own > (OUTGROWN * (1 + 2 / freedom) if known.earlier else OUTGROWN) * prior:
        return Estimate(log, sqrt(own), freedom)
    together = freedom + known.freedom
    return Estimate(log, sqrt(max(prior, (freedom * own + known.freedom * prior) / together)), together)


def smallest_change(spread: Spread, processes_a: int, processes_b: int) -> float:
    """Return the relative change that so many processes a side find at the 1 % level in 95 of 100 cases."""
    if not spread.freedom or not processes_a or not processes_b:
        return float("inf")
    freedom = spread.freedom + (processes_b - 1 if spread.earlier else 0)
    return expm1(reach(freedom) * sqrt(spread.of(processes_a, processes_b)))


# Placement levels of processes: what a difference between two groups of processes proves, however they differ.
#
# A process may be placed well or badly (memory, clock, other tenants) and keep its level until it ends. Three processes
# of either side then differ as two kernels would, without any spread within a side. Two answers follow. Enough
# processes exclude it: the chance that processes dealt at random are separated, or nearly so, becomes small enough. And
# where processes of one side differ by some level anywhere in the suite, a difference of that size proves nothing.

# The chance of complete separation from which on levels explain no difference: 13 processes a side. It is that small
# because one process or two on the wrong side leave the difference almost as large, and are far more likely.
SUPPORTED = 2e-7
TRIMMED = 0.01  # the share of cases whose processes may stray alone, without witness against the others
STALE = 16.0  # times the stored variance: an F of 8 and 8 degrees of freedom that one case in 3,000 reaches
WITNESSES = 20  # cases, fewer of which may show no level by luck
FEW = 5  # fewer processes a side rarely show a level in one case, so no case is left out


@cache
def supported(processes_a: int, processes_b: int) -> bool:
    """Return whether so many processes a side exclude that they were dealt into two sides by chance.

    Two in all ways to choose A's processes separate the sides as far as possible: the smallest p of a permutation test.
    """
    return processes_a > 0 < processes_b and 2 / comb(processes_a + processes_b, processes_a) <= SUPPORTED


NEEDED = next(count for count in range(1, 99) if supported(count, count))


def level_floor(sides: Sequence[tuple[Medians, Medians]]) -> float:
    """Return the log difference between processes of one side that this suite shows: nearly the largest of all cases.

    Only a few processes a side show too little to leave any case out; of more, 1 % of the cases may stray alone.
    """
    spreads = sorted((max(_spread(a), _spread(b)) for a, b in sides), reverse=True)
    few = any(min(len(a.logs), len(b.logs)) < FEW for a, b in sides)
    return spreads[0 if few else min(int(TRIMMED * len(spreads)), len(spreads) - 1)] if spreads else 0.0


def stale_floor(sides: Sequence[tuple[Medians, Medians, float]]) -> float:
    """Return the same of cases whose noise is known, where it no longer holds.

    0 unless the variance of more than 1 % of them exceeds the known one by a factor (the third value) that chance
    excludes.
    """
    spreads = sorted((max(_spread(a), _spread(b)) for a, b, factor in sides if factor > STALE), reverse=True)
    alone = int(TRIMMED * len(sides))
    return spreads[alone] if len(spreads) > alone else 0.0


def _spread(side: Medians) -> float:
    return side.spread if side.logs else 0.0

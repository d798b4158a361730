"""Estimate of a ratio: how much longer B takes than A, with its error and the smallest change that can be seen."""

from dataclasses import dataclass, replace
from functools import cache
from math import exp, expm1, fsum, hypot, sqrt

import numpy as np

from prism_bench.analysis.compare.medians import Medians
from prism_bench.analysis.distributions import student, student_quantile

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

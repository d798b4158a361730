"""Proposals for steps that are close to each other: a walk from step to step loses the second of two such steps.

Where the means of the three runs before and after a run differ, a window is cut into pieces of constant level by
dynamic programming: with the smallest squared error, where every change costs PENALTY variances (B. Jackson et al.,
IEEE Signal Processing Letters 12 (2005) 105). That is only a proposal: `detection` tests every change of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy

from prism_bench.analysis.trend.runs import Floats, SeriesRuns
from prism_bench.analysis.trend.walk import CONFIRMED, SETTLED

JUMP = 3.6  # standard errors of a difference between two means of CONFIRMED runs
PENALTY = 16.0  # variances that a change must explain: about three times the log of the number of runs
CONTEXT = 12  # runs before and after the jumps, by whose levels they differ from noise
_TAME = 3.0  # standard deviations from the median of the neighbours, to which a run is drawn in


@dataclass(frozen=True)
class Proposal:
    """Changes of level at the places `changes`, all in the window from place `start` to before `end` of the series."""

    start: int
    end: int
    changes: tuple[int, ...]


def proposals(series: SeriesRuns, floor: float) -> Iterator[Proposal]:
    """Yield the proposed changes of each window in which the level jumps."""
    kept, middles = series.kept, series.middles
    sigma = max(series.jitter, floor / 10)
    tame = numpy.clip(series.plain, middles - _TAME * sigma, middles + _TAME * sigma)
    for start, end in _windows(tame, max(JUMP * sigma * sqrt(2 / CONFIRMED), 0.75 * floor)):
        cuts = _cuts(tame[start:end], PENALTY * sigma**2, SETTLED if start == 0 else CONFIRMED)
        if cuts:
            last = kept[end] if end < len(kept) else len(series.values)
            yield Proposal(int(kept[start]), int(last), tuple(int(kept[start + cut]) for cut in cuts))


def _windows(values: Floats, least: float) -> list[tuple[int, int]]:
    """Return start and end of the stretches with jumps of at least `least`, with their context."""
    sums: Floats = numpy.concatenate([[0.0], numpy.cumsum(values)])
    means = (sums[CONFIRMED:] - sums[:-CONFIRMED]) / CONFIRMED
    jumps = numpy.flatnonzero(numpy.abs(means[CONFIRMED:] - means[:-CONFIRMED]) >= least) + CONFIRMED
    if not len(jumps):
        return []
    groups = numpy.split(jumps, numpy.flatnonzero(numpy.diff(jumps) > 2 * CONTEXT) + 1)
    return [(max(0, int(group[0]) - CONTEXT), min(len(values), int(group[-1]) + CONTEXT)) for group in groups]


def _cuts(values: Floats, penalty: float, first: int) -> list[int]:
    """Return where to cut for the least squared errors and penalties; the first piece has `first` values or more."""
    count = len(values)
    sums: Floats = numpy.concatenate([[0.0], numpy.cumsum(values)])
    squares: Floats = numpy.concatenate([[0.0], numpy.cumsum(values**2)])
    cost, before = numpy.full(count + 1, numpy.inf), numpy.zeros(count + 1, int)
    cost[0] = -penalty
    lengths = numpy.arange(count, 0, -1)
    for end in range(CONFIRMED, count + 1):
        starts = slice(end - CONFIRMED + 1)
        errors = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / lengths[count - end :][starts]
        totals = cost[starts] + errors + penalty
        if end < first:
            totals[0] = numpy.inf
        before[end] = best = int(totals.argmin())
        cost[end] = totals[best]
    cuts: list[int] = []
    end = count
    while end and before[end]:
        end = int(before[end])
        cuts.append(end)
    return cuts[::-1]

"""Where a new level might begin, night by night: what the tests of `detection` are then asked about."""

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy
from scipy.ndimage import median_filter

from prism_bench.analysis.trend.nights import Nights

CONFIRMED = 3  # nights in a row that must hold a new level
SETTLED = 8  # nights that a level has lasted before it can be left
WINDOW = 31  # the newest nights of a piece, whose median is its present level


@dataclass(frozen=True)
class LevelRun:
    """Nights in a row, from place `began` of the series to before `ended`, that lie nearer to a level of their own."""

    began: int
    ended: int


class Walk:
    """The walk over the nights of a series that are not odd, with a look at the newest ones from each of them.

    `sigmas` standard errors are what a change must reach later: runs that cannot are passed over here.
    """

    def __init__(self, nights: Nights, floor: float, sigmas: float):
        self._floor = floor
        self._kept = numpy.flatnonzero(~nights.odd)
        self._values = nights.values[self._kept]
        self._plain = self._values.tolist()
        self._newest, self._rolling = _middle_of_three(self._values), median_filter(self._values, WINDOW)
        self._least = sigmas * jitter(self._values)

    def runs(self, start: int) -> Iterator[LevelRun]:
        """The runs of a piece that begins at place `start`, in the order in which their last nights came."""
        settled = CONFIRMED if start else SETTLED
        start = int(numpy.searchsorted(self._kept, start))
        levels, first = self._levels(start), start + settled + CONFIRMED - 1
        away = self._newest[first:] - levels[first - CONFIRMED : len(levels) - CONFIRMED]
        for place in numpy.flatnonzero(numpy.abs(away) >= max(self._floor, self._least / sqrt(WINDOW))).tolist():
            night, change = first + place, float(away[place])
            began = self._began(night, start + settled, float(levels[night - CONFIRMED]), change)
            length = night + 1 - began
            if length >= CONFIRMED and abs(change) >= self._least / sqrt(length):
                yield LevelRun(int(self._kept[began]), int(self._kept[night]) + 1)

    def _levels(self, start):
        """At each night from `start` on: the median of it and those before it, WINDOW at most, none before `start`."""
        levels = numpy.full(len(self._values), numpy.nan)
        ordered = []
        for place in range(start, min(start + WINDOW - 1, len(self._plain))):
            insort(ordered, self._plain[place])
            levels[place] = (ordered[len(ordered) // 2] + ordered[(len(ordered) - 1) // 2]) / 2
        half = WINDOW // 2
        levels[start + WINDOW - 1 :] = self._rolling[start + half : len(levels) - half]
        return levels

    def _began(self, night, earliest, level, change):
        """The first of the nights up to `night` that lie, without a gap, beyond the middle between the levels."""
        middle, began = level + change / 2, night + 1
        while began > earliest and (self._plain[began - 1] - middle) * change > 0:
            began -= 1
        return began


def _middle_of_three(values):
    """At each night the median of it and the two before it (of CONFIRMED nights); the first two have none."""
    a, b, c = values[:-2], values[1:-1], values[2:]
    middle = numpy.maximum(numpy.minimum(a, b), numpy.minimum(numpy.maximum(a, b), c))
    return numpy.concatenate([[numpy.nan, numpy.nan], middle])


def jitter(values):
    """Somewhat less than the standard deviation of a night.

    From differences of neighbours, in which levels and drift cancel.
    """
    return 0.8 * 1.4826 * float(numpy.median(numpy.abs(numpy.diff(values)))) / sqrt(2)

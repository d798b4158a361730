"""Walk over a series, run by run, to places where a new level might begin, which `detection` then tests."""

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy

from prism_bench.analysis.trend.runs import Floats, SeriesRuns, filtered

CONFIRMED = 3  # runs in a row that must hold a new level
SETTLED = 8  # runs that a level has lasted before it can be left
WINDOW = 31  # the newest runs of a piece, whose median is its present level


@dataclass(frozen=True)
class LevelRun:
    """Runs in a row, from place `began` of the series to before `ended`, that are nearer to another level."""

    began: int
    ended: int


class Walk:
    """Walk over the runs of a series that are not odd, with a look at the newest ones from each of them.

    `sigmas` standard errors are what a change must reach later: runs that cannot are passed over here.
    """

    def __init__(self, series: SeriesRuns, floor: float, sigmas: float) -> None:
        self._floor = floor
        self._kept, self._values = series.kept, series.plain
        self._newest, self._rolling = _middle_of_three(self._values), filtered(self._values, WINDOW, "reflect")
        self._least = sigmas * series.jitter

    def runs(self, start: int) -> Iterator[LevelRun]:
        """Yield the runs of a piece that begins at place `start`, in the order of their last ones."""
        settled = CONFIRMED if start else SETTLED
        start = int(numpy.searchsorted(self._kept, start))
        levels, first = self._levels(start), start + settled + CONFIRMED - 1
        away = self._newest[first:] - levels[first - CONFIRMED : len(levels) - CONFIRMED]
        for place in numpy.flatnonzero(numpy.abs(away) >= max(self._floor, self._least / sqrt(WINDOW))).tolist():
            run, change = first + place, float(away[place])
            began = self._began(run, start + settled, float(levels[run - CONFIRMED]), change)
            length = run + 1 - began
            if length >= CONFIRMED and abs(change) >= self._least / sqrt(length):
                yield LevelRun(int(self._kept[began]), int(self._kept[run]) + 1)

    def _levels(self, start: int) -> Floats:
        """Return at each run from `start` on the median of it and those before it, WINDOW at most."""
        levels = numpy.full(len(self._values), numpy.nan)
        ordered: list[float] = []
        first: list[float] = []
        for count, value in enumerate(self._values[start : start + WINDOW - 1].tolist()):
            insort(ordered, value)
            first.append((ordered[(count + 1) // 2] + ordered[count // 2]) / 2)
        levels[start : start + len(first)] = first
        half = WINDOW // 2
        levels[start + WINDOW - 1 :] = self._rolling[start + half : len(levels) - half]
        return levels

    def _began(self, run: int, earliest: int, level: float, change: float) -> int:
        """Return the first of the runs up to `run` that are, without a gap, beyond the middle between the levels."""
        middle, began = level + change / 2, run + 1
        while began > earliest and (self._values[began - 1] - middle) * change > 0:
            began -= 1
        return began


def _middle_of_three(values: Floats) -> Floats:
    """Return at each run the median of it and the two before it (of CONFIRMED runs); the first two have none."""
    a, b, c = values[:-2], values[1:-1], values[2:]
    middle = numpy.maximum(numpy.minimum(a, b), numpy.minimum(numpy.maximum(a, b), c))
    return numpy.concatenate([[numpy.nan, numpy.nan], middle])

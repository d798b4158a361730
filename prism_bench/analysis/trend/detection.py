"""Where a series changed its level, found as somebody would who looks every night.

Walking from night to night, a new level begins where CONFIRMED nights in a row lie nearer to it than to the old one and

- it differs by at least the `floor`: smaller changes are not worth a word, or drown in the case's noise;
- the series' own past makes such a run improbable: by the share of all nights so far that strayed as far, a series that
  stays as it is has one with a probability of CHANCE at most. A machine with two clock states, quantised times or
  frequent outliers asks for a longer run by itself;
- it differs by SIGMAS standard errors of the two levels, in which nights that drift together count for less.

At the end every change must stand again, between whole pieces and with the scatter of the whole series. What a night
was taken for may so be taken back later; it is never found twice.
"""

from collections.abc import Sequence
from math import sqrt

import numpy
from scipy.special import bdtrc

from prism_bench.analysis.trend.nights import Nights
from prism_bench.analysis.trend.walk import CONFIRMED, SETTLED, WINDOW, Walk

CHANCE = 0.003  # of such a run anywhere in a series that stays as it is
SIGMAS = 5.0


def level_changes(values: Sequence[float], floor: float) -> list[int]:
    """The positions of the first nights of new levels in `values` (logarithms, oldest first, none missing).

    `floor` is the smallest relative change worth telling.
    """
    if len(values) < SETTLED + CONFIRMED:
        return []
    nights = Nights.of(values, floor)
    return _upheld(nights, _found(nights, floor), floor)


def _found(nights, floor):
    """The changes, each as it was found first."""
    walk, starts = Walk(nights, floor, SIGMAS), [0]
    while run := _first(walk, nights, starts, floor):
        starts.append(run.began)
    return starts[1:]


def _first(walk, nights, starts, floor):
    runs = walk.runs(starts[-1])
    return next((run for run in runs if _is_new(nights, [*starts, run.began], run.ended, floor)), None)


def _is_new(nights, bounds, ended, floor):
    """Whether the nights from the last of `bounds` to before `ended` are of another level than the nights before."""
    began = bounds[-1]
    before = max(bounds[-2], began - WINDOW)
    return _strength(nights, (before, began, ended), nights.residuals(bounds), nights.scatter(bounds), floor) >= SIGMAS


def _upheld(nights, changes, floor):
    """The changes that stand between whole pieces; the weakest goes first, since its going changes its neighbours."""
    while changes:
        bounds = [0, *changes, len(nights.values)]
        residuals, scatter = nights.residuals(bounds), nights.scatter(bounds)
        pieces = zip(bounds, bounds[1:], bounds[2:], strict=False)
        strengths = [_strength(nights, piece, residuals, scatter, floor) for piece in pieces]
        weakest = int(numpy.argmin(strengths))
        if strengths[weakest] >= SIGMAS:
            break
        changes = changes[:weakest] + changes[weakest + 1 :]
    return changes


def _strength(nights, bounds, residuals, scatter, floor):
    """The change at the middle bound in standard errors; 0 where it is below the floor or the past explains it."""
    a, b, c = bounds
    change = nights.level(b, c) - nights.level(a, b)
    if abs(change) < floor or _chance(nights, bounds, residuals, change) * len(nights.values) > CHANCE:
        return 0.0
    return abs(change) / sqrt(scatter.variance_of_level(b - a) + scatter.variance_of_level(c - b))


def _chance(nights, bounds, residuals, change):
    """How probable it is that nights like those of the shorter piece stray so far from the other's level, so often.

    How often a single night strays that far, the `residuals` of the whole past tell.
    """
    a, b, c = bounds
    later = c - b <= b - a
    away = nights.values[b:c] - nights.level(a, b) if later else nights.values[a:b] - nights.level(b, c)
    sign = numpy.sign(change if later else -change)
    far = max(abs(change) / 2, float((away * sign).min()))
    share = (numpy.count_nonzero(residuals * sign >= far) + 0.5) / (len(residuals) + 1)
    return float(bdtrc(numpy.count_nonzero(away * sign >= far) - 1, len(away), share))

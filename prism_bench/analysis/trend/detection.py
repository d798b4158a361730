"""Where a series changed its level, found as somebody would who looks after every run.

Walking from run to run, a new level begins where CONFIRMED runs in a row are nearer to it than to the old one and

- it differs by at least the `floor`: smaller changes are not worth a word, or drown in the case's noise;
- the series' own past makes such runs improbable: by the share of all runs so far that strayed as far, a series that
  stays as it is has them with a probability of CHANCE at most. A machine with two clock states, quantised times or
  frequent outliers asks for more runs by itself;
- it differs by SIGMAS standard errors of the two levels, in which runs that drift together count for less.

At the end every change must stand again, between whole pieces and with the scatter of the whole series. Then the
windows in which the level jumps are cut anew, all changes of a window at once (`close`), since a walk loses a step that
follows another one closely. What a run was taken for may so be taken back later; it is never found twice.
"""

from collections.abc import Sequence
from math import sqrt

import numpy
from scipy.special import bdtrc

from prism_bench.analysis.trend.close import Proposal, proposals
from prism_bench.analysis.trend.nights import Nights, Scatter
from prism_bench.analysis.trend.walk import CONFIRMED, SETTLED, WINDOW, Walk

CHANCE = 0.003  # of such runs anywhere in a series that stays as it is
PRIOR = 2.0  # strays that are added to those seen, and to those not: a short past has not seen everything yet
FARTHEST = 2.5  # times the change: what strays farther is of another kind, and explains no level
SIGMAS = 5.0
ENOUGH_OUTSIDE = 40  # runs outside of a window that tell the scatter of a series without what is in the window


def level_changes(values: Sequence[float], floor: float) -> list[int]:
    """The positions of the first runs of new levels in `values` (logarithms, oldest first, none missing).

    `floor` is the smallest relative change worth reporting.
    """
    if len(values) < SETTLED + CONFIRMED:
        return []
    nights = Nights.of(values, floor)
    changes = _upheld(nights, _found(nights, floor), floor)
    for proposal in proposals(nights, floor):
        changes = _recut(nights, changes, proposal, floor)
    return changes


def _recut(nights: Nights, changes: list[int], proposal: Proposal, floor: float) -> list[int]:
    """The changes with those of the proposal's window replaced by the proposed ones that stand, unless fewer do.

    How much runs scatter and drift is learned without the proposal: cut finely enough, drift looks like steps.
    """
    start, end = proposal.start, proposal.end
    others = [change for change in changes if not start < change < end]
    proposed = sorted([*others, *proposal.changes])
    count = len(nights.values)
    if count - (end - start) >= ENOUGH_OUTSIDE:
        scatter = nights.scatter([0, *proposed, count], (start, end))
    else:
        scatter = nights.scatter([0, *changes, count])
    stands = _upheld(nights, proposed, floor, scatter)
    return stands if len(stands) >= len(changes) else changes


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


def _upheld(nights: Nights, changes: list[int], floor: float, known: Scatter | None = None) -> list[int]:
    """The changes that stand between whole pieces; the weakest goes first, since its going changes its neighbours.

    The scatter is that about the pieces, or one that is `known` already.
    """
    while changes:
        bounds = [0, *changes, len(nights.values)]
        residuals, scatter = nights.residuals(bounds), known or nights.scatter(bounds)
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

    How often a single night strays that far, and not much farther, the `residuals` of the whole past tell.
    """
    a, b, c = bounds
    later = c - b <= b - a
    away = nights.usual(b, c) - nights.level(a, b) if later else nights.usual(a, b) - nights.level(b, c)
    sign = numpy.sign(change if later else -change)
    away = away * sign
    far, farthest = max(abs(change) / 2, float(away.min())), max(FARTHEST * abs(change), float(away.max()))
    strays = numpy.count_nonzero((residuals * sign >= far) & (residuals * sign <= farthest))
    share = (strays + PRIOR) / (len(residuals) + 2 * PRIOR)
    return float(bdtrc(numpy.count_nonzero(away >= far) - 1, len(away), share))

"""Detection of changes of level, as by a look after every run.

Walking from run to run, a new level begins where CONFIRMED runs in a row are nearer to it than to the old one and

- it differs by at least the `floor`: smaller changes are not worth a report, or drown in the case's noise;
- the series' own past makes such runs improbable: by the share of all runs so far that strayed as far, a series that
  stays as it is has them with a probability of CHANCE at most. A machine with two clock states, quantised times or
  frequent outliers asks for more runs by itself;
- it differs by SIGMAS standard errors of the two levels, in which runs that drift together count for less.

At the end every change is tested again, between whole pieces and with the scatter of the whole series. Then the
windows in which the level jumps are cut anew, all changes of a window at once (`close`), since a walk loses a step that
follows another one closely. So a change may be withdrawn later; it is never found twice.
"""

from collections.abc import Sequence
from math import sqrt

import numpy

from prism_bench.analysis.distributions import binomial_tail
from prism_bench.analysis.trend.close import Proposal, proposals
from prism_bench.analysis.trend.runs import Floats, Scatter, SeriesRuns
from prism_bench.analysis.trend.walk import CONFIRMED, SETTLED, WINDOW, Walk

CHANCE = 0.003  # of such runs anywhere in a series that stays as it is
PRIOR = 2.0  # strays that are added to those seen, and to those not: a short past has not seen everything yet
FARTHEST = 2.5  # times the change: what strays farther is of another kind, and explains no level
SIGMAS = 5.0
ENOUGH_OUTSIDE = 40  # runs outside of a window that show the scatter of a series without what is in the window


def level_changes(values: Sequence[float] | Floats, floor: float) -> list[int]:
    """Return the positions of the first runs of new levels in `values` (logarithms, oldest first, none missing).

    `floor` is the smallest relative change worth reporting.
    """
    if len(values) < SETTLED + CONFIRMED:
        return []
    series = SeriesRuns.of(values, floor)
    changes = _upheld(series, _found(series, floor), floor)
    for proposal in proposals(series, floor):
        changes = _recut(series, changes, proposal, floor)
    return changes


def _recut(series: SeriesRuns, changes: list[int], proposal: Proposal, floor: float) -> list[int]:
    """Return the changes, those of the proposal's window replaced by the proposed ones, unless fewer are upheld.

    How much runs scatter and drift is learned without the proposal: cut finely enough, drift looks like steps.
    """
    start, end = proposal.start, proposal.end
    others = [change for change in changes if not start < change < end]
    proposed = sorted([*others, *proposal.changes])
    count = len(series.values)
    if count - (end - start) >= ENOUGH_OUTSIDE:
        scatter = series.scatter([0, *proposed, count], (start, end))
    else:
        scatter = series.scatter([0, *changes, count])
    upheld = _upheld(series, proposed, floor, scatter)
    return upheld if len(upheld) >= len(changes) else changes


def _found(series: SeriesRuns, floor: float) -> list[int]:
    """Return the changes, each as it was found first."""
    walk, starts = Walk(series, floor, SIGMAS), [0]
    while True:
        runs = walk.runs(starts[-1])
        run = next((run for run in runs if _is_new(series, [*starts, run.began], run.ended, floor)), None)
        if run is None:
            return starts[1:]
        starts.append(run.began)


def _is_new(series: SeriesRuns, bounds: Sequence[int], ended: int, floor: float) -> bool:
    """Return whether runs from the last of `bounds` to before `ended` have another level than those before."""
    began = bounds[-1]
    before = max(bounds[-2], began - WINDOW)
    return _strength(series, (before, began, ended), series.residuals(bounds), series.scatter(bounds), floor) >= SIGMAS


def _upheld(series: SeriesRuns, changes: list[int], floor: float, known: Scatter | None = None) -> list[int]:
    """Return the changes upheld between whole pieces; the weakest goes first, since that changes its neighbours.

    The scatter is that about the pieces, or one that is `known` already.
    """
    while changes:
        bounds = [0, *changes, len(series.values)]
        residuals, scatter = series.residuals(bounds), known or series.scatter(bounds)
        pieces = zip(bounds, bounds[1:], bounds[2:], strict=False)
        strengths = [_strength(series, piece, residuals, scatter, floor) for piece in pieces]
        weakest = int(numpy.argmin(strengths))
        if strengths[weakest] >= SIGMAS:
            break
        changes = changes[:weakest] + changes[weakest + 1 :]
    return changes


def _strength(
    series: SeriesRuns, bounds: tuple[int, int, int], residuals: Floats, scatter: Scatter, floor: float
) -> float:
    """Return the change at the middle bound in standard errors; 0 below `floor` or where the past explains it."""
    a, b, c = bounds
    change = series.level(b, c) - series.level(a, b)
    if abs(change) < floor or _chance(series, bounds, residuals, change) * len(series.values) > CHANCE:
        return 0.0
    return abs(change) / sqrt(scatter.variance_of_level(b - a) + scatter.variance_of_level(c - b))


def _chance(series: SeriesRuns, bounds: tuple[int, int, int], residuals: Floats, change: float) -> float:
    """Return how probable it is that runs like the shorter piece's stray so far from the other's level, so often.

    The `residuals` of the whole past show how often a single run strays that far, and not much farther.
    """
    a, b, c = bounds
    later = c - b <= b - a
    away = series.usual(b, c) - series.level(a, b) if later else series.usual(a, b) - series.level(b, c)
    sign = float(numpy.sign(change if later else -change))
    away = away * sign
    far, farthest = max(abs(change) / 2, float(away.min())), max(FARTHEST * abs(change), float(away.max()))
    strays = numpy.count_nonzero((residuals * sign >= far) & (residuals * sign <= farthest))
    share = (strays + PRIOR) / (len(residuals) + 2 * PRIOR)
    return binomial_tail(int(numpy.count_nonzero(away >= far)) - 1, len(away), share)

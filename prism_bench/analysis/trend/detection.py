"""Detection of changes of level in a series, as by a look after every run; findings are kept in the cache."""

import hashlib
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log, log1p, sqrt
from pathlib import Path

import numpy

from prism_bench.analysis.distributions import binomial_tail
from prism_bench.analysis.trend.causes import Causes, Change
from prism_bench.analysis.trend.series import (
    CaseSeries,
    Floats,
    Key,
    RecordWindow,
    Scatter,
    SeriesPoints,
    SeriesRuns,
    Step,
    filtered,
    higher_is_better,
    levelled,
    middle,
    series_of,
)
from prism_bench.errors import ResultsError
from prism_bench.io.documents import json_of_kind, kind_in
from prism_bench.io.files import cache_folder, write_atomically
from prism_bench.record.store import History
from prism_bench.record.store.history import History as history_History

# Walk over a series, run by run, to places where a new level might begin, which `detection` then tests.

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


# Proposals for steps that are close to each other: a walk from step to step loses the second of two such steps.
#
# Where the means of the three runs before and after a run differ, a window is cut into pieces of constant level by
# dynamic programming: with the smallest squared error, where every change costs PENALTY variances (B. Jackson et al.,
# IEEE Signal Processing Letters 12 (2005) 105). That is only a proposal: `detection` tests every change of it.

_JUMP = 3.6  # standard errors of a difference between two means of CONFIRMED runs
_PENALTY = 16.0  # variances that a change must explain: about three times the log of the number of runs
CONTEXT = 12  # runs before and after the jumps, by whose levels they differ from noise
_TAME = 3.0  # standard deviations from the median of the neighbours, to which a run is drawn in


@dataclass(frozen=True)
class Proposal:
    """Changes of level at the places `changes`, all in the window from place `start` to before `end` of the series."""

    start: int
    end: int
    changes: tuple[int, ...]


def _proposals(series: SeriesRuns, floor: float) -> Iterator[Proposal]:
    """Yield the proposed changes of each window in which the level jumps."""
    kept, middles = series.kept, series.middles
    sigma = max(series.jitter, floor / 10)
    tame = numpy.clip(series.plain, middles - _TAME * sigma, middles + _TAME * sigma)
    for start, end in _windows(tame, max(_JUMP * sigma * sqrt(2 / CONFIRMED), 0.75 * floor)):
        cuts = _cuts(tame[start:end], _PENALTY * sigma**2, SETTLED if start == 0 else CONFIRMED)
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


# Detection of changes of level, as by a look after every run.
#
# Walking from run to run, a new level begins where CONFIRMED runs in a row are nearer to it than to the old one and
#
# - it differs by at least the `floor`: smaller changes are not worth a report, or drown in the case's noise; - the
# series' own past makes such runs improbable: by the share of all runs so far that strayed as far, a series that
# stays as it is has them with a probability of CHANCE at most. A machine with two clock states, quantised times or
# frequent outliers asks for more runs by itself; - it differs by SIGMAS standard errors of the two levels, in which
# runs that drift together count for less.
#
# At the end every change is tested again, between whole pieces and with the scatter of the whole series. Then the
# windows in which the level jumps are cut anew, all changes of a window at once (`close`), since a walk loses a step
# that follows another one closely. So a change may be withdrawn later; it is never found twice.

_CHANCE = 0.003  # of such runs anywhere in a series that stays as it is
_PRIOR = 2.0  # strays that are added to those seen, and to those not: a short past has not seen everything yet
_FARTHEST = 2.5  # times the change: what strays farther is of another kind, and explains no level
_SIGMAS = 5.0
_ENOUGH_OUTSIDE = 40  # runs outside of a window that show the scatter of a series without what is in the window


def level_changes(values: Sequence[float] | Floats, floor: float) -> list[int]:
    """Return the positions of the first runs of new levels in `values` (logarithms, oldest first, none missing).

    `floor` is the smallest relative change worth reporting.
    """
    if len(values) < SETTLED + CONFIRMED:
        return []
    series = SeriesRuns.of(values, floor)
    changes = _upheld(series, _found(series, floor), floor)
    for proposal in _proposals(series, floor):
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
    if count - (end - start) >= _ENOUGH_OUTSIDE:
        scatter = series.scatter([0, *proposed, count], (start, end))
    else:
        scatter = series.scatter([0, *changes, count])
    upheld = _upheld(series, proposed, floor, scatter)
    return upheld if len(upheld) >= len(changes) else changes


def _found(series: SeriesRuns, floor: float) -> list[int]:
    """Return the changes, each as it was found first."""
    walk, starts = Walk(series, floor, _SIGMAS), [0]
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
    return _strength(series, (before, began, ended), series.residuals(bounds), series.scatter(bounds), floor) >= _SIGMAS


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
        if strengths[weakest] >= _SIGMAS:
            break
        changes = changes[:weakest] + changes[weakest + 1 :]
    return changes


def _strength(
    series: SeriesRuns, bounds: tuple[int, int, int], residuals: Floats, scatter: Scatter, floor: float
) -> float:
    """Return the change at the middle bound in standard errors; 0 below `floor` or where the past explains it."""
    a, b, c = bounds
    change = series.level(b, c) - series.level(a, b)
    if abs(change) < floor or _chance(series, bounds, residuals, change) * len(series.values) > _CHANCE:
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
    far, farthest = max(abs(change) / 2, float(away.min())), max(_FARTHEST * abs(change), float(away.max()))
    strays = numpy.count_nonzero((residuals * sign >= far) & (residuals * sign <= farthest))
    share = (strays + _PRIOR) / (len(residuals) + 2 * _PRIOR)
    return binomial_tail(int(numpy.count_nonzero(away >= far)) - 1, len(away), share)


# What a test of one window finds, so that the findings of all windows can be put together.

# Noise floors, relative, by machine, backend, case and metric.
Floors = Mapping[tuple[str, str, str, str], float]


@dataclass(frozen=True)
class TestedSeries:
    """A series in one window: how many `runs` it has there that no earlier window has, and its newest `level`.

    `floor` is the smallest change that was reported. The level is None without a trusted run.
    """

    key: Key
    runs: int
    level: float | None
    floor: float


@dataclass(frozen=True)
class FoundStep:
    """A step, and the number of its first run among those of its series that no earlier window has."""

    step: Step
    number: int


@dataclass(frozen=True)
class TestedWindow:
    """Steps and series of one window; `points` and `aside` count its records that no earlier window has."""

    points: int
    steps: tuple[FoundStep, ...]
    series: tuple[TestedSeries, ...]
    aside: dict[str, int]


class WindowTest:
    """Test of the series of one window; changes below `floors`, and below `smallest`, are not reported."""

    def __init__(self, window: RecordWindow, floors: Floors, smallest: float) -> None:
        self._window, self._floors, self._smallest = window, floors, smallest

    def floor(self, key: Key) -> float:
        """Return the smallest relative change of the series that is reported."""
        return max(self._smallest, self._floors.get((key.machine, key.backend, key.case, key.metric), 0.0))

    def run(self, history: History) -> TestedWindow:
        """Return what is found in the window's part of a history."""
        sorted_points = SeriesPoints.of(history)
        names = sorted_points.vocabulary["board"]
        every = list(levelled(history, series_of(history, self._window.shared, sorted_points), names))
        causes = Causes(history, every, sorted_points)
        steps: list[FoundStep] = []
        tested: list[TestedSeries] = []
        aside: Counter[str] = Counter()
        for series in every:
            found, level = self._steps(series, causes, history)
            steps += found
            own = int(numpy.count_nonzero(series.records >= self._window.shared))
            tested.append(TestedSeries(series.key, own, level, self.floor(series.key)))
            aside.update(series.aside)
        points = int(numpy.count_nonzero(sorted_points.columns["record"] >= self._window.shared))
        return TestedWindow(points, tuple(steps), tuple(tested), dict(aside))

    def _steps(self, series: CaseSeries, causes: Causes, history: History) -> tuple[list[FoundStep], float | None]:
        """Return the steps of a series that are for this window to find, and its newest level."""
        if not len(series.values):
            return [], None
        changes = level_changes(series.logs, log1p(self.floor(series.key)))
        bounds = [0, *changes, len(series.values)]
        levels = [middle(series.values[a:b]) for a, b in zip(bounds, bounds[1:], strict=False)]
        shared = int(numpy.searchsorted(series.records, self._window.shared))
        found: list[FoundStep] = []
        for index, change in enumerate(changes):
            if self._is_own(series, change):
                size = log(levels[index + 1] / levels[index])
                about = Change(change, size, log1p(self.floor(series.key)), bounds[index], bounds[index + 2])
                step = _step(series, about, (levels[index], levels[index + 1]), causes, history)
                found.append(FoundStep(step, change - shared))
        return found, levels[-1]

    def _is_own(self, series: CaseSeries, change: int) -> bool:
        """Return whether the change is for this window to find; both windows find one at their border."""
        near = range(max(0, change - CONFIRMED), min(len(series.records), change + CONFIRMED))
        return any(self._window.tests(int(series.records[place])) for place in near)


def _step(series: CaseSeries, change: Change, levels: tuple[float, float], causes: Causes, history: History) -> Step:
    """Return the step at a change; what depends on later windows is filled in when all are known."""
    place, cause = causes.of(series, change)
    old, new = (history.records[int(series.records[one])] for one in (place - 1, place))
    since = new.created if old.commit == new.commit else new.when
    return Step(
        series.key,
        *levels,
        old.file,
        new.file,
        since,
        (old.commit, new.commit),
        nights=0,
        age=0,
        worse=worse(series.key, *levels),
        recovered=False,
        cause=cause,
    )


def worse(key: Key, before: float, after: float, margin: float = 0.0) -> bool:
    """Return whether `after` is the worse value, by more than the relative `margin`."""
    ratio = before / after if higher_is_better(key.metric) else after / before
    return ratio > 1 + margin


# Findings of windows, kept in the user's cache until something that they depend on changes.
#
# They depend on the content of the window's records, on the noise floors, and on the code that tests. Of a window
# without the seals of its records (see `store.history.StoredPoints`) nothing is kept. The cache may be deleted at any
# time.

_ANALYSIS = Path(__file__).parent.parent


@dataclass(frozen=True)
class KeptWindow:
    """The findings of a window whose content has this digest."""

    digest: str
    found: TestedWindow


class WindowCache:
    """What was found in windows of one history, with the same choice of cases and the same smallest change."""

    def __init__(self, history: history_History, floors: Floors, smallest: float) -> None:
        self._history, self._floors, self._smallest = history, floors, smallest
        self._digests: dict[tuple[str, str], str] = {}

    def read(self, window: RecordWindow) -> TestedWindow | None:
        """Return what was found in a window with the same content; None where nothing is known of it."""
        digest = self._digest(window)
        try:
            kept = kind_in(self._path(window), "findings of a window", KeptWindow)
        except (OSError, ResultsError):
            return None
        return kept.found if digest and kept.digest == digest else None

    def write(self, window: RecordWindow, found: TestedWindow) -> None:
        """Keep what was found; where nothing can be kept, the next trend takes longer, and that is all."""
        if digest := self._digest(window):
            try:
                write_atomically(self._path(window), json_of_kind(KeptWindow(digest, found)))
            except OSError:
                return

    def _path(self, window: RecordWindow) -> Path:
        """Return the file of a window: a new content of it replaces the old one, other noise floors do not."""
        first = self._history.records[window.places[0]]
        chosen = sorted(self._history.cases or ()), sorted(self._history.metrics or ())
        owner = window.machine, window.backend, window.environment
        which = (*owner, window.number, first.file, first.created, self._smallest, self._floors_of(window), *chosen)
        return cache_folder("trends") / f"{_digest_of([repr(which)])}.json"

    def _digest(self, window: RecordWindow) -> str | None:
        stored = [self._history.stored[place] for place in window.places]
        if not all(one.seal for one in stored):
            return None
        contents = (f"{one.facts.file} {one.facts.when} {one.facts.commit} {one.seal}" for one in stored)
        return _digest_of([_maker(), repr((window.shared, window.is_last)), *contents])

    def _floors_of(self, window: RecordWindow) -> str:
        """Return a digest of the noise floors of the window's machine and backend."""
        owner = window.machine, window.backend
        if owner not in self._digests:
            own = sorted((key[2:], floor) for key, floor in self._floors.items() if key[:2] == owner)
            self._digests[owner] = _digest_of([repr(own)])
        return self._digests[owner]


def _digest_of(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


@cache
def _maker() -> str:
    """Return a digest of the code that tests: other code finds other steps."""
    folders = ("trend", "compare", "boards", ".")
    sources = sorted(path for folder in folders for path in (_ANALYSIS / folder).glob("*.py"))
    return _digest_of(source.read_text() for source in sources)

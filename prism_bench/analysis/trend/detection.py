"""Detection of changes of level in a series, as by a look after every run, and the cache of its findings."""

import hashlib
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log, log1p, sqrt
from pathlib import Path

import numpy

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
    timed,
)
from prism_bench.errors import ResultsError
from prism_bench.io.documents import json_of_kind, kind_in
from prism_bench.io.files import cache_folder, write_atomically
from prism_bench.measure.distributions import binomial_tail
from prism_bench.record.store.history import History
from prism_bench.spec.metric import is_exact

# Walk over a series, run by run, to candidates of new levels.

SMALLEST = 0.02  # relative: a smaller change of a noisy level is not worth a report
CONFIRMED = 3  # consecutive runs that confirm a new level
SETTLED = 8  # runs that a level must last before a step from it
WINDOW = 31  # the newest runs of a piece, whose median is its present level


@dataclass(frozen=True)
class _LevelRun:
    """Consecutive runs, from position `began` of the series to before `ended`, that are nearer to another level."""

    began: int
    ended: int


class _Walk:
    """Walk over the runs of a series that are not odd, with a look at the newest runs from each of them.

    A change must reach `sigmas` standard errors later: runs that cannot reach them are skipped here.
    """

    def __init__(self, series: SeriesRuns, floor: float, sigmas: float) -> None:
        self._floor = floor
        self._kept, self._values = series.kept, series.plain
        self._newest, self._rolling = _middle_of_three(self._values), filtered(self._values, WINDOW, "reflect")
        self._least = sigmas * series.jitter

    def runs(self, start: int) -> Iterator[_LevelRun]:
        """Yield the level runs of a piece that begins at position `start`, in the order of their last runs."""
        settled = CONFIRMED if start else SETTLED
        start = int(numpy.searchsorted(self._kept, start))
        levels, earliest = self._levels(start), start + settled + CONFIRMED - 1
        away = self._newest[earliest:] - levels[earliest - CONFIRMED : len(levels) - CONFIRMED]
        for offset in numpy.flatnonzero(numpy.abs(away) >= max(self._floor, self._least / sqrt(WINDOW))).tolist():
            run, change = earliest + offset, float(away[offset])
            # The earliest run that is, without a gap, beyond the middle between the levels.
            border, began = float(levels[run - CONFIRMED]) + change / 2, run + 1
            while began > start + settled and (self._values[began - 1] - border) * change > 0:
                began -= 1
            length = run + 1 - began
            if length >= CONFIRMED and abs(change) >= self._least / sqrt(length):
                yield _LevelRun(int(self._kept[began]), int(self._kept[run]) + 1)

    def _levels(self, start: int) -> Floats:
        """Return at each run from `start` on the median of it and the runs before it, of WINDOW runs at most."""
        levels = numpy.full(len(self._values), numpy.nan)
        ordered: list[float] = []
        for count, value in enumerate(self._values[start : start + WINDOW - 1].tolist()):
            insort(ordered, value)
            levels[start + count] = (ordered[(count + 1) // 2] + ordered[count // 2]) / 2
        half = WINDOW // 2
        levels[start + WINDOW - 1 :] = self._rolling[start + half : len(levels) - half]
        return levels


def _middle_of_three(values: Floats) -> Floats:
    """Return at each run the median of it and the two runs before it (of CONFIRMED runs); NaN at the first two."""
    a, b, c = values[:-2], values[1:-1], values[2:]
    middle = numpy.maximum(numpy.minimum(a, b), numpy.minimum(numpy.maximum(a, b), c))
    return numpy.concatenate([[numpy.nan, numpy.nan], middle])


# Proposals for steps that are close to each other: a walk from step to step misses the second of two such steps.
#
# If the means of the three runs before and after a run differ, a window is cut into pieces of constant level by dynamic
# programming: with the smallest squared error, where every change costs PENALTY variances (B. Jackson et al., IEEE
# Signal Processing Letters 12 (2005) 105). Every change of a proposal is tested.

_JUMP = 3.6  # standard errors of a difference between two means of CONFIRMED runs
_PENALTY = 16.0  # variances that a change must explain: about three times the log of the number of runs
CONTEXT = 12  # runs before and after the jumps, whose levels distinguish them from noise
_TAME = 3.0  # standard deviations from the median of the neighbours, to which a run is clipped


@dataclass(frozen=True)
class _Proposal:
    """Changes of level at the positions `changes`, all in the window from `start` to before `end` of the series."""

    start: int
    end: int
    changes: tuple[int, ...]


def _proposals(series: SeriesRuns, floor: float) -> Iterator[_Proposal]:
    """Yield the proposed changes of each window in which the level jumps."""
    kept, middles = series.kept, series.middles
    sigma = max(series.jitter, floor / 10)
    tame = numpy.clip(series.plain, middles - _TAME * sigma, middles + _TAME * sigma)
    for start, end in _windows(tame, max(_JUMP * sigma * sqrt(2 / CONFIRMED), 0.75 * floor)):
        cuts = _cuts(tame[start:end], _PENALTY * sigma**2, SETTLED if start == 0 else CONFIRMED)
        if cuts:
            last = kept[end] if end < len(kept) else len(series.values)
            yield _Proposal(int(kept[start]), int(last), tuple(int(kept[start + cut]) for cut in cuts))


def _windows(values: Floats, least: float) -> list[tuple[int, int]]:
    """Return start and end of each stretch with jumps of at least `least`, with its context."""
    sums: Floats = numpy.concatenate([[0.0], numpy.cumsum(values)])
    means = (sums[CONFIRMED:] - sums[:-CONFIRMED]) / CONFIRMED
    jumps = numpy.flatnonzero(numpy.abs(means[CONFIRMED:] - means[:-CONFIRMED]) >= least) + CONFIRMED
    if not len(jumps):
        return []
    groups = numpy.split(jumps, numpy.flatnonzero(numpy.diff(jumps) > 2 * CONTEXT) + 1)
    return [(max(0, int(group[0]) - CONTEXT), min(len(values), int(group[-1]) + CONTEXT)) for group in groups]


def _cuts(values: Floats, penalty: float, first: int) -> list[int]:
    """Return the cuts with the least squared errors and penalties; the first piece has at least `first` values."""
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
# Walking from run to run, a new level begins where CONFIRMED consecutive runs are nearer to it than to the old level,
# and
#
# - it differs by at least the `floor`: smaller changes are not worth a report, or are lost in the case's noise;
# - the past of the series makes such runs improbable: by the share of all runs so far that strayed as far, a constant
#   series has them with a probability of CHANCE at most. A machine with two clock states, quantised times or frequent
#   outliers thus needs more runs;
# - it differs by SIGMAS standard errors of the two levels, in which runs that drift together count less.
#
# At the end every change is tested again, between whole pieces and with the scatter of the whole series. Then the
# windows in which the level jumps are cut anew, all changes of a window at once, since a walk misses a step that
# closely follows another step. So a change may be withdrawn later; it is never detected twice.

_CHANCE = 0.003  # of such runs anywhere in a constant series
_PRIOR = 2.0  # runs added to the strays and to the others: a short past has not shown everything yet
_FARTHEST = 2.5  # times the change: runs that stray farther are of another kind, and explain no level
_SIGMAS = 5.0
_ENOUGH_OUTSIDE = 40  # runs outside of a window that show the scatter of a series without the window


def level_changes(values: Sequence[float] | Floats, floor: float) -> list[int]:
    """Return the positions of the first runs of new levels in `values` (logarithms, oldest first, none missing).

    `floor` is the smallest relative change worth reporting.
    """
    if len(values) < SETTLED + CONFIRMED:
        return []
    series = SeriesRuns.of(values, floor)
    walk, starts = _Walk(series, floor, _SIGMAS), [0]
    while new := next((run for run in walk.runs(starts[-1]) if _is_new(series, starts, run, floor)), None):
        starts.append(new.began)
    changes = _upheld(series, starts[1:], floor)
    for proposal in _proposals(series, floor):
        changes = _recut(series, changes, proposal, floor)
    return changes


def _recut(series: SeriesRuns, changes: list[int], proposal: _Proposal, floor: float) -> list[int]:
    """Return the changes, those in the proposal's window replaced by the proposed changes, unless fewer are upheld.

    Scatter and drift of runs are learned without the proposal: cut finely enough, drift looks like steps.
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


def _is_new(series: SeriesRuns, starts: Sequence[int], run: _LevelRun, floor: float) -> bool:
    """Return whether the level run has another level than the runs before, from the last of `starts` on."""
    piece = max(starts[-1], run.began - WINDOW), run.began, run.ended
    bounds = [*starts, run.began]
    return _strength(series, piece, series.residuals(bounds), series.scatter(bounds), floor) >= _SIGMAS


def _upheld(series: SeriesRuns, changes: list[int], floor: float, known: Scatter | None = None) -> list[int]:
    """Return the changes upheld between whole pieces; the weakest goes first, since that changes its neighbours.

    The scatter is that about the pieces, unless it is `known` already.
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
    """Return the change at the middle bound in standard errors; 0 below `floor`, or if the past explains it."""
    a, b, c = bounds
    change = series.level(b, c) - series.level(a, b)
    if abs(change) < floor or _chance(series, bounds, residuals, change) * len(series.values) > _CHANCE:
        return 0.0
    return abs(change) / sqrt(scatter.variance_of_level(b - a) + scatter.variance_of_level(c - b))


def _chance(series: SeriesRuns, bounds: tuple[int, int, int], residuals: Floats, change: float) -> float:
    """Return the probability that as many runs as in the shorter piece stray as far from the level of the other piece.

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


def value_changes(values: Sequence[float] | Floats, floor: float) -> list[int]:
    """Return the positions of all changes of exact `values` that reach the relative `floor`, from the level before."""
    changes: list[int] = []
    level = values[0] if len(values) else 0.0
    for place, value in enumerate(values):
        if value != level and abs(log(value / level)) >= log1p(floor):
            changes.append(place)
            level = value
    return changes


# Test of one window. The findings of all windows are merged into a trend.

# Noise floors, relative, by machine, backend, case and metric.
Floors = Mapping[tuple[str, str, str, str], float]


@dataclass(frozen=True)
class TestedSeries:
    """A series in one window: the number of its `runs` that no earlier window has, and its newest `level`.

    `floor` is the smallest reported change. The level is None without a trusted run.
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
    """Test of the series of one window; changes below `floors`, and below `smallest`, are not reported.

    By default that is SMALLEST, and 0 for an exact metric.
    """

    def __init__(self, window: RecordWindow, floors: Floors, smallest: float | None) -> None:
        self._window, self._floors, self._smallest = window, floors, smallest

    def floor(self, key: Key) -> float:
        """Return the smallest relative change of the series that is reported."""
        if is_exact(key.metric):
            return self._smallest or 0.0
        smallest = SMALLEST if self._smallest is None else self._smallest
        return max(smallest, self._floors.get((key.machine, key.backend, key.case, key.metric), 0.0))

    def run(self, history: History) -> TestedWindow:
        """Return the findings in the window's part of a history."""
        history = timed(history)
        points, shared = SeriesPoints.of(history), self._window.shared
        every = list(series_of(history, shared, points))
        if len(history.records) >= SETTLED + CONFIRMED:  # fewer have no step, whichever boards measured them
            every = list(levelled(history, every, points.vocabulary["board"]))
        causes = Causes(history, every, points)
        steps: list[FoundStep] = []
        tested: list[TestedSeries] = []
        aside: Counter[str] = Counter()
        for series in every:
            series_steps, level = self._steps(series, causes, history)
            steps += series_steps
            runs = int(numpy.count_nonzero(series.records >= shared))
            tested.append(TestedSeries(series.key, runs, level, self.floor(series.key)))
            aside.update(series.aside)
        count = int(numpy.count_nonzero(points.columns["record"] >= shared))
        return TestedWindow(count, tuple(steps), tuple(tested), dict(aside))

    def _steps(self, series: CaseSeries, causes: Causes, history: History) -> tuple[list[FoundStep], float | None]:
        """Return the steps of a series that this window must detect, and its newest level."""
        if not len(series.values):
            return [], None
        floor = self.floor(series.key)
        exact = is_exact(series.key.metric)
        changes = value_changes(series.values, floor) if exact else level_changes(series.logs, log1p(floor))
        bounds = [0, *changes, len(series.values)]
        pieces = [series.values[a : a + 1 if exact else b] for a, b in zip(bounds, bounds[1:], strict=False)]
        levels = [middle(piece) for piece in pieces]
        shared = int(numpy.searchsorted(series.records, self._window.shared))
        steps: list[FoundStep] = []
        for index, change in enumerate(changes):
            # A change at the border of two windows is detected by both.
            near = series.records[max(0, change - CONFIRMED) : change + CONFIRMED].tolist()
            if any(self._window.tests(record) for record in near):
                size = log(levels[index + 1] / levels[index])
                about = Change(change, size, log1p(floor), bounds[index], bounds[index + 2])
                step = _step(series, about, (levels[index], levels[index + 1]), causes, history)
                steps.append(FoundStep(step, change - shared))
        return steps, levels[-1]


def _step(series: CaseSeries, change: Change, levels: tuple[float, float], causes: Causes, history: History) -> Step:
    """Return the step at a change; fields that depend on later windows are filled in by `trend`."""
    place, cause = causes.of(series, change)
    old, new = (history.records[int(series.records[run])] for run in (place - 1, place))
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


# Cache of the findings of windows, in the user's cache folder.
#
# Findings depend on the content of the window's records, on the noise floors, and on the code of the tests. The
# findings of a window without the seals of its records (see `store.history.StoredPoints`) are not kept. The cache may
# be deleted at any time.

_ANALYSIS = Path(__file__).parent.parent


@dataclass(frozen=True)
class _KeptWindow:
    """The findings of a window whose content has this digest."""

    digest: str
    found: TestedWindow


class WindowCache:
    """Cached findings in windows of one history, with the same choice of cases and the same smallest change."""

    def __init__(self, history: History, floors: Floors, smallest: float | None) -> None:
        self._history, self._floors, self._smallest = history, floors, smallest
        self._digests: dict[tuple[str, str], str] = {}

    def read(self, window: RecordWindow) -> TestedWindow | None:
        """Return the findings of a window with the same content, or None."""
        digest = self._digest(window)
        try:
            kept = kind_in(self._path(window), "findings of a window", _KeptWindow)
        except (OSError, ResultsError):
            return None
        return kept.found if digest and kept.digest == digest else None

    def write(self, window: RecordWindow, tested: TestedWindow) -> None:
        """Keep the findings if possible; without a cache the next trend only takes longer."""
        if digest := self._digest(window):
            try:
                write_atomically(self._path(window), json_of_kind(_KeptWindow(digest, tested)))
            except OSError:
                return

    def _path(self, window: RecordWindow) -> Path:
        """Return the file of a window; it depends on the noise floors, but not on the content of the records."""
        oldest = self._history.records[window.places[0]]
        chosen = sorted(self._history.cases or ()), sorted(self._history.metrics or ())
        owner = window.machine, window.backend, window.environment
        identity = (
            *owner,
            window.number,
            oldest.file,
            oldest.created,
            self._smallest,
            self._floors_of(window),
            *chosen,
        )
        return cache_folder("trends") / f"{_digest_of([repr(identity)])}.json"

    def _digest(self, window: RecordWindow) -> str | None:
        stored = [self._history.stored[place] for place in window.places]
        if not all(points.seal for points in stored):
            return None
        contents = (f"{run.facts.file} {run.facts.when} {run.facts.commit} {run.seal}" for run in stored)
        return _digest_of([_code_digest(), repr((window.shared, window.is_last)), *contents])

    def _floors_of(self, window: RecordWindow) -> str:
        """Return a digest of the noise floors of the window's machine and backend."""
        owner = window.machine, window.backend
        if owner not in self._digests:
            floors = sorted((key[2:], floor) for key, floor in self._floors.items() if key[:2] == owner)
            self._digests[owner] = _digest_of([repr(floors)])
        return self._digests[owner]


def _digest_of(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


@cache
def _code_digest() -> str:
    """Return a digest of the code of the tests: other code finds other steps."""
    folders = ("trend", "compare", ".")
    sources = sorted(path for folder in folders for path in (_ANALYSIS / folder).glob("*.py"))
    return _digest_of(source.read_text() for source in sources)

"""What a test of one window finds, so that the findings of all windows can be put together."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import log, log1p

import numpy

from prism_bench.analysis.trend.causes import Causes, Change
from prism_bench.analysis.trend.detection import level_changes
from prism_bench.analysis.trend.runs import middle
from prism_bench.analysis.trend.series import CaseSeries, SeriesPoints, higher_is_better, levelled, series_of
from prism_bench.analysis.trend.step import Key, Step
from prism_bench.analysis.trend.walk import CONFIRMED
from prism_bench.analysis.trend.windows import RecordWindow
from prism_bench.record.store import History

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
        series.key, *levels, old.file, new.file, since, (old.commit, new.commit), nights=0, age=0,
        worse=worse(series.key, *levels), recovered=False, cause=cause,
    )  # fmt: skip


def worse(key: Key, before: float, after: float, margin: float = 0.0) -> bool:
    """Return whether `after` is the worse value, by more than the relative `margin`."""
    ratio = before / after if higher_is_better(key.metric) else after / before
    return ratio > 1 + margin

"""Trend of every case over the records of a machine: series, their steps and causes.

For a gate: `steps(store.read_history("reports/runs"), floors)` returns every confirmed step, the oldest first, and
`causes.shifts(steps)` combines those of one cause, with their gravity. A step is confirmed, and reported, by its third
run, with an `age` of 3.

A long history is tested window by window (`series.windows_of`); the findings of a window are kept until its records
change.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from prism_bench.analysis.trend.causes import breakpoints
from prism_bench.analysis.trend.detection import CONFIRMED, Floors, TestedWindow, WindowCache, WindowTest, worse
from prism_bench.analysis.trend.series import CAUSES, Breakpoint, CaseSeries, Cause, Course, Key, Step, windows_of
from prism_bench.record.store import History
from prism_bench.spec.metric import is_exact

__all__ = ["CAUSES", "Breakpoint", "CaseSeries", "Cause", "Course", "Floors", "Key", "Step", "Trend", "steps", "trend"]


@dataclass(frozen=True)
class Trend:
    """Steps of a history, oldest first, and its `breakpoints`.

    `series` and `points` count the tested series and their points, `aside` the runs that were set aside, by reason.
    """

    steps: tuple[Step, ...]
    breakpoints: tuple[Breakpoint, ...]
    series: int
    points: int
    aside: Mapping[str, int]


def steps(history: History, floors: Floors | None = None, smallest: float | None = None) -> list[Step]:
    """Return every confirmed change of level in the history, the oldest first.

    `floors` were measured by `prism-bench compare --itself` (see `series.kept_floors`); a step is larger than
    its noise floor and than `smallest`, 2 % by default. Of an exact metric (`metric.is_exact`) every change is a step.
    """
    return list(trend(history, floors, smallest).steps)


def trend(history: History, floors: Floors | None = None, smallest: float | None = None) -> Trend:
    """Return the trend of every series of the history; see `steps`. Raise a ResultsError for a damaged shard."""
    floors = floors or {}
    cache = WindowCache(history, floors, smallest)
    windows: list[TestedWindow] = []
    aside: Counter[str] = Counter()
    for window in windows_of(history):
        tested = cache.read(window)
        if tested is None:
            tested = WindowTest(window, floors, smallest).run(history.part(window.places))
            cache.write(window, tested)
        windows.append(tested)
        aside.update(tested.aside)
    places = {facts.file: place for place, facts in enumerate(history.records)}
    every = sorted(_merged_steps(windows), key=lambda step: (places[step.record], step.key.machine, step.key.case))
    series = {series.key for window in windows for series in window.series}
    points = sum(window.points for window in windows)
    return Trend(tuple(every), tuple(breakpoints(history.records)), len(series), points, aside)


def _merged_steps(windows: Sequence[TestedWindow]) -> Iterator[Step]:
    """Yield the steps of all windows, each with the duration of its level, its age, and whether it has recovered."""
    runs: dict[Key, int] = {}
    newest: dict[Key, tuple[float, float]] = {}
    steps: dict[Key, list[tuple[int, Step]]] = {}
    for window in windows:
        for tested in window.steps:
            number = runs.get(tested.step.key, 0) + tested.number
            earlier = steps.setdefault(tested.step.key, [])
            apart = 1 if is_exact(tested.step.key.metric) else CONFIRMED
            if not earlier or number - earlier[-1][0] >= apart:  # both windows detect a step at their border
                earlier.append((number, tested.step))
        for series in window.series:
            runs[series.key] = runs.get(series.key, 0) + series.runs
            if series.level is not None:
                newest[series.key] = series.level, series.floor
    for key, numbered in steps.items():
        level, floor = newest[key]
        for (number, step), (following, _) in pairwise([*numbered, (runs[key], numbered[-1][1])]):
            yield replace(
                step,
                nights=following - number,
                age=runs[key] - number,
                recovered=not worse(key, step.before, level, floor),
            )

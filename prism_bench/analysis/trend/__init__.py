"""Trend of every case over the records of a machine: series, their steps and causes.

For a gate: `steps(store.read_history("reports/runs"), floors)` gives every confirmed step, the oldest first, and
`shifts.shifts(steps)` puts those of one cause together, with their gravity. A step is confirmed by its third run: its
`age` is 3 then, and it is news.

A long history is tested window by window (`windows`); what a window found is kept until its records change.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from prism_bench.analysis.trend.causes import breakpoints
from prism_bench.analysis.trend.detection import CONFIRMED, Floors, TestedWindow, WindowCache, WindowTest, worse
from prism_bench.analysis.trend.series import CAUSES, Breakpoint, CaseSeries, Cause, Course, Key, Step, windows_of
from prism_bench.record.store import History

__all__ = ["CAUSES", "Breakpoint", "CaseSeries", "Cause", "Course", "Floors", "Key", "Step", "Trend", "steps", "trend"]

SMALLEST = 0.02  # relative: a smaller change of level is not worth a report


@dataclass(frozen=True)
class Trend:
    """Steps of a history, oldest first, and its `breakpoints`.

    `series` is how many series were tested, `points` how many points they have, `aside` how many of their runs were set
    aside, by reason.
    """

    steps: tuple[Step, ...]
    breakpoints: tuple[Breakpoint, ...]
    series: int
    points: int
    aside: Mapping[str, int]


def steps(history: History, floors: Floors | None = None, smallest: float = SMALLEST) -> list[Step]:
    """Return every confirmed change of level in the history, the oldest first.

    `floors` are what `prism-bench noise` measured (see `choice.kept_floors`); a step is larger than its noise floor
    and than `smallest`.
    """
    return list(trend(history, floors, smallest).steps)


def trend(history: History, floors: Floors | None = None, smallest: float = SMALLEST) -> Trend:
    """Return the trend of every series of the history; see `steps`. Raise a ResultsError for a damaged shard."""
    found = list(_tested(history, floors or {}, smallest))
    places = {facts.file: place for place, facts in enumerate(history.records)}
    every = sorted(_together(found), key=lambda step: (places[step.record], step.key.machine, step.key.case))
    aside: Counter[str] = Counter()
    for one in found:
        aside.update(one.aside)
    series = {tested.key for one in found for tested in one.series}
    points = sum(one.points for one in found)
    return Trend(tuple(every), tuple(breakpoints(history.records)), len(series), points, aside)


def _tested(history: History, floors: Floors, smallest: float) -> Iterator[TestedWindow]:
    """Yield what is found in each window, those of one machine and backend oldest first."""
    kept = WindowCache(history, floors, smallest)
    for window in windows_of(history):
        known = kept.read(window)
        if known is None:
            known = WindowTest(window, floors, smallest).run(history.part(window.places))
            kept.write(window, known)
        yield known


def _together(windows: Sequence[TestedWindow]) -> Iterator[Step]:
    """Yield the steps of all windows, each with what came after it: how long its level lasted, and the newest one."""
    runs: dict[Key, int] = {}
    newest: dict[Key, tuple[float, float]] = {}
    found: dict[Key, list[tuple[int, Step]]] = {}
    for window in windows:
        for one in window.steps:
            number, own = runs.get(one.step.key, 0) + one.number, found.setdefault(one.step.key, [])
            if not own or number - own[-1][0] >= CONFIRMED:  # two windows find one at their border
                own.append((number, one.step))
        for series in window.series:
            runs[series.key] = runs.get(series.key, 0) + series.runs
            if series.level is not None:
                newest[series.key] = series.level, series.floor
    for key, own in found.items():
        level, floor = newest[key]
        for (number, step), (following, _) in pairwise([*own, (runs[key], own[-1][1])]):
            yield replace(
                step,
                nights=following - number,
                age=runs[key] - number,
                recovered=not worse(key, step.before, level, floor),
            )

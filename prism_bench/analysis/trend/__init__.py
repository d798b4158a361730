"""Trend of every case over the records of a machine: series, their steps and causes.

For a gate: `steps(store.read_history("reports/runs"), floors)` gives every confirmed step, the oldest first, and
`shifts.shifts(steps)` puts those of one cause together, with their gravity. A step is confirmed by its third run: its
`age` is 3 then, and it is news.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import log, log1p

import numpy

from prism_bench.analysis.trend.causes import Causes, Change, breakpoints
from prism_bench.analysis.trend.detection import level_changes
from prism_bench.analysis.trend.series import CaseSeries, higher_is_better, series_of
from prism_bench.analysis.trend.step import CAUSES, Breakpoint, Cause, Key, Step
from prism_bench.store import History

__all__ = ["CAUSES", "Breakpoint", "Cause", "Key", "CaseSeries", "Step", "Trend", "steps", "trend"]

SMALLEST = 0.02  # relative: a smaller change of level is not worth a report

# Noise floors, relative, by machine, backend, case and metric.
Floors = Mapping[tuple[str, str, str, str], float]


@dataclass(frozen=True)
class Trend:
    """Steps of a history, oldest first, and its `breakpoints`.

    `series` is how many series were tested, `aside` how many of their runs were set aside, by reason.
    """

    steps: tuple[Step, ...]
    breakpoints: tuple[Breakpoint, ...]
    series: int
    aside: Mapping[str, int]


def steps(history: History, floors: Floors | None = None, smallest: float = SMALLEST) -> list[Step]:
    """Return every confirmed change of level in the history, the oldest first.

    `floors` are what `prism-bench noise` measured (see `choice.kept_floors`); a step is larger than its noise floor
    and than `smallest`.
    """
    return list(trend(history, floors, smallest).steps)


def trend(
    history: History,
    floors: Floors | None = None,
    smallest: float = SMALLEST,
    known: Iterable[CaseSeries] | None = None,
) -> Trend:
    """Return the trend of every series of the history; see `steps`. `known` are the series, where a caller has them."""
    every = list(series_of(history) if known is None else known)
    causes = Causes(history, every)
    found: list[Step] = []
    aside: Counter[str] = Counter()
    for series in every:
        key = series.key
        floor = max(smallest, (floors or {}).get((key.machine, key.backend, key.case, key.metric), 0.0))
        found += _steps(series, floor, causes, history)
        aside.update(series.aside)
    found.sort(key=lambda step: (step.since, step.key.machine, step.key.case))
    return Trend(tuple(found), tuple(breakpoints(history.records)), len(every), aside)


def _steps(series: CaseSeries, floor: float, causes: Causes, history: History) -> Iterator[Step]:
    changes = level_changes(series.logs, log1p(floor))
    if not changes:
        return
    bounds = [0, *changes, len(series.values)]
    levels = [float(numpy.median(series.values[a:b])) for a, b in zip(bounds, bounds[1:], strict=False)]
    for index, change in enumerate(changes):
        before, after = levels[index], levels[index + 1]
        size, edges = log(after / before), (bounds[index], bounds[index + 2])
        place, cause = causes.of(series, Change(change, size, log1p(floor), *edges))
        old, new = (history.records[int(series.records[one])] for one in (place - 1, place))
        yield Step(
            series.key, before, after, old.file, new.file, new.created, (old.commit, new.commit),
            nights=bounds[index + 2] - change, age=len(series.values) - change, cause=cause,
            worse=_worse(series.key, before, after), recovered=not _worse(series.key, before, levels[-1], floor),
        )  # fmt: skip


def _worse(key: Key, before: float, after: float, margin: float = 0.0) -> bool:
    """Return whether `after` is the worse value, by more than the relative `margin`."""
    ratio = before / after if higher_is_better(key.metric) else after / before
    return ratio > 1 + margin

"""Tuning while the program runs: every execution is timed and recorded, and the quickest configuration is launched.

As the design documents have it: moving averages with alpha 0.3, three samples before a configuration counts, all of
them sampled again after a thousand executions. Beyond that a choice holds for its size class and those near it, the
default is left for a gain only, and an outlier counts as four times the average at most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from prism_bench.errors import UsageError
from prism_bench.workflows.tuning.bucket import REACH, bucket_of, distance

Items = tuple[tuple[str, Any], ...]  # a workload or a configuration that can be a key


@dataclass(frozen=True)
class Habits:
    """Settings of online tuning.

    `alpha` is the weight of a new sample; `least` samples make a configuration count; after `again` executions all are
    sampled anew; of a space, `most` are tried; the default is left for a `gain` of at least that share.
    """

    alpha: float = 0.3
    least: int = 3
    again: int = 1000
    most: int = 5
    gain: float = 0.02
    outlier: float = 4.0


@dataclass
class Average:
    """The moving average of one configuration, and the samples since sampling last began anew."""

    seconds: float = inf
    fresh: int = 0
    total: int = 0


@dataclass
class _Place:
    """One kernel at one size class."""

    space: tuple[Items, ...]
    averages: dict[Items, Average] = field(default_factory=dict)
    executions: int = 0


class OnlineTuner:
    """Online tuner: `next` returns what to launch, `record` takes its time. Sizes are workloads: axes by name."""

    def __init__(self, habits: Habits | None = None) -> None:
        self._habits = habits or Habits()
        self._places: dict[tuple[str, Items], _Place] = {}

    def next(self, kernel: str, workload: Mapping[str, Any], space: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the configuration to launch: the one with the fewest samples while any has too few, else the best.

        `space` has every configuration, its default first; a UsageError where it is empty.
        """
        if not space:
            raise UsageError(f"{kernel}: there is no configuration to launch")
        place = self._place(kernel, workload, space)
        needed = [one for one in place.space if place.averages[one].fresh < self._habits.least]
        if needed:
            return dict(min(needed, key=lambda one: place.averages[one].fresh))
        return dict(self._best(place))

    def record(
        self, kernel: str, workload: Mapping[str, Any], configuration: Mapping[str, Any], seconds: float
    ) -> None:
        """Take the time of one execution into the average; after `again` executions everything is sampled anew."""
        place = self._places[self._key(kernel, workload)]
        self._blend(place.averages[tuple(configuration.items())], seconds)
        place.executions += 1
        if place.executions % self._habits.again == 0:
            for average in place.averages.values():
                average.fresh = 0

    def best(self, kernel: str, workload: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the best configuration of the size class, else of the nearest class that has one; None otherwise."""
        known = [(distance(dict(size), workload), place) for (name, size), place in self._places.items()
                 if name == kernel and self._counting(place)]  # fmt: skip
        own = self._places.get(self._key(kernel, workload))
        if own and self._counting(own):
            return dict(self._best(own))
        near = [(apart, place) for apart, place in known if apart <= REACH]
        return dict(self._best(min(near, key=lambda pair: pair[0])[1])) if near else None

    def seconds(self, kernel: str, workload: Mapping[str, Any], configuration: Mapping[str, Any]) -> float | None:
        """Return the moving average of a configuration, None where it was never launched."""
        place = self._places.get(self._key(kernel, workload))
        average = place.averages.get(tuple(configuration.items())) if place else None
        return average.seconds if average and average.total else None

    def statistics(self) -> dict[str, Any]:
        """Return how much was tuned.

        It has places, distinct configurations measured, executions, and the mean of default over best (1 where nothing
        is tuned).
        """
        tuned = [place for place in self._places.values() if self._counting(place)]
        speedups = [place.averages[place.space[0]].seconds / place.averages[self._best(place)].seconds
                    for place in tuned if place.averages[place.space[0]].total]  # fmt: skip
        measured = sum(average.total > 0 for place in self._places.values() for average in place.averages.values())
        return {
            "kernels_tuned": len(tuned),
            "measurements": measured,
            "executions": sum(place.executions for place in self._places.values()),
            "mean_speedup": sum(speedups) / len(speedups) if speedups else 1.0,
        }

    def _key(self, kernel: str, workload: Mapping[str, Any]) -> tuple[str, Items]:
        return kernel, tuple(bucket_of(workload).items())

    def _place(self, kernel: str, workload: Mapping[str, Any], space: Sequence[Mapping[str, Any]]) -> _Place:
        """Return the place; a new one begins with the default and the best of a place near it."""
        key = self._key(kernel, workload)
        if key not in self._places:
            near = self.best(kernel, workload)
            ordered = [space[0], *([near] if near in space[1:] else []), *(one for one in space[1:] if one != near)]
            chosen = tuple(tuple(one.items()) for one in ordered[: self._habits.most])
            self._places[key] = _Place(chosen, {one: Average() for one in chosen})
        return self._places[key]

    def _blend(self, average: Average, seconds: float) -> None:
        if average.total:
            seconds = min(seconds, self._habits.outlier * average.seconds)
            seconds = self._habits.alpha * seconds + (1 - self._habits.alpha) * average.seconds
        average.seconds, average.fresh, average.total = seconds, average.fresh + 1, average.total + 1

    def _counting(self, place: _Place) -> list[Items]:
        return [one for one in place.space if place.averages[one].total >= self._habits.least]

    def _best(self, place: _Place) -> Items:
        """Return the lowest average among those that count, if it beats the default by the gain."""
        counting = self._counting(place)
        if not counting:
            return place.space[0]
        best, default = min(counting, key=lambda one: place.averages[one].seconds), place.space[0]
        enough = place.averages[best].seconds < place.averages[default].seconds * (1 - self._habits.gain)
        return best if enough or default not in counting else default

"""Search of configurations: all of a small space, by kernel_tuner in a large one, or while the program runs."""

import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from math import inf
from os import devnull
from typing import Any

import numpy as np

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.io.installation import pip_install
from prism_bench.workflows.tuning.choice import REACH, bucket_of, distance

# Online tuning: every execution is timed and recorded, and the fastest configuration is launched.
#
# As in the design documents: moving averages with alpha 0.3, three samples before a configuration counts, all sampled
# again after a thousand executions. In addition, a choice holds for its size class and those near it, the default is
# left only for a gain, and an outlier counts as at most four times the average.

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
    """Averages of a kernel at a size class."""

    space: tuple[Items, ...]
    averages: dict[Items, Average] = field(default_factory=dict)
    executions: int = 0


class OnlineTuner:
    """Online tuner: `next` returns what to launch, `record` takes its time. Sizes are workloads: axes by name."""

    def __init__(self, habits: Habits | None = None) -> None:
        self._habits = habits or Habits()
        self._places: dict[tuple[str, Items], _Place] = {}

    def next(self, kernel: str, workload: Mapping[str, Any], space: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the configuration to launch: the least sampled while any has too few samples, else the best.

        `space` has every configuration, its default first; UsageError if it is empty.
        """
        if not space:
            raise UsageError(f"{kernel}: there is no configuration to launch")
        place = self._place(kernel, workload, space)
        needed = [
            configuration for configuration in place.space if place.averages[configuration].fresh < self._habits.least
        ]
        if needed:
            return dict(min(needed, key=lambda configuration: place.averages[configuration].fresh))
        return dict(self._best(place))

    def record(
        self, kernel: str, workload: Mapping[str, Any], configuration: Mapping[str, Any], seconds: float
    ) -> None:
        """Add the time of an execution to the average; after `again` executions all configurations are sampled anew."""
        place = self._places[self._key(kernel, workload)]
        average = place.averages[tuple(configuration.items())]
        if average.total:
            seconds = min(seconds, self._habits.outlier * average.seconds)
            seconds = self._habits.alpha * seconds + (1 - self._habits.alpha) * average.seconds
        average.seconds, average.fresh, average.total = seconds, average.fresh + 1, average.total + 1
        place.executions += 1
        if place.executions % self._habits.again == 0:
            for average in place.averages.values():
                average.fresh = 0

    def best(self, kernel: str, workload: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the best configuration of the size class, else of the nearest tuned class; None otherwise."""
        same = self._places.get(self._key(kernel, workload))
        if same and self._counting(same):
            return dict(self._best(same))
        known = [
            (distance(dict(size), workload), place)
            for (name, size), place in self._places.items()
            if name == kernel and self._counting(place)
        ]
        apart, place = min(known, key=lambda pair: pair[0], default=(inf, None))
        return dict(self._best(place)) if place and apart <= REACH else None

    def seconds(self, kernel: str, workload: Mapping[str, Any], configuration: Mapping[str, Any]) -> float | None:
        """Return the moving average of a configuration, None if it was never launched."""
        place = self._places.get(self._key(kernel, workload))
        average = place.averages.get(tuple(configuration.items())) if place else None
        return average.seconds if average and average.total else None

    def statistics(self) -> dict[str, Any]:
        """Return the counts of tuned classes, measured configurations and executions, and the mean speedup.

        The mean speedup is 1 if nothing is tuned.
        """
        tuned = [place for place in self._places.values() if self._counting(place)]
        speedups = [
            place.averages[place.space[0]].seconds / place.averages[self._best(place)].seconds
            for place in tuned
            if place.averages[place.space[0]].total
        ]
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
        """Return the averages of the size class; a new class begins with the default and the best of a near class."""
        key = self._key(kernel, workload)
        if key not in self._places:
            near = self.best(kernel, workload)
            ordered = [
                space[0],
                *([near] if near in space[1:] else []),
                *(configuration for configuration in space[1:] if configuration != near),
            ]
            chosen = tuple(tuple(configuration.items()) for configuration in ordered[: self._habits.most])
            self._places[key] = _Place(chosen, {configuration: Average() for configuration in chosen})
        return self._places[key]

    def _counting(self, place: _Place) -> list[Items]:
        return [
            configuration for configuration in place.space if place.averages[configuration].total >= self._habits.least
        ]

    def _best(self, place: _Place) -> Items:
        """Return the lowest average among those that count, if it beats the default by the gain."""
        counting = self._counting(place)
        if not counting:
            return place.space[0]
        best, default = min(counting, key=lambda configuration: place.averages[configuration].seconds), place.space[0]
        enough = place.averages[best].seconds < place.averages[default].seconds * (1 - self._habits.gain)
        return best if enough or default not in counting else default


# kernel_tuner proposes configurations; Prism Bench verifies and times them, and kernel_tuner gets no
# kernel. B. van Werkhoven, Future Generation Computer Systems 90 (2019) 347.

_SEED = 0
WRONG = 1e6  # seconds, the time of a failed configuration, so that no strategy stays near it
_TIME = "time"


def _ask_strategy(
    space: Sequence[dict[str, Any]], measure: Callable[[dict[str, Any]], float | None], budget: int
) -> None:
    """Call `measure` for the default (the first), then for what the strategy proposes: at most `budget` in all.

    The same space and the same answers give the same proposals. BackendUnavailable if kernel_tuner is missing.
    """
    interface, searchspace, util = _library()
    runner = _Runner(space, measure)
    values = {key: list(dict.fromkeys(configuration[key] for configuration in space)) for key in space[0]}
    with open(devnull, "w") as nowhere, redirect_stdout(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a small space makes populations smaller
        random.seed(_SEED)
        np.random.seed(_SEED)
        known = {"tune_params": values, "cache": dict(enumerate(space))}
        searched = searchspace.Searchspace(None, None, None, from_cache=known)
        options = interface.Options(
            strategy_options=interface.Options(max_fevals=budget),
            max_fevals=budget,
            objective=[_TIME],
            objective_higher_is_better=[False],
            tune_params=values,
            verbose=False,
            cache={},
            restrictions=None,
            budget=util.TuningBudget(None, min(budget, len(space))),
        )
        runner.run([tuple(space[0].values())], options)
        interface.strategy_map[_STRATEGY].tune(searched, runner, options)


def _library() -> tuple[Any, Any, Any]:
    try:
        from kernel_tuner import interface, searchspace, util
    except ImportError as error:
        raise BackendUnavailable(
            f"kernel_tuner is not installed ({error}); {pip_install('tune')}, or try all with a larger --budget"
        ) from None
    return interface, searchspace, util


class _Runner:
    """Runner that strategies pass their proposals to. Each configuration is measured once."""

    def __init__(self, space: Sequence[dict[str, Any]], measure: Callable[[dict[str, Any]], float | None]) -> None:
        self._space, self._measure = {tuple(configuration.values()): configuration for configuration in space}, measure
        self._known: dict[tuple[Any, ...], float | None] = {}

    def run(self, proposals: Sequence[Sequence[Any]], options: Any) -> list[dict[str, Any] | None]:
        """Return the proposals with their times; None for what the budget leaves out."""
        return [self._timed(tuple(proposal), options) for proposal in proposals]

    def add_strategy_time(self, seconds: float) -> None:
        """Ignore the time that the strategy itself takes."""

    def _timed(self, proposal: tuple[Any, ...], options: Any) -> dict[str, Any] | None:
        if proposal not in self._known:
            if options.budget.is_done():
                return None
            self._known[proposal] = self._measure(self._space[proposal])
            options.budget.add_evaluations(1)
        seconds = self._known[proposal]
        return {**self._space[proposal], _TIME: WRONG if seconds is None else seconds}


# The search: all of a small space, proposals of a genetic algorithm in a large one.

_SMALL = 64  # configurations that are all tried
_LEAST_GAIN = 0.005  # of the default's time in the search: a smaller gain is not worth fresh processes
_STRATEGY = "genetic_algorithm"  # of kernel_tuner
Measure = Callable[[dict[str, Any]], float | None]  # seconds of a configuration; None where it is wrong or failed


def search(space: Sequence[dict[str, Any]], measure: Measure, budget: int = _SMALL) -> None:
    """Call `measure` for configurations of `space`, whose first is the default.

    All are measured if there are at most `budget`; else at most `budget` that a genetic algorithm proposes.
    """
    if not space:
        raise UsageError("there is no configuration to try")
    if len(space) <= budget:
        for configuration in space:
            measure(configuration)
        return
    _ask_strategy(space, measure, budget)


def best_few(seconds: dict[str, float], default: str) -> list[str]:
    """Return the tasks that beat the default by `_LEAST_GAIN`, best first: those that are worth fresh processes."""
    usual = seconds.get(default)
    if usual is None:
        return []
    quicker = [task for task, took in seconds.items() if took < usual * (1 - _LEAST_GAIN) and task != default]
    return sorted(quicker, key=seconds.__getitem__)

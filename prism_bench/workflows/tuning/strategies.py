"""kernel_tuner's search strategies over our configurations: they propose, our own clock and verification answer.

B. van Werkhoven, Future Generation Computer Systems 90 (2019) 347. Only its search is used: no kernel is handed over.
"""

import random
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from os import devnull
from typing import Any

import numpy as np

from prism_bench.errors import BackendUnavailable
from prism_bench.io.installation import pip_install

SEED = 0
WRONG = 1e6  # seconds: the time of a configuration without one, so that no strategy stays near it
_TIME = "time"


def ask_strategy(
    name: str, space: Sequence[dict[str, Any]], measure: Callable[[dict[str, Any]], float | None], budget: int
) -> None:
    """Call `measure` for the default (the first), then for what the strategy proposes: at most `budget` in all.

    The same space and the same answers give the same proposals. BackendUnavailable where kernel_tuner is missing.
    """
    interface, searchspace, util = _library()
    runner = _Runner(space, measure)
    values = {key: list(dict.fromkeys(one[key] for one in space)) for key in space[0]}
    with open(devnull, "w") as nowhere, redirect_stdout(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a small space makes populations smaller
        random.seed(SEED)
        np.random.seed(SEED)
        known = {"tune_params": values, "cache": dict(enumerate(space))}
        found = searchspace.Searchspace(None, None, None, from_cache=known)
        options = interface.Options(
            strategy_options=interface.Options(max_fevals=budget), max_fevals=budget, objective=[_TIME],
            objective_higher_is_better=[False], tune_params=values, verbose=False, cache={}, restrictions=None,
            budget=util.TuningBudget(None, min(budget, len(space))),
        )  # fmt: skip
        runner.run([tuple(space[0].values())], options)
        interface.strategy_map[name].tune(found, runner, options)


def _library() -> tuple[Any, Any, Any]:
    try:
        from kernel_tuner import interface, searchspace, util
    except ImportError as error:
        raise BackendUnavailable(
            f"kernel_tuner is not installed ({error}); {pip_install('tune')}, or search with --strategy exhaustive"
        ) from None
    return interface, searchspace, util


class _Runner:
    """Runner that strategies pass their proposals to. Each configuration is measured once."""

    def __init__(self, space: Sequence[dict[str, Any]], measure: Callable[[dict[str, Any]], float | None]) -> None:
        self._space, self._measure = {tuple(one.values()): one for one in space}, measure
        self._known: dict[tuple[Any, ...], float | None] = {}

    def run(self, proposals: Sequence[Sequence[Any]], options: Any) -> list[dict[str, Any] | None]:
        """Return the proposals with their times; None for what the budget leaves out."""
        return [self._one(tuple(proposal), options) for proposal in proposals]

    def add_strategy_time(self, seconds: float) -> None:
        """Ignore the time that the strategy itself takes."""

    def _one(self, proposal: tuple[Any, ...], options: Any) -> dict[str, Any] | None:
        if proposal not in self._known:
            if options.budget.is_done():
                return None
            self._known[proposal] = self._measure(self._space[proposal])
            options.budget.add_evaluations(1)
        seconds = self._known[proposal]
        return {**self._space[proposal], _TIME: WRONG if seconds is None else seconds}

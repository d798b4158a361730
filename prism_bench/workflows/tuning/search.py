"""Which configurations to try: all of a small space, a strategy of kernel_tuner's in a large one."""

from collections.abc import Callable, Sequence
from typing import Any

from prism_bench.errors import UsageError, unknown

SMALL = 64  # configurations that are simply all tried
LEAST_GAIN = 0.005  # of the default's time in the search: less is not worth fresh processes
AUTO, EXHAUSTIVE = "auto", "exhaustive"
NAMES = (EXHAUSTIVE, "random_sample", "genetic_algorithm", "simulated_annealing", "dual_annealing", "pso", "mls",
         "firefly_algorithm", "diff_evo", "greedy_ils", "greedy_mls")  # fmt: skip
Measure = Callable[[dict[str, Any]], float | None]  # seconds of a configuration; None where it is wrong or failed


def require_strategy(name: str) -> str:
    """Return the name, if there is such a strategy."""
    if name not in (AUTO, *NAMES):
        raise unknown("strategy", name, (AUTO, *NAMES))
    return name


def search(space: Sequence[dict[str, Any]], measure: Measure, strategy: str = AUTO, budget: int = SMALL) -> None:
    """Call `measure` for configurations of `space`, whose first is the default.

    All are measured if `strategy` is `exhaustive`, or `auto` and there are at most `budget`; else at most `budget` that
    a strategy proposes.
    """
    if not space:
        raise UsageError("there is no configuration to try")
    if strategy == EXHAUSTIVE or (strategy == AUTO and len(space) <= budget):
        for configuration in space:
            measure(configuration)
        return
    from prism_bench.workflows.tuning.strategies import ask_strategy

    ask_strategy("genetic_algorithm" if strategy == AUTO else strategy, space, measure, budget)


def best_few(seconds: dict[str, float], default: str) -> list[str]:
    """Return the tasks that beat the default by `LEAST_GAIN`, best first: those that are worth fresh processes."""
    usual = seconds.get(default)
    if usual is None:
        return []
    quicker = [task for task, took in seconds.items() if took < usual * (1 - LEAST_GAIN) and task != default]
    return sorted(quicker, key=seconds.__getitem__)

"""Procedure of a nightly run: measure on one GPU or several, under a lock, with logs that are kept.

measuring   the plan, its parts in processes, more processes for undecided cases, the lock and the logs
run         the whole run: fetch the history, measure, judge, publish, keep the history
worker      the program of a part
"""

from prism_bench.extensions.ci.nightly.measuring import (
    NightlyKeys,
    NightlyMeasurement,
    NightlyPlan,
    PartState,
    locked,
    measured,
    measured_again,
    new_logs,
)

__all__ = [
    "NightlyKeys",
    "NightlyMeasurement",
    "NightlyPlan",
    "PartState",
    "locked",
    "measured",
    "measured_again",
    "new_logs",
]

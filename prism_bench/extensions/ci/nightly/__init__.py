"""Procedure of a nightly run: measure on one GPU or several, under a lock, with logs that are kept.

plan        what one nightly run does, and the commands that do the same
place       the lock of a machine and repository, and the folders of logs
child       a part of the run as a process: it ends in order when the nightly run does
measuring   all parts, and their records as one
again       more processes for the cases that the gate could not decide
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

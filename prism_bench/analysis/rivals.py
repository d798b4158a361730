"""Rivals of a case in its own record: the best library peer and the CPU."""

from dataclasses import dataclass

from prism_bench.measure.limits import valid_median
from prism_bench.run_record import CaseResult


@dataclass(frozen=True)
class Rival:
    """A peer's `name` and its median `seconds`, on the same clock as the kernel's."""

    name: str
    seconds: float


def clock_of(case: CaseResult) -> str:
    """Return the metric in which the case is compared: `cold_time`, or `wall_time` where the case ran on a CPU only."""
    has_cold = any(one.metric == "cold_time" for one in case.measurements)
    return "cold_time" if has_cold else "wall_time"


def peers(case: CaseResult) -> list[Rival]:
    """Return every validly measured peer of the case, the fastest first."""
    metric = clock_of(case)
    subjects = [one.subject for one in case.measurements if one.metric == metric and one.subject.startswith("peer:")]
    timed = [Rival(s.removeprefix("peer:"), t) for s in subjects if (t := valid_median(case, metric, s))]
    return sorted(timed, key=lambda rival: rival.seconds)


def cpu_seconds(case: CaseResult) -> float | None:
    """Return what the reference took on the CPU, in seconds; None where it was not timed."""
    return valid_median(case, "wall_time", "cpu")

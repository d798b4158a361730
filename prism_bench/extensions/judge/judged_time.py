"""A judged time of samples: their median, its interval, and whether the size was hidden."""

from collections.abc import Sequence
from statistics import median

import msgspec

from prism_bench.extensions.judge.hidden import HIDDEN
from prism_bench.extensions.judge.verdict import JudgedTime, TimeKind
from prism_bench.measure.statistics import median_interval
from prism_bench.spec.case import Case


def judged_time(
    case: Case, subject: str, kind: TimeKind, seconds: Sequence[float], seeds: Sequence[int] = ()
) -> JudgedTime:
    """Return the median of samples in seconds and its 95 % interval, of few ones their span; `seeds` drew inputs."""
    middle = median(seconds)
    low, high = median_interval(seconds) or (min(seconds), max(seconds))
    workload = case.name.removeprefix(case.kernel)  # not to be split: a name is its sender's, and may have brackets
    return JudgedTime(workload, subject, kind, middle, low, high, len(seconds), case.label == HIDDEN, tuple(seeds))


def least_time(case: Case, subject: str, seconds: float) -> JudgedTime:
    """Return a time that nothing can be shorter than, which was not measured and has no samples."""
    return msgspec.structs.replace(judged_time(case, subject, "ceiling", [seconds]), samples=0)

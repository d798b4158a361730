"""Ways to find a slow commit, on machines that are generated: ours, `git bisect run` and git-bayesect.

Every process of a commit is off by 1 %, normally, and costs one. The other two know passed or failed only, so that
their script needs a threshold: halfway between the ends of the history, which are measured in `ENDS` processes each.
They begin where the last commit measured slower than the first one at all.

    ours                         `prism-bench bisect` as it comes: two processes a side and measurement
    git bisect run, N processes  the script times a commit in that many processes
    git-bayesect                 `git bayesect run` as it comes, two processes a commit; ends at 95 %, here after `MOST`
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from math import fsum, log1p

import numpy as np

from prism_bench import __version__
from prism_bench.io.installation import DISTRIBUTION
from prism_bench.workflows.bisecting import HistoryNode, Logs, SearchLimits, bisected
from prism_bench.workflows.case_code import CaseCode

OFFSET = 0.01
SIDE, ENDS = 2, 8  # processes: of a side by default, and of an end of the history for a threshold
SURE, MOST = 0.95, 300
SEVERAL = -1  # more commits than one are named, or others than the named one are still likely: never right


@dataclass
class GeneratedHistory:
    """Commits with different machine code, of which the one at `place` makes the case longer by the share `size`."""

    commits: int
    place: int
    size: float
    rng: np.random.Generator
    processes: int = field(default=0, init=False)

    def logs(self, commit: int, processes: int) -> Logs:
        """Return the log times of that many processes of a commit, and count them."""
        self.processes += processes
        level = log1p(self.size) if commit >= self.place else 0.0
        return tuple((level + OFFSET * self.rng.standard_normal(processes)).tolist())


Search = Callable[[GeneratedHistory], int | None]  # the commit that is named, or SEVERAL; None where none is


def ours(history: GeneratedHistory) -> int | None:
    """Return what `prism-bench bisect` names: a commit, `SEVERAL`, or None."""
    nodes = [HistoryNode((str(one),), str(one), CaseCode(str(one))) for one in range(history.commits)]
    found = bisected("", nodes, lambda node: (history.logs(0, SIDE), history.logs(node, SIDE)), SearchLimits())
    culprits = found.posterior.culprits
    if not culprits:
        return None
    return culprits[0] if len(culprits) == 1 and found.ended == "decided" else SEVERAL


def git_bisect(history: GeneratedHistory, processes: int) -> int | None:
    """Return the commit at which `git bisect run` ends."""
    threshold = _threshold(history)
    if threshold is None:
        return None
    good, bad = 0, history.commits - 1
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if _mean(history.logs(middle, processes)) > threshold else (middle, bad)
    return bad


def git_bayesect(history: GeneratedHistory) -> int | None:
    """Return the commit of which git-bayesect is sure, None after too many measurements."""
    threshold, last = _threshold(history), history.commits - 1  # its index 0 is the newest commit
    if threshold is None:
        return None
    from git_bayesect import Bisector

    search = Bisector(np.ones(history.commits))
    for _ in range(MOST):
        index = search.select()
        search.record(index, _mean(history.logs(last - index, SIDE)) > threshold)
        if search.distribution.max() >= SURE:
            return last - int(search.distribution.argmax())
    return None


def _threshold(history: GeneratedHistory) -> float | None:
    """Return the log time from which on a commit is slow; None where the last one is not slower than the first."""
    first, last = (_mean(history.logs(commit, ENDS)) for commit in (0, history.commits - 1))
    return (first + last) / 2 if last > first else None


def _mean(logs: Logs) -> float:
    return fsum(logs) / len(logs)


METHODS: dict[str, tuple[Search, str]] = {
    "ours": (ours, DISTRIBUTION),
    "git bisect run, 2 processes": (partial(git_bisect, processes=2), ""),
    "git bisect run, 8 processes": (partial(git_bisect, processes=8), ""),
    "git-bayesect": (git_bayesect, "git-bayesect"),
}


def version(method: str) -> str | None:
    """Return the version of the method's package, `git` for what git does; None where it is not installed."""
    package = METHODS[method][1]
    try:
        return metadata.version(package) if package else "git"
    except metadata.PackageNotFoundError:
        return __version__ if method == "ours" else None

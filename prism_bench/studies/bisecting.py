"""Bisection of a history: measure nodes against the first one until the commit that changed a case's time is known.

The state is written after every measurement, so that an interrupted search goes on where it ended.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import fsum
from pathlib import Path

from prism_bench.analysis.bisection import Observation, Posterior, next_node, posterior
from prism_bench.errors import UsageError
from prism_bench.files import Schema
from prism_bench.studies.history_nodes import HistoryNode

SCHEMA = Schema("the state of a bisection", 1, "prism-bench bisect --state FILE")
USUAL, USUAL_FREEDOM = 0.01, 4  # spread between processes before any was seen, and how many degrees that counts for
Logs = tuple[float, ...]  # log medians of processes, in log seconds


@dataclass(frozen=True)
class MeasuredNode:
    """Log medians of the processes of node 0 (`first`) and of `node`, measured in turn."""

    node: int
    first: Logs
    logs: Logs


@dataclass(frozen=True)
class BisectionState:
    """What a search needs to go on: the case, the codes of the nodes in order, and what was measured."""

    case: str
    codes: tuple[str, ...]
    measured: tuple[MeasuredNode, ...] = ()


@dataclass(frozen=True)
class Bisection:
    """A history with what was measured of it. `ended` is why the search ended: `decided`, `time limit` or `most`."""

    case: str
    nodes: tuple[HistoryNode, ...]
    measured: tuple[MeasuredNode, ...]
    posterior: Posterior
    ended: str

    @property
    def culprits(self) -> tuple[HistoryNode, ...]:
        """The nodes whose commits changed the time, the most likely places; empty where nothing is named."""
        return tuple(self.nodes[node] for node in self.posterior.culprits)

    def size(self, node: int) -> float | None:
        """Return the mean log ratio of the node's time over that of node 0; None where it was not measured."""
        found = [log for one in self.measured if one.node == node for log in _ratios(one)]
        return fsum(found) / len(found) if found else None

    @property
    def slower(self) -> bool:
        """Whether a change is named and the last node is slower than the first."""
        return bool(self.culprits) and (self.size(len(self.nodes) - 1) or 0.0) > 0


@dataclass(frozen=True)
class SearchLimits:
    """When a search ends undecided: after `seconds` (None: never), or `most` measurements."""

    seconds: float | None = None
    most: int = 120


Measure = Callable[[int], tuple[Logs, Logs]]  # of a node: log medians of node 0's processes and of the node


def bisected(
    case: str, nodes: Sequence[HistoryNode], measure: Measure, limits: SearchLimits, *,
    state: Path | None = None, report: Callable[[Bisection], object] = lambda _: None,
) -> Bisection:  # fmt: skip
    """Measure nodes until the culprits are known, nothing changed, or a limit is met.

    `state` is read where it exists and written after every measurement. `report` gets the search after every one.
    A single node is an answer without measuring. Raise a UsageError where the state is of another history, a
    ResultsError where it is damaged.
    """
    known = _resumed(state, case, nodes)
    end = None if limits.seconds is None else time.monotonic() + limits.seconds
    found = _search(case, nodes, known.measured)
    while True:
        if found.ended == "decided" or len(nodes) < 2:
            return found
        if len(known.measured) >= limits.most or (end is not None and time.monotonic() >= end):
            ended = "most measurements" if len(known.measured) >= limits.most else "time limit"
            return Bisection(case, tuple(nodes), known.measured, found.posterior, ended)
        node = next_node(found.posterior, observations(known.measured))
        first, logs = measure(node)
        known = BisectionState(case, known.codes, (*known.measured, MeasuredNode(node, first, logs)))
        if state:
            SCHEMA.write(state, asdict(known))
        found = _search(case, nodes, known.measured)
        report(found)


def _search(case: str, nodes: Sequence[HistoryNode], measured: tuple[MeasuredNode, ...]) -> Bisection:
    found = posterior(len(nodes), observations(measured))
    return Bisection(case, tuple(nodes), measured, found, "decided" if measured and found.decided else "")


def observations(measured: Sequence[MeasuredNode]) -> list[Observation]:
    """Return the measurements with their variances: that of a process, pooled over all of them, over their number.

    A usual spread counts as a few degrees of freedom, so that two processes that agree by luck are not believed.
    """
    groups = [group for one in measured for group in (one.first, one.logs)]
    squares = fsum((log - _mean(group)) ** 2 for group in groups for log in group)
    freedom = sum(len(group) - 1 for group in groups)
    variance = (USUAL_FREEDOM * USUAL**2 + squares) / (USUAL_FREEDOM + freedom)
    return [
        Observation(one.node, _mean(one.logs) - _mean(one.first), variance * (1 / len(one.first) + 1 / len(one.logs)))
        for one in measured
    ]


def _ratios(one: MeasuredNode) -> list[float]:
    return [mine - _mean(one.first) for mine in one.logs]


def _mean(logs: Logs) -> float:
    return fsum(logs) / len(logs)


def _resumed(path: Path | None, case: str, nodes: Sequence[HistoryNode]) -> BisectionState:
    codes = tuple(node.code.identity for node in nodes)
    plain = SCHEMA.read(path) if path else None
    if path is None or plain is None:
        return BisectionState(case, codes)
    kept = SCHEMA.kind_of({key: value for key, value in plain.items() if key != "schema"}, BisectionState, path)
    if (kept.case, kept.codes) != (case, codes):
        raise UsageError(f"{path} is of another case or history: name another file, or remove it")
    return kept

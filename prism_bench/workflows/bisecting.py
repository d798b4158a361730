"""Bisection of a history: commits folded by machine code, measured until the commit that changed a case is known."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from math import fsum
from pathlib import Path

from prism_bench.analysis.bisection import Observation, Posterior, next_node, posterior
from prism_bench.analysis.compare.estimate import OUTGROWN, Spread, medians
from prism_bench.analysis.peers import clock_of
from prism_bench.catalogue import Catalogue, discover
from prism_bench.compilation.listing import CodeDifference, code_differences
from prism_bench.errors import PrismBenchError, ResultsError, UsageError
from prism_bench.io.documents import Schema
from prism_bench.io.workers import usable_cores
from prism_bench.measure.plausibility import valid
from prism_bench.record.run_record import RunRecord
from prism_bench.spec.case import Case
from prism_bench.units import count_text
from prism_bench.workflows.case_code import CaseCode, CodeJob, CodeReader, Outcome, compiled_jobs, machine_code

# Nodes of a history.


@dataclass(frozen=True)
class HistoryNode:
    """Neighbouring commits with the same code, the oldest first; those before `measured` do not build."""

    commits: tuple[str, ...]
    measured: str
    code: CaseCode


def folded(commits: Sequence[str], code_of: Callable[[str], CaseCode | None]) -> list[HistoryNode]:
    """Return the nodes of `commits`, the oldest first; a commit without code belongs to the node after it.

    Raise UsageError if the first or the last commit has no code: these two have to be measured.
    """
    nodes: list[HistoryNode] = []
    broken: tuple[str, ...] = ()
    for commit in commits:
        code = code_of(commit)
        if code is None:
            broken = (*broken, commit)
        elif nodes and nodes[-1].code == code:
            nodes[-1] = replace(nodes[-1], commits=(*nodes[-1].commits, *broken, commit))
            broken = ()
        else:
            nodes.append(HistoryNode((*broken, commit), commit, code))
            broken = ()
    if broken or (nodes and nodes[0].measured != commits[0]):
        failing = broken[-1] if broken else commits[0]
        raise UsageError(f"{failing[:12]} does not build the case: begin and end with commits that do")
    return nodes


def difference_at(nodes: Sequence[HistoryNode], node: HistoryNode) -> CodeDifference | None:
    """Return the difference in machine code between a node and its predecessor; None unless both were compiled."""
    before, after = nodes[nodes.index(node) - 1].code.entries, node.code.entries
    return code_differences(before, after) if before and after else None


def logs_of(record: RunRecord, name: str) -> tuple[float, ...]:
    """Return the log medians of the processes of the case's main time; ResultsError if the case has no valid time."""
    case = record.case(name)
    measurement = valid(case, clock_of(case)) if case else None
    if measurement is None or not measurement.processes:
        reason = (case.reason if case else None) or "no valid time was measured"
        raise ResultsError(f"{name} at {record.commit or 'this commit'}: {reason}")
    return medians(measurement.processes).logs


# The search: nodes are measured against the first one until the change is located.

# The state is written after every measurement, so that an interrupted search continues where it ended.
_SCHEMA = Schema("the state of a bisection", 1, "prism-bench bisect --state FILE")
_USUAL, _USUAL_FREEDOM = 0.01, 4  # prior spread between processes, and the degrees of freedom that it counts for
Logs = tuple[float, ...]  # log medians of processes, in log seconds


@dataclass(frozen=True)
class MeasuredNode:
    """Log medians of the processes of node 0 (`first`) and of `node`, measured in turn."""

    node: int
    first: Logs
    logs: Logs

    @property
    def ratios(self) -> list[float]:
        """Log ratios of the node's processes over the mean of node 0."""
        return [log - _mean(self.first) for log in self.logs]


@dataclass(frozen=True)
class FailedNode:
    """A `node` between the ends that builds but cannot be measured, and the `reason`, such as a wrong output."""

    node: int
    reason: str


@dataclass(frozen=True)
class _BisectionState:
    """State that a search resumes from: the case, the codes of the nodes in order, measured and failed nodes."""

    case: str
    codes: tuple[str, ...]
    measured: tuple[MeasuredNode, ...] = ()
    failed: tuple[FailedNode, ...] = ()

    @property
    def skip(self) -> frozenset[int]:
        """The nodes that cannot be measured."""
        return frozenset(failure.node for failure in self.failed)


@dataclass(frozen=True)
class Bisection:
    """A history with its measurements. `ended` is why the search ended, empty while it goes on."""

    case: str
    nodes: tuple[HistoryNode, ...]
    measured: tuple[MeasuredNode, ...]
    posterior: Posterior
    ended: str
    failed: tuple[FailedNode, ...] = ()

    @property
    def measurable(self) -> tuple[HistoryNode, ...]:
        """The nodes that can be measured."""
        failed = {failure.node for failure in self.failed}
        return tuple(node for number, node in enumerate(self.nodes) if number not in failed)

    def problem(self, node: int) -> str | None:
        """Return why the node cannot be measured; None if it can be."""
        return next((failure.reason for failure in self.failed if failure.node == node), None)

    def suspects_before(self, node: HistoryNode) -> tuple[str, ...]:
        """Return the commits before a node that cannot be measured: one of them may have changed its time, too."""
        number = end = self.nodes.index(node)
        while self.problem(number - 1):
            number -= 1
        return tuple(commit for neighbour in self.nodes[number:end] for commit in neighbour.commits)

    @property
    def culprits(self) -> tuple[HistoryNode, ...]:
        """The most likely nodes whose commits changed the time; empty if no change is named."""
        return tuple(self.nodes[node] for node in self.posterior.culprits)

    def size(self, node: int) -> float | None:
        """Return the mean log ratio of the node's time over that of node 0; None if it was not measured."""
        logs = [log for pair in self.measured if pair.node == node for log in pair.ratios]
        return fsum(logs) / len(logs) if logs else None

    @property
    def slower(self) -> bool:
        """Whether a change is named and the last node is slower than the first."""
        return bool(self.culprits) and (self.size(len(self.nodes) - 1) or 0.0) > 0


@dataclass(frozen=True)
class SearchLimits:
    """Limits after which a search ends undecided: `seconds` (None: no limit), or `most` measurements."""

    seconds: float | None = None
    most: int = 120


Measure = Callable[[int], tuple[Logs, Logs]]  # of a node: log medians of node 0's processes and of the node


def bisected(
    case: str,
    nodes: Sequence[HistoryNode],
    measure: Measure,
    limits: SearchLimits,
    *,
    state: Path | None = None,
    report: Callable[[Bisection], object] = lambda _: None,
    floor: Spread | None = None,
) -> Bisection:
    """Measure nodes until the culprits are known, nothing changed, or a limit is met.

    `state` is read if it exists and written after every measurement. `report` gets the search after each measurement.
    `floor` is the spread of a process in the machine's noise floor. A node between the ends for which `measure` raises
    a ResultsError is not measured again. A single node needs no measurement. Raise UsageError if the state is of
    another history, ResultsError if it is damaged or the last node cannot be measured.
    """

    def searched(known: _BisectionState) -> Bisection:
        estimate = posterior(len(nodes), observations(known.measured, floor), known.skip)
        ended = "decided" if known.measured and estimate.decided else ""
        return Bisection(case, tuple(nodes), known.measured, estimate, ended, known.failed)

    known = _resumed(state, case, nodes)
    end = None if limits.seconds is None else time.monotonic() + limits.seconds
    search = searched(known)
    while True:
        if search.ended == "decided" or len(nodes) < 2:
            return search
        if len(known.measured) + len(known.failed) >= limits.most:
            return replace(search, ended="most measurements")
        if end is not None and time.monotonic() >= end:
            return replace(search, ended="time limit")
        node = next_node(search.posterior, observations(known.measured, floor), known.skip)
        try:
            first, logs = measure(node)
            known = replace(known, measured=(*known.measured, MeasuredNode(node, first, logs)))
        except ResultsError as error:
            if node == len(nodes) - 1:  # the last node has to be measured
                raise
            known = replace(known, failed=(*known.failed, FailedNode(node, str(error))))
        if state:
            _SCHEMA.write(state, asdict(known))
        search = searched(known)
        report(search)


def observations(measured: Sequence[MeasuredNode], floor: Spread | None = None) -> list[Observation]:
    """Return the measurements with their variances: the pooled variance of a process over the number of processes."""
    variance = _variance(measured, floor)
    return [
        Observation(
            pair.node, _mean(pair.logs) - _mean(pair.first), variance * (1 / len(pair.first) + 1 / len(pair.logs))
        )
        for pair in measured
    ]


def _variance(measured: Sequence[MeasuredNode], floor: Spread | None) -> float:
    """Return the variance of a process's log median, pooled over all measurements and the noise floor.

    A usual spread counts as a few degrees of freedom, so that two processes that agree by luck are not believed. As in
    `estimate`, processes that agree better than the noise floor do not lower it; if they differ by much more, the
    machine is noisier now and the stored spread does not count.
    """
    groups = [group for pair in measured for group in (pair.first, pair.logs)]
    squares = fsum((log - _mean(group)) ** 2 for group in groups for log in group)
    freedom = sum(len(group) - 1 for group in groups)
    usual = _USUAL_FREEDOM * _USUAL**2
    if floor is None or not floor.freedom or squares > OUTGROWN * floor.variance * freedom:
        return (usual + squares) / (_USUAL_FREEDOM + freedom)
    known = usual + floor.freedom * floor.variance
    return max(floor.variance, (known + squares) / (_USUAL_FREEDOM + floor.freedom + freedom))


def _mean(logs: Logs) -> float:
    return fsum(logs) / len(logs)


def _resumed(path: Path | None, case: str, nodes: Sequence[HistoryNode]) -> _BisectionState:
    codes = tuple(node.code.identity for node in nodes)
    plain = _SCHEMA.read(path) if path else None
    if path is None or plain is None:
        return _BisectionState(case, codes)
    kept = _SCHEMA.kind_of({key: value for key, value in plain.items() if key != "schema"}, _BisectionState, path)
    if (kept.case, kept.codes) != (case, codes):
        raise UsageError(f"{path} is of another case or history: name another file, or remove it")
    return kept


# Code of a case at every commit of a history.

# Checkouts kept at once and compiled together on all cores: fewer do not pay for the processes, more fill the disk.
_FEWEST, _MOST = 8, 32


@dataclass(frozen=True)
class _ReadCode:
    """Code of a case as read from a commit's files without a compiler, and the `job` that gives its machine code."""

    code: CaseCode
    job: CodeJob | None


class HistoryCode:
    """Reader of the case `name` at commits: `opened` yields a commit's catalogue, `reader` makes its code reader."""

    def __init__(
        self, name: str, opened: Callable[[str], AbstractContextManager[Path]], reader: Callable[[], CodeReader]
    ) -> None:
        self._name, self._opened, self._reader = name, opened, reader
        self._read: dict[str, _ReadCode | None] = {}
        self._compiled: dict[CodeJob, Outcome] = {}
        self._hashes: dict[CodeJob, str] = {}

    def at(self, commits: Sequence[str], end: float | None = None) -> dict[str, CaseCode | None]:
        """Return the code at each commit; None if the case does not exist or does not build there.

        Raise UsageError if time.monotonic() reaches `end` before all are compiled.
        """
        left = iter(commits)
        while len(self._read) < len(commits):
            self._read_some(left, end, len(commits))
        return {commit: self._code(self._read[commit]) for commit in commits}

    def _read_some(self, left: Iterator[str], end: float | None, whole: int) -> None:
        """Read commits until enough of them have another source, and compile those."""
        new: list[CodeJob] = []
        with ExitStack() as kept:
            for commit in left:
                if end is not None and time.monotonic() >= end:
                    raise UsageError(
                        f"the time limit ended after {len(self._read)} of {count_text(whole, 'commit')} were read and "
                        "compiled: begin again with a longer one; what is compiled is not compiled again"
                    )
                with ExitStack() as tree:
                    read = self._read[commit] = self._read_at(tree.enter_context(self._opened(commit)))
                    if read and read.job and read.job not in self._compiled and read.job not in new:
                        new.append(read.job)
                        kept.enter_context(tree.pop_all())
                if len(new) >= min(max(usable_cores(), _FEWEST), _MOST):
                    break
            self._compiled |= compiled_jobs(new)

    def _read_at(self, catalogue: Path) -> _ReadCode | None:
        reader = self._reader()
        try:
            case = self._case_in(discover(catalogue))
        except PrismBenchError:
            return None
        code = reader.code(case) if case else None
        if case is None or code is None or code.problem:
            return None
        try:
            return _ReadCode(code, reader.job(case) if reader.is_compiled(case) else None)
        except Exception:  # a spec may raise anything
            return None

    def _case_in(self, catalogue: Catalogue) -> Case | None:
        kernel = self._name.partition("[")[0]
        if kernel.partition(":")[0] not in {*catalogue.kernels, *catalogue.aliases}:
            return None
        return next((case for case in catalogue.cases([kernel]) if case.name == self._name), None)

    def _code(self, read: _ReadCode | None) -> CaseCode | None:
        built = self._compiled[read.job] if read and read.job else None
        if read is None or isinstance(built, str):
            return None
        if read.job is None or built is None:
            return read.code
        if read.job not in self._hashes:
            self._hashes[read.job] = machine_code(built)
        return replace(read.code, code=self._hashes[read.job], compiled=built)

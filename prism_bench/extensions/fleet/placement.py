"""Placement of kernels on boards: where they were measured last time, else where least is to be done."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from prism_bench.record.run_record import RunRecord
from prism_bench.run.case_costs import CaseCosts
from prism_bench.spec.case import Case


@dataclass(frozen=True)
class CaseGroup:
    """Cases that one board measures: a kernel with its variants, peers and the forms that it replaces.

    `seconds` is what a run of them is expected to take, `tasks` are the tasks of the cases. Groups
    that are `early` are measured before all others.
    """

    kernels: tuple[str, ...]
    tasks: tuple[str, ...]
    seconds: float
    early: bool = False

    @property
    def order(self) -> tuple[object, ...]:
        """The sort key: the longest first, so that short ones are left to make boards end together."""
        return not self.early, -self.seconds, self.kernels


def grouped(cases: Sequence[Case], seconds: Mapping[str, float]) -> list[CaseGroup]:
    """Return the groups of the cases in the order of their first case; `seconds` are those of each case by name."""
    home = {case.spec.name: case.spec.name for case in cases}
    for case in cases:
        later = (case.spec.before or "").partition(":")[0]
        if later in home:
            _join(home, case.spec.name, later)
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(_root(home, case.spec.name), []).append(case)
    return [
        CaseGroup(
            tuple(dict.fromkeys(case.spec.name for case in group)),
            tuple(case.task for case in group),
            sum(seconds.get(case.name, 0.0) for case in group),
        )
        for group in found.values()
    ]


def ceiling_groups(ceilings: Sequence[Case], seconds: Mapping[str, float]) -> list[CaseGroup]:
    """Return the ceiling benchmarks as one group, which one board measures before all else; none without any.

    Times of one board decide which of them is the quickest.
    """
    if not ceilings:
        return []
    kernels, tasks = dict.fromkeys(case.spec.name for case in ceilings), tuple(case.task for case in ceilings)
    return [CaseGroup(tuple(kernels), tasks, sum(seconds.get(case.name, 0.0) for case in ceilings), early=True)]


def _root(home: Mapping[str, str], kernel: str) -> str:
    while home[kernel] != kernel:
        kernel = home[kernel]
    return kernel


def _join(home: dict[str, str], one: str, other: str) -> None:
    home[_root(home, one)] = _root(home, other)


def last_boards(records: Iterable[RunRecord], kernels: Collection[str]) -> dict[str, str]:
    """Return by kernel the UUID of the board that measured it last; `records` are the newest first.

    Records after those in which all `kernels` were found are not read: each takes a second, and all boards wait.
    """
    found: dict[str, str] = {}
    left = set(kernels)
    for record in records:
        whole = {"uuid": record.machine.get("uuid"), "kernels": [case.kernel for case in record.cases]}
        for part in record.parts or (whole,):
            for kernel in part["kernels"] if part["uuid"] else ():
                found.setdefault(kernel, part["uuid"])
        left -= found.keys()
        if not left:
            break
    return found


LEAST_SECONDS = 20.0  # of free groups in a job: shorter ones would mostly start processes
# What each job takes anew of compilation and verification, whose processes start and end: four jobs of two H200s took
# 29 s more for both than one job of one did (2026-11-27, commit 618862b2). With peers, whose library every process
# imports while others compile, twelve jobs of H200s took 662 s to verify what takes 318 s in eight processes that run
# already (commit c4471d02).
JOB_SECONDS, PEER_SECONDS = 9.0, 20.0


@dataclass(frozen=True)
class JobOverhead:
    """Seconds next to the groups: `start` of each job, `anchors` of a board's first one without the ceilings' group."""

    start: float = 0.0
    anchors: float = 0.0


def job_seconds(peers: bool) -> float:
    """Return what each job takes anew before anything is timed, with or without peers."""
    return JOB_SECONDS + (PEER_SECONDS if peers else 0.0)


def job_overhead(costs: CaseCosts, anchors: Sequence[Case], processes: int, *, peers: bool = False) -> JobOverhead:
    """Return the overhead of jobs by costs without peers: boards measure neither edges nor peers of the anchors.

    `peers` is whether jobs measure those of the other cases.
    """
    seconds = replace(costs, edges={}).by_case(anchors, processes)
    return JobOverhead(job_seconds(peers) + processes * costs.start, sum(seconds.values()))


def costed_groups(
    cases: Sequence[Case], ceilings: Sequence[Case], costs: CaseCosts, processes: int, *, peers: bool = False
) -> list[CaseGroup]:
    """Return the groups of the cases and that of the ceilings, each with what it takes by the costs.

    A case takes its share of what was compiled and verified, less what every job took anew, with its `peers` or not.
    """
    costs = _without_starts(costs, job_seconds(peers))
    seconds = costs.by_case([*cases, *ceilings], processes)
    compiling = costs.compiling / max(1, len(costs.timed))
    total = {name: one + compiling for name, one in seconds.items()}
    return [*ceiling_groups(ceilings, total), *grouped(cases, total)]


def _without_starts(costs: CaseCosts, seconds: float) -> CaseCosts:
    """Return the costs without the seconds that each job took anew of verification and compilation."""
    verifying = costs.shared * (sum(costs.untimed.values()) + sum(costs.edges.values()))
    whole = verifying + costs.compiling
    left = max(0.0, 1.0 - costs.jobs * seconds / whole) if whole else 0.0
    return replace(costs, compiling=left * costs.compiling, shared=left * costs.shared)


class Schedule:
    """What is still to be measured: groups that belong to a board, and groups that any board may take.

    A board takes its own groups first, the longest first, then its part of the free ones. `expected` are the seconds of
    the job that each board took last, its `overhead` included.
    """

    def __init__(
        self, groups: Iterable[CaseGroup], boards: Sequence[str], last: Mapping[str, str],
        overhead: JobOverhead = JobOverhead(),
    ) -> None:  # fmt: skip
        """Place the groups whose kernels `last` places on one of these boards there; the others are free."""
        self._own: dict[str, list[CaseGroup]] = {board: [] for board in boards}
        self._free: list[CaseGroup] = []
        self.overhead, self.expected = overhead, dict[str, float]()
        for group in sorted(groups, key=lambda one: one.order):
            known = [last[kernel] for kernel in group.kernels if last.get(kernel) in self._own]
            (self._own[known[0]] if known else self._free).append(group)

    @property
    def left(self) -> float:
        """The seconds of everything that no board has taken yet, on one board."""
        return _seconds([*self._free, *(one for own in self._own.values() for one in own)])

    def __bool__(self) -> bool:
        return bool(self._free or any(self._own.values()))

    def add(self, groups: Iterable[CaseGroup]) -> None:
        """Let any board take these groups: the board that had them was lost."""
        self._free = sorted([*self._free, *groups], key=lambda one: one.order)

    def drop(self, board: str) -> None:
        """Let any board take the groups of a board that measures no more."""
        self.add(self._own.pop(board, []))

    def take(self, board: str, seconds: float, others: Mapping[str, float]) -> list[CaseGroup]:
        """Return the board's next groups, of about so many seconds; none where nothing is left for it.

        `others` are the other boards, and the seconds until each of them is free. What is left is divided among all, so
        that they end at about the same time; the board's part of it is divided into equal jobs.
        """
        own, early = self._own.get(board, []), [group for group in self._free[:1] if group.early]
        loads = [left + self._load(other) for other, left in others.items()]
        anchors = 0.0 if any(group.early for group in early + own[:1]) else self._anchors(board)
        part = max(_seconds(own), level(_seconds(self._free), [_seconds(own) + anchors, *loads]) - anchors)
        goal = part / max(1, round(part / seconds)) if seconds else 0.0
        goal = max(goal, min(seconds, LEAST_SECONDS))
        taken = early
        del self._free[: len(early)]
        for groups in (own, self._free):
            taken += _first(groups, goal - _seconds(taken), needed=not taken)
        if taken:
            self.expected[board] = self.overhead.start + anchors + _seconds(taken)
        return taken

    def _anchors(self, board: str) -> float:
        return 0.0 if board in self.expected else self.overhead.anchors

    def _load(self, board: str) -> float:
        return _seconds(self._own.get(board, [])) + self._anchors(board)


def level(seconds: float, loads: Iterable[float]) -> float:
    """Return when all boards are done that share so many seconds, where each has a load already."""
    found, total = 0.0, seconds
    for count, load in enumerate(sorted(loads), 1):
        if count > 1 and load >= found:
            break
        total += load
        found = total / count
    return found


def _seconds(groups: Iterable[CaseGroup]) -> float:
    return sum(group.seconds for group in groups)


def _first(groups: list[CaseGroup], seconds: float, needed: bool) -> list[CaseGroup]:
    """Remove and return the first groups of a list that fit in the seconds; where one is `needed`, the first anyway.

    One more is taken where that ends nearer to the seconds, so that no job is left for a short one alone.
    """
    taken: list[CaseGroup] = []
    left = seconds
    for group in list(groups):
        if group.seconds <= left or (needed and not taken):
            groups.remove(group)
            taken.append(group)
            left -= group.seconds
    if groups and groups[-1].seconds < 2 * left:
        taken.append(groups.pop())
    return taken

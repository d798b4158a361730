"""Dispatch of a fleet's work: placement of kernels, the dispatcher, and the description of boards."""

import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from prism_bench import __version__
from prism_bench.errors import BackendUnavailable, CacheUnavailable, UsageError
from prism_bench.extensions.fleet.fleet import (
    LOOK_SECONDS,
    BoardClaim,
    Fleet,
    FleetBoard,
    JobChannel,
    JobMessage,
    claims,
    differing,
    failure,
    is_loss,
    of_one_kind,
    require_equal,
    set_alike,
)
from prism_bench.io import files
from prism_bench.io.files import default_folder, warn
from prism_bench.io.workers import START_SECONDS, WorkerDied, died_at_start, work
from prism_bench.record import identity
from prism_bench.record.run_record import RunRecord
from prism_bench.run.forecast import CaseCosts
from prism_bench.run.pool import HERE, MeasuringOrder
from prism_bench.run.settings import Settings, to_plain
from prism_bench.spec.case import Case, Device

# Placement of kernels: on the board that measured them last, else on the board with the least work


@dataclass(frozen=True)
class CaseGroup:
    """Cases that one board measures: a kernel with its variants, peers and the forms that it replaces.

    `seconds` is the expected time of a run, `tasks` are the tasks of the cases. `early` groups are measured before all
    others.
    """

    kernels: tuple[str, ...]
    tasks: tuple[str, ...]
    seconds: float
    early: bool = False

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key: the longest group first, so that short groups at the end let the boards end together."""
        return not self.early, -self.seconds, self.kernels


def grouped(cases: Sequence[Case], seconds: Mapping[str, float]) -> list[CaseGroup]:
    """Return the groups of the cases in the order of their first case; `seconds` are by name of the case."""
    parents = {case.spec.name: case.spec.name for case in cases}
    for case in cases:
        later = (case.spec.before or "").partition(":")[0]
        if later in parents:
            parents[_root(parents, case.spec.name)] = _root(parents, later)
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(_root(parents, case.spec.name), []).append(case)
    return [
        CaseGroup(
            tuple(dict.fromkeys(case.spec.name for case in group)),
            tuple(case.task for case in group),
            sum(seconds.get(case.name, 0.0) for case in group),
        )
        for group in groups.values()
    ]


def _root(parents: Mapping[str, str], kernel: str) -> str:
    while parents[kernel] != kernel:
        kernel = parents[kernel]
    return kernel


def ceiling_groups(ceilings: Sequence[Case], seconds: Mapping[str, float]) -> list[CaseGroup]:
    """Return the ceiling benchmarks as one group, which one board measures before all others.

    Times of the same board decide which of them is the quickest.
    """
    if not ceilings:
        return []
    kernels, tasks = dict.fromkeys(case.spec.name for case in ceilings), tuple(case.task for case in ceilings)
    return [CaseGroup(tuple(kernels), tasks, sum(seconds.get(case.name, 0.0) for case in ceilings), early=True)]


def last_boards(records: Iterable[RunRecord], kernels: Collection[str]) -> dict[str, str]:
    """Return by kernel the UUID of the board that measured it last; `records` are the newest first.

    Reading stops when all `kernels` are known: each record takes a second, and all boards wait.
    """
    boards: dict[str, str] = {}
    left = set(kernels)
    for record in records:
        whole = {"uuid": record.machine.get("uuid"), "kernels": [case.kernel for case in record.cases]}
        for part in record.parts or (whole,):
            for kernel in part["kernels"] if part["uuid"] else ():
                boards.setdefault(kernel, part["uuid"])
        left -= boards.keys()
        if not left:
            break
    return boards


_LEAST_SECONDS = 20.0  # of free groups in a job: shorter jobs would mostly start processes
# Overhead of each job for compilation and verification, whose processes start and end: four jobs of two H200s took 29 s
# more for both than one job of one H200 (2026-11-27, commit 618862b2). With peers, whose library every process imports
# while others compile, twelve jobs of H200s took 662 s for a verification that takes 318 s in eight running processes
# (commit c4471d02).
JOB_SECONDS, PEER_SECONDS = 9.0, 20.0


@dataclass(frozen=True)
class JobOverhead:
    """Seconds next to the groups: `start` of each job; `anchors` of a board's first job without the ceilings' group."""

    start: float = 0.0
    anchors: float = 0.0


def job_seconds(peers: bool) -> float:
    """Return the seconds of each job before its first timing, with or without peers."""
    return JOB_SECONDS + (PEER_SECONDS if peers else 0.0)


def job_overhead(costs: CaseCosts, anchors: Sequence[Case], processes: int, *, peers: bool = False) -> JobOverhead:
    """Return the overhead of jobs from costs without peers: boards measure neither edges nor peers of the anchors.

    With `peers` jobs also measure the peers of the other cases.
    """
    seconds = replace(costs, edges={}).by_case(anchors, processes)
    return JobOverhead(job_seconds(peers) + processes * costs.start, sum(seconds.values()))


def costed_groups(
    cases: Sequence[Case], ceilings: Sequence[Case], costs: CaseCosts, processes: int, *, peers: bool = False
) -> list[CaseGroup]:
    """Return the groups of the cases and of the ceilings, each with its seconds from the costs.

    A case gets its share of compilation and verification, without the overhead of each job, with or without `peers`.
    """
    costs = _without_starts(costs, job_seconds(peers))
    seconds = costs.by_case([*cases, *ceilings], processes)
    compiling = costs.compiling / max(1, len(costs.timed))
    total = {name: timing + compiling for name, timing in seconds.items()}
    return [*ceiling_groups(ceilings, total), *grouped(cases, total)]


def _without_starts(costs: CaseCosts, seconds: float) -> CaseCosts:
    """Return the costs without the `seconds` of overhead that each job had for verification and compilation."""
    verifying = costs.shared * (sum(costs.untimed.values()) + sum(costs.edges.values()))
    whole = verifying + costs.compiling
    left = max(0.0, 1.0 - costs.jobs * seconds / whole) if whole else 0.0
    return replace(costs, compiling=left * costs.compiling, shared=left * costs.shared)


class Schedule:
    """Groups still to be measured: those that belong to a board, and those that any board may take.

    A board takes its own groups first, the longest first, then its part of the free groups. `expected` are the seconds
    of the last job of each board, including its `overhead`.
    """

    def __init__(
        self,
        groups: Iterable[CaseGroup],
        boards: Sequence[str],
        last: Mapping[str, str],
        overhead: JobOverhead = JobOverhead(),
    ) -> None:
        """Place groups on the boards that measured their kernels `last`; all other groups are free."""
        self._placed: dict[str, list[CaseGroup]] = {board: [] for board in boards}
        self._free: list[CaseGroup] = []
        self.overhead, self.expected = overhead, dict[str, float]()
        for group in sorted(groups, key=lambda group: group.order):
            known = [last[kernel] for kernel in group.kernels if last.get(kernel) in self._placed]
            (self._placed[known[0]] if known else self._free).append(group)

    @property
    def left(self) -> float:
        """Seconds of all groups that no board has taken yet, on one board."""
        return _seconds([*self._free, *(group for groups in self._placed.values() for group in groups)])

    def __bool__(self) -> bool:
        return bool(self._free or any(self._placed.values()))

    def add(self, groups: Iterable[CaseGroup]) -> None:
        """Let any board take these groups, after the loss of their board."""
        self._free = sorted([*self._free, *groups], key=lambda group: group.order)

    def drop(self, board: str) -> None:
        """Let any board take the groups of a board that no longer measures."""
        self.add(self._placed.pop(board, []))

    def take(self, board: str, seconds: float, others: Mapping[str, float]) -> list[CaseGroup]:
        """Return the board's next groups, of about `seconds`; empty if nothing is left for it.

        `others` are the other boards, with the seconds until each of them is free. The rest is divided among all, so
        that they end at about the same time; the board's part of it is divided into equal jobs.
        """
        placed, early = self._placed.get(board, []), [group for group in self._free[:1] if group.early]
        loads = [left + _seconds(self._placed.get(other, [])) + self._anchors(other) for other, left in others.items()]
        anchors = 0.0 if any(group.early for group in early + placed[:1]) else self._anchors(board)
        part = max(_seconds(placed), level(_seconds(self._free), [_seconds(placed) + anchors, *loads]) - anchors)
        goal = part / max(1, round(part / seconds)) if seconds else 0.0
        goal = max(goal, min(seconds, _LEAST_SECONDS))
        taken = early
        del self._free[: len(early)]
        for groups in (placed, self._free):
            taken += _first(groups, goal - _seconds(taken), needed=not taken)
        if taken:
            self.expected[board] = self.overhead.start + anchors + _seconds(taken)
        return taken

    def _anchors(self, board: str) -> float:
        return 0.0 if board in self.expected else self.overhead.anchors


def level(seconds: float, loads: Iterable[float]) -> float:
    """Return the time at which boards with these loads are done if they share `seconds` of work."""
    end, total = 0.0, seconds
    for count, load in enumerate(sorted(loads), 1):
        if count > 1 and load >= end:
            break
        total += load
        end = total / count
    return end


def _seconds(groups: Iterable[CaseGroup]) -> float:
    return sum(group.seconds for group in groups)


def _first(groups: list[CaseGroup], seconds: float, needed: bool) -> list[CaseGroup]:
    """Remove and return the first groups of a list that fit in the seconds; at least one group if one is `needed`.

    Another group is taken if the job then ends nearer to the seconds, so that no job has only a short group.
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


# The dispatcher: gives each free board its next groups, and the groups of a lost worker to another board

_RESULT_SECONDS = 60.0  # for the result of a job that has ended
MOST_LOSSES = 3  # of workers that measured the same group, which is then to blame
REJOIN_SECONDS = 60.0  # of waiting for a worker if none is left


@dataclass
class BoardState:
    """Displayed state of a board: its title, its activity, its clock in hertz, and the finished tasks of its job.

    A task is one step of one process, so that a job that measures every case three times shows progress from the start.
    """

    title: str
    line: str = "waits"
    clock: float | None = None
    done: int = 0
    total: int = 0
    lost: bool = False

    def follow(self, event: Mapping[str, Any]) -> None:
        """Update activity and progress from an event of the job."""
        self.line = event.get("task", self.line)
        self.done, self.total = event.get("done", self.done), event.get("total", self.total)

    def change(self, line: str) -> None:
        """Set the activity of a board between jobs."""
        self.line, self.done, self.total = line, 0, 0


class BoardRefused(Exception):
    """Refusal of a board that cannot be used any more, for a reason other than the cases."""


class FleetWork(Protocol):
    """Work of a fleet, group by group: a run, a comparison, a tuning session."""

    call: str  # `module:function` of its jobs

    def order(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> dict[str, Any]:
        """Return the work of a job that measures the groups on the board."""
        ...

    def event(self, board: FleetBoard, groups: Sequence[CaseGroup], event: dict[str, Any], state: BoardState) -> None:
        """Handle an event of the job."""
        ...

    def done(self, board: FleetBoard, groups: Sequence[CaseGroup], result: Any) -> None:
        """Keep the result of the job; raise BoardRefused if the board must not be used any more."""
        ...

    def lost(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> list[CaseGroup]:
        """Return the groups of a lost job that are not completely measured; nothing of them is kept."""
        ...

    def give_up(self, board: FleetBoard, group: CaseGroup, reason: str) -> None:
        """Keep the reason of a group without results."""
        ...


@dataclass
class _RunningJob:
    board: FleetBoard
    groups: list[CaseGroup]
    future: Any
    expected: float
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None

    def left(self) -> float:
        """Return the expected seconds until the end of the job."""
        return max(0.0, self.expected - (time.monotonic() - self.began))


@dataclass
class Dispatcher:
    """Dispatcher that gives work to the boards of a fleet until nothing is left, and replaces lost workers.

    `rejoined` returns the boards of new workers that replace lost boards. A job takes about `seconds`. `report` gets
    the states of all boards, several times a second.
    """

    fleet: Fleet
    boards: list[FleetBoard]
    schedule: Schedule
    work: FleetWork
    seconds: float
    rejoined: Callable[[set[str], Sequence[FleetBoard]], list[FleetBoard]]
    report: Callable[[Sequence[BoardState]], object] = lambda _: None
    states: dict[str, BoardState] = field(default_factory=dict[str, BoardState])
    _jobs: dict[int, _RunningJob] = field(default_factory=dict[int, _RunningJob])
    _gone: list[FleetBoard] = field(default_factory=list[FleetBoard])
    _refused: set[str] = field(default_factory=set[str])  # boards that must not be used again
    _losses: dict[CaseGroup, int] = field(default_factory=dict[CaseGroup, int])

    def run(self) -> None:
        """Work until nothing is left; raise BackendUnavailable if no board is left, or the scheduler is lost."""
        self.states |= {board.key: BoardState(board.title) for board in self.boards}
        looked, alone_since = time.monotonic(), None
        while self.schedule or self._jobs:
            self._fill()
            for message in self.fleet.messages(LOOK_SECONDS if self._jobs else 0.1):
                with files.held():
                    self._take(message)
            self.report(list(self.states.values()))
            if time.monotonic() - looked >= LOOK_SECONDS:
                self._look()
                looked = time.monotonic()
            alone_since = None if self.boards else alone_since or time.monotonic()
            only_refused = not self._gone and bool(self._refused)
            if alone_since and (only_refused or time.monotonic() - alone_since > REJOIN_SECONDS):
                raise BackendUnavailable("no worker of the fleet is left; what was measured until then is kept")

    def run_or_stop(self, has_results: Callable[[], bool]) -> bool:
        """Run, and return whether all work was done; an interrupt, or the loss of all workers, ends it early.

        BackendUnavailable if all workers are lost before the first result.
        """
        try:
            with files.allowed():
                self.run()
        except KeyboardInterrupt:
            for message in self.fleet.messages(0.0):  # events that have arrived already
                if message.future is None:
                    self._take(message)
            self.fleet.stop()
            return False
        except BackendUnavailable as error:
            if not has_results():
                raise
            warn(f"the run ends early, and its record has what was measured: {error}")
            return False
        return True

    def _fill(self) -> None:
        """Give each board without a job its next groups."""
        for board in self.boards:
            left = {job.board.key: job.left() for job in self._jobs.values()}
            others = {other.key: left.get(other.key, 0.0) for other in self.boards if other is not board}
            groups = [] if board.key in left else self.schedule.take(board.key, self.seconds, others)
            if groups:
                order = self.work.order(board, groups)
                number, future = self.fleet.submit(board.claim, self.work.call, order)
                self._jobs[number] = _RunningJob(board, groups, future, self.schedule.expected[board.key])
                self.states[board.key].change("starts")

    def _take(self, message: JobMessage) -> None:
        job = self._jobs.get(message.number)
        if job is None:  # its worker was lost
            return
        if "result" in message.event:
            self._finish(message.number, job, message.event["result"])
            return
        if message.future is None:
            self.work.event(job.board, job.groups, message.event, self.states[job.board.key])
            return
        if message.future.cancelled():
            return  # the next look finds the loss of its worker
        error = failure(message.future)
        if error is None:
            job.ended = time.monotonic()  # its result follows
        elif is_loss(error):  # first: Dask's CommClosedError is an OSError
            self._lose(message.number, job)
        elif isinstance(error, BackendUnavailable | CacheUnavailable | OSError):
            self._refuse(message.number, job, f"{type(error).__name__}: {error}")
        else:
            raise error

    def _finish(self, number: int, job: _RunningJob, result: Any) -> None:
        try:
            self.work.done(job.board, job.groups, result)
        except BoardRefused as refused:
            self._refuse(number, job, str(refused))
            return
        del self._jobs[number]
        self.states[job.board.key].change("waits")

    def _refuse(self, number: int, job: _RunningJob, reason: str) -> None:
        """Use the board no more; give its job's groups to others."""
        warn(f"{job.board.title} is no longer used: {reason}")
        self._refused.add(job.board.key)
        self._lose(number, job)
        self._gone = [board for board in self._gone if board.key not in self._refused]
        if not self.boards and not self._gone:
            raise BackendUnavailable(f"no board of the fleet is left; the last one: {reason}")

    def _lose(self, number: int, job: _RunningJob) -> None:
        """Plan the groups of a lost job anew, unless too many workers were lost while they measured them."""
        if self._jobs.pop(number, None) is None:
            return
        for group in self.work.lost(job.board, job.groups):
            self._losses[group] = self._losses.get(group, 0) + 1
            if self._losses[group] >= MOST_LOSSES:
                reason = f"{MOST_LOSSES} workers of the fleet were lost while they were at it"
                self.work.give_up(job.board, group, reason)
            else:
                self.schedule.add([group])
        self._leave(job.board)

    def _leave(self, board: FleetBoard) -> None:
        if board in self.boards:
            self.boards.remove(board)
            self._gone.append(board)
            self.schedule.drop(board.key)
        state, worker = self.states[board.key], board.claim.worker
        if board.key in self._refused:
            state.change("measures no more")
        elif not state.lost:
            name = worker.address if worker.name == worker.address else f"{worker.name} at {worker.address}"
            warn(f"{board.title} lost its worker {name}; its cases are planned anew")
            state.change(f"its worker {name} is lost")
        state.lost = True

    def _look(self) -> None:
        """Plan the groups of lost workers anew, and use workers that replace them."""
        live = self.fleet.addresses()
        for number, job in list(self._jobs.items()):
            late = job.ended is not None and time.monotonic() - job.ended > _RESULT_SECONDS
            if late or job.board.claim.worker.address not in live:
                self._lose(number, job)
                job.future.cancel()
        for board in [board for board in self.boards if board.claim.worker.address not in live]:
            self._leave(board)
        known = {board.claim.worker.address for board in [*self.boards, *self._gone]}
        new = live - known
        if new and self._gone:
            for board in self.rejoined(new, self._gone):
                self._gone = [gone for gone in self._gone if gone.key != board.key]
                self.boards.append(board)
                self.states[board.key] = BoardState(board.title)


# Description of boards: facts of the backend, and the versions that must be equal on all boards

_CALL = f"{__name__}:_described"
PACKAGE = Path(__file__).parents[2]
_NOT_COMPARED = ("uuid", "software", "board")  # facts that may differ between boards, or are compared separately


def place_of(catalogue: Path) -> str | None:
    """Return the path of the catalogue for workers; None for the package's own, whose path may differ on each host."""
    return None if catalogue.resolve() == default_folder().resolve() else str(catalogue.resolve())


def folder_of(place: str | None) -> Path:
    """Return the catalogue's folder on this worker; raise a UsageError if it does not exist."""
    folder = default_folder() if place is None else Path(place)
    if not folder.is_dir():
        raise UsageError(f"{folder}: this worker of the fleet has no such catalogue; give it a folder that all share")
    return folder


def digest(folder: Path) -> str:
    """Return a hash of every file of the catalogue or package, by path and content."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            whole.update(f"{path.relative_to(folder)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:12]


def _described(request: dict[str, Any], channel: JobChannel) -> dict[str, Any]:
    """Return the facts of the worker's board from a child process that opens the backend and measures nothing."""
    folder = folder_of(request["catalogue"])
    order: MeasuringOrder = {
        "backend": request["backend"],
        "catalogue": str(folder.resolve()),
        "settings": to_plain(Settings()),
        "process": 1,
        "timed": False,
        "tasks": [],
    }
    description: dict[str, Any] = {}
    try:
        for event in work(order, START_SECONDS, HERE):
            description |= event
    except WorkerDied as death:
        raise died_at_start(death, request["backend"]) from None
    facts = description["facts"]
    return {
        "facts": facts,
        "device": description["device"],
        "host": identity.machine(facts)["host"],
        "software": identity.software(facts.get("software", {})),
        "files": _own_files(folder),
    }


def _describe(fleet: Fleet, claims: Sequence[BoardClaim], backend: str, catalogue: Path) -> list[FleetBoard]:
    """Return the boards of the claims, described side by side; raise the error of the first that fails."""
    request = {"backend": backend, "catalogue": place_of(catalogue)}
    answers = fleet.answers(claims, _CALL, request)
    return [_board(claim, answer) for claim, answer in zip(claims, answers, strict=True)]


def _board(claim: BoardClaim, answer: Mapping[str, Any] | BaseException) -> FleetBoard:
    worker = f"worker {claim.worker.host} ({claim.worker.address})"
    if isinstance(answer, BackendUnavailable | UsageError):
        raise type(answer)(f"{worker}: {answer}")
    if is_loss(answer):
        raise BackendUnavailable(f"{worker} was lost while it opened its backend; start it again")
    if isinstance(answer, BaseException):  # it has another version of this package
        raise BackendUnavailable(f"{worker} does not describe itself: {type(answer).__name__}: {answer}")
    facts = answer["facts"]
    machine = {f"machine.{name}": str(value) for name, value in facts.items() if name not in _NOT_COMPARED}
    host = {f"host.{name}": str(value) for name, value in answer["host"].items()}
    software = {name: str(value) for name, value in answer["software"].items()}
    versions = {**software, **answer["files"], **host, **machine}
    device = Device(**answer["device"])
    return FleetBoard(claim, facts, answer["host"], answer["software"], device, versions)


def boards_of(fleet: Fleet, backend: str, catalogue: Path) -> tuple[list[FleetBoard], list[str]]:
    """Return the boards that measure, all of one kind and set alike, and remarks on workers that measure nothing."""
    fleet.wait()
    claimed, remarks = claims(fleet.seen(sorted(fleet.addresses())), needs_gpu=backend == "cuda")
    boards, others = of_one_kind(_describe(fleet, claimed, backend, catalogue))
    require_equal(boards)
    _require_files_of_here(boards, catalogue)
    boards, different = set_alike(boards)
    return boards, remarks + others + different


def _own_files(catalogue: Path) -> dict[str, str]:
    return {"prism-bench": __version__, "prism-bench's code": digest(PACKAGE), "catalogue": digest(catalogue)}


def _require_files_of_here(boards: Sequence[FleetBoard], catalogue: Path) -> None:
    """Raise a UsageError if the boards, which are alike, have other files than this process."""
    here, there = _own_files(catalogue), boards[0].versions
    lines = [
        f"{name}: {here[name]} here; {there.get(name)} on all workers" for name in here if here[name] != there[name]
    ]
    if lines:
        raise UsageError(
            "the workers of the fleet have other files than this command, whose record would name the wrong ones:\n  "
            + "\n  ".join(lines)
        )


def replacements(
    fleet: Fleet, new: Iterable[str], gone: Sequence[FleetBoard], backend: str, catalogue: Path
) -> list[FleetBoard]:
    """Return the lost boards on which new workers have started; a board that differs is left out with a warning."""
    left, boards = list(gone), list[FleetBoard]()
    try:
        for worker in fleet.seen(sorted(new)):
            claimed = (board for board in left if board.claim.worker.host == worker.host)
            board = next((board for board in claimed if board.claim.gpu in (None, *worker.gpus)), None)
            if board is None:
                continue
            left.remove(board)
            (again,) = _describe(fleet, [replace(board.claim, worker=worker)], backend, catalogue)
            require_equal([board, again])
            if again.settings != board.settings:
                raise UsageError(f"{board.title}: {differing(again.settings, board.settings)} when it was lost")
            boards.append(replace(again, name=board.key))
    except (BackendUnavailable, UsageError) as error:  # the worker may be lost again; the next look finds it
        warn(f"a worker that came back is not used: {error}")
    return boards

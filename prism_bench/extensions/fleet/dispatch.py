"""Dispatch of a fleet's work: the next groups to each board that is free, and those of a lost worker to another one."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from prism_bench.errors import BackendUnavailable, CacheUnavailable
from prism_bench.extensions.fleet.board import FleetBoard
from prism_bench.extensions.fleet.fleet import LOOK_SECONDS, Fleet, JobMessage, failure, is_loss
from prism_bench.extensions.fleet.placement import CaseGroup, Schedule
from prism_bench.io import interrupts
from prism_bench.io.saving import warn

RESULT_SECONDS = 60.0  # for the result of a job that has ended
MOST_LOSSES = 3  # of workers that were at the same group: it is to blame, then
REJOIN_SECONDS = 60.0  # for a worker, where none is left


@dataclass
class BoardState:
    """What people see of a board: its title, what it is at, its clock in hertz, and how many tasks of its job are done.

    A task is one step of one process, so that a job that measures every case three times moves from its start.
    """

    title: str
    line: str = "waits"
    clock: float | None = None
    done: int = 0
    total: int = 0
    lost: bool = False

    def follow(self, event: Mapping[str, Any]) -> None:
        """Take how far the job is from one of its events."""
        self.line = event.get("task", self.line)
        self.done, self.total = event.get("done", self.done), event.get("total", self.total)

    def change(self, line: str) -> None:
        """Take what the board does between jobs."""
        self.line, self.done, self.total = line, 0, 0


class BoardRefused(Exception):
    """A board cannot be used any more, for a reason that is none of the cases'."""


class FleetWork(Protocol):
    """What a fleet does, group by group: a run, a comparison, a tuning session."""

    call: str  # `module:function` of its jobs

    def order(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> dict[str, Any]:
        """Return what a job needs to know to measure the groups on the board."""
        ...

    def event(self, board: FleetBoard, groups: Sequence[CaseGroup], event: dict[str, Any], state: BoardState) -> None:
        """Take an event of the job."""
        ...

    def done(self, board: FleetBoard, groups: Sequence[CaseGroup], result: Any) -> None:
        """Take the result of the job; BoardRefused where the board must not be used any more."""
        ...

    def lost(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> list[CaseGroup]:
        """Return those groups of a lost job that are not wholly measured; nothing of them is kept."""
        ...

    def give_up(self, board: FleetBoard, group: CaseGroup, reason: str) -> None:
        """Keep why a group has no results."""
        ...


@dataclass
class _GivenJob:
    board: FleetBoard
    groups: list[CaseGroup]
    future: Any
    expected: float
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None

    def left(self) -> float:
        """Return in how many seconds it is expected to end."""
        return max(0.0, self.expected - (time.monotonic() - self.began))


@dataclass
class Dispatcher:
    """Gives work to the boards of a fleet until nothing is left, and replaces boards whose worker was lost.

    `rejoined` returns the boards of workers that are new, in place of those that were lost. A job takes about
    `seconds`. `report` gets the states of all boards, several times a second.
    """

    fleet: Fleet
    boards: list[FleetBoard]
    schedule: Schedule
    work: FleetWork
    seconds: float
    rejoined: Callable[[set[str], Sequence[FleetBoard]], list[FleetBoard]]
    report: Callable[[Sequence[BoardState]], object] = lambda _: None
    states: dict[str, BoardState] = field(default_factory=dict[str, BoardState])
    _jobs: dict[int, _GivenJob] = field(default_factory=dict[int, _GivenJob])
    _gone: list[FleetBoard] = field(default_factory=list[FleetBoard])
    _refused: set[str] = field(default_factory=set[str])  # boards that must not be used again
    _losses: dict[CaseGroup, int] = field(default_factory=dict[CaseGroup, int])

    def run(self) -> None:
        """Work until nothing is left; BackendUnavailable where no board is left, or the scheduler is gone."""
        self.states |= {board.key: BoardState(board.title) for board in self.boards}
        looked, alone_since = time.monotonic(), None
        while self.schedule or self._jobs:
            self._fill()
            for message in self.fleet.messages(LOOK_SECONDS if self._jobs else 0.1):
                self._take(message)
            self.report(list(self.states.values()))
            if time.monotonic() - looked >= LOOK_SECONDS:
                self._look()
                looked = time.monotonic()
            alone_since = None if self.boards else alone_since or time.monotonic()
            if alone_since and (self._only_refused() or time.monotonic() - alone_since > REJOIN_SECONDS):
                raise BackendUnavailable("no worker of the fleet is left; what was measured until then is kept")

    def run_or_stop(self, has_results: Callable[[], bool]) -> bool:
        """Run, and return whether all work was done: an interrupt ends it early, as the loss of all workers does.

        BackendUnavailable where workers are lost before there are results.
        """
        try:
            with interrupts.allowed():
                self.run()
        except KeyboardInterrupt:
            self._drain()
            self.fleet.stop()
            return False
        except BackendUnavailable as error:
            if not has_results():
                raise
            warn(f"the run ends early, and its record has what was measured: {error}")
            return False
        return True

    def _drain(self) -> None:
        """Take the events that have arrived already, of a run that ends early."""
        for message in self.fleet.messages(0.0):
            if message.future is None:
                self._take(message)

    def _only_refused(self) -> bool:
        return not self._gone and bool(self._refused)

    def _fill(self) -> None:
        """Give each board without a job the next groups, where any are left for it."""
        for board in self.boards:
            left = {job.board.key: job.left() for job in self._jobs.values()}
            others = {other.key: left.get(other.key, 0.0) for other in self.boards if other is not board}
            groups = [] if board.key in left else self.schedule.take(board.key, self.seconds, others)
            if groups:
                order = self.work.order(board, groups)
                number, future = self.fleet.submit(board.claim, self.work.call, order)
                self._jobs[number] = _GivenJob(board, groups, future, self.schedule.expected[board.key])
                self.states[board.key].change("starts")

    def _take(self, message: JobMessage) -> None:
        job = self._jobs.get(message.number)
        if job is None:  # of a worker that is lost already
            return
        if "result" in message.event:
            self._finish(message.number, job, message.event["result"])
            return
        if message.future is None:
            self.work.event(job.board, job.groups, message.event, self.states[job.board.key])
            return
        if message.future.cancelled():
            return  # the next look finds that its worker is gone
        error = failure(message.future)
        if error is None:
            job.ended = time.monotonic()  # its result is on the way
        elif is_loss(error):  # first: Dask's CommClosedError is an OSError
            self._lose(message.number, job)
        elif isinstance(error, BackendUnavailable | CacheUnavailable | OSError):
            self._refuse(message.number, job, f"{type(error).__name__}: {error}")
        else:
            raise error

    def _finish(self, number: int, job: _GivenJob, result: Any) -> None:
        try:
            self.work.done(job.board, job.groups, result)
        except BoardRefused as refused:
            self._refuse(number, job, str(refused))
            return
        del self._jobs[number]
        self.states[job.board.key].change("waits")

    def _refuse(self, number: int, job: _GivenJob, reason: str) -> None:
        """Use the board no more; its job's groups go to others."""
        warn(f"{job.board.title} is no longer used: {reason}")
        self._refused.add(job.board.key)
        self._lose(number, job)
        self._gone = [board for board in self._gone if board.key not in self._refused]
        if not self.boards and not self._gone:
            raise BackendUnavailable(f"no board of the fleet is left; the last one: {reason}")

    def _lose(self, number: int, job: _GivenJob) -> None:
        """Plan the groups of a job without an end anew, unless too many workers were lost at them."""
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
        """Plan anew what lost workers had, and use workers that have come in their place."""
        live = self.fleet.addresses()
        for number, job in list(self._jobs.items()):
            late = job.ended is not None and time.monotonic() - job.ended > RESULT_SECONDS
            if late or job.board.claim.worker.address not in live:
                self._lose(number, job)
                job.future.cancel()
        for board in [one for one in self.boards if one.claim.worker.address not in live]:
            self._leave(board)
        known = {board.claim.worker.address for board in [*self.boards, *self._gone]}
        new = live - known
        if new and self._gone:
            for board in self.rejoined(new, self._gone):
                self._join(board)

    def _join(self, board: FleetBoard) -> None:
        self._gone = [one for one in self._gone if one.key != board.key]
        self.boards.append(board)
        self.states[board.key] = BoardState(board.title)

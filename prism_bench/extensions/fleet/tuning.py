"""Tuning on a fleet: each board searches its cases, and one suite of verdicts decides on all of them together."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from prism_bench.analysis.compare.tuning import Searched
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.fleet.board import FleetBoard
from prism_bench.extensions.fleet.catalogue_run import FleetProgress, block_seconds
from prism_bench.extensions.fleet.describe import folder_of, place_of, replacements
from prism_bench.extensions.fleet.dispatch import BoardState, Dispatcher
from prism_bench.extensions.fleet.fleet import Fleet
from prism_bench.extensions.fleet.job import JobChannel
from prism_bench.extensions.fleet.placement import CaseGroup, Schedule
from prism_bench.io.saving import Due
from prism_bench.record.run_record import decode_measurement, encode_measurement
from prism_bench.run import Progress
from prism_bench.spec.case import Case, Device
from prism_bench.workflows.trials import Bench
from prism_bench.workflows.tuning_session import TuningFound, TuningPlan, TuningResult, TuningSession

CALL = f"{__name__}:measure"
TRIAL_SECONDS = 0.5  # of a configuration in the search, about
AGAIN_SECONDS = 1.0  # of a process that times one again


def measure(order: dict[str, Any], channel: JobChannel) -> dict[str, Any]:
    """Tune the order's tasks on this worker's board; send what was found after the search and after each round."""
    catalogue = discover(folder_of(order["catalogue"]))

    def report(progress: Progress) -> None:
        channel.send({"task": progress.task, "done": progress.done, "total": progress.total})

    bench = Bench(order["backend"], catalogue, order["timeout"])
    session = TuningSession(bench, Device(**order["device"]), TuningPlan(**order["plan"]), report)
    for _ in session.steps([catalogue.anywhere(task) for task in order["tasks"]]):
        channel.send({"found": encoded(session.found)})
    return encoded(session.found)


def encoded(found: TuningFound) -> dict[str, Any]:
    """Return what was found as plain values; cases are their tasks."""
    searched = [
        {**vars(one), "default": one.default.task, "best": [case.task for case in one.best]} for one in found.searched
    ]
    again = {task: encode_measurement(one) for task, one in found.again.items()}
    return {"searched": searched, "again": again, "facts": dict(found.facts)}


def decoded(plain: dict[str, Any], catalogue: Catalogue) -> TuningFound:
    """Return the inverse of `encoded`."""
    searched: list[Searched] = []
    for one in plain["searched"]:
        cases = {"default": catalogue.anywhere(one["default"]), "best": tuple(map(catalogue.anywhere, one["best"]))}
        searched.append(Searched(**{**one, **cases}))
    again = {task: decode_measurement(one) for task, one in plain["again"].items()}
    return TuningFound(tuple(searched), again, plain["facts"])


@dataclass
class TuningWork:
    """The work of a fleet that tunes `cases`: all configurations of a case are tried and timed on one board.

    `keep` gets interim results, as of `TuningSession.run`; `noise` is the folder of noise floors.
    """

    bench: Bench
    plan: TuningPlan
    cases: Sequence[Case]
    noise: Path
    keep: Callable[[TuningResult], object] = lambda _: None
    call: str = CALL
    given_up: list[str] = field(default_factory=list[str])
    _ended: list[TuningFound] = field(default_factory=list[TuningFound])
    _under_way: dict[str, TuningFound] = field(default_factory=dict[str, TuningFound])  # by board
    _due: Due = field(default_factory=Due)
    _began: float = field(default_factory=time.monotonic)

    def order(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> dict[str, Any]:
        """Return the order of a job for the groups."""
        return {
            "backend": self.bench.backend, "catalogue": place_of(self.bench.catalogue.folder),
            "timeout": self.bench.timeout, "plan": asdict(self.plan), "device": asdict(board.device),
            "tasks": [task for group in groups for task in group.tasks],
        }  # fmt: skip

    def event(self, board: FleetBoard, groups: Sequence[CaseGroup], event: dict[str, Any], state: BoardState) -> None:
        """Show what the board is at, and keep what it has found so far."""
        state.follow(event)
        if "found" in event:
            self._under_way[board.key] = decoded(event["found"], self.bench.catalogue)
            if self._due():
                self.keep(self.result(complete=False))

    def done(self, board: FleetBoard, groups: Sequence[CaseGroup], result: Any) -> None:
        """Keep what the job found."""
        self._under_way.pop(board.key, None)
        self._ended.append(decoded(result, self.bench.catalogue))
        self.keep(self.result(complete=False))

    def lost(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> list[CaseGroup]:
        """Return all groups: configurations of a case are compared on one board."""
        self._under_way.pop(board.key, None)
        return list(groups)

    def give_up(self, board: FleetBoard, group: CaseGroup, reason: str) -> None:
        """Keep the reason; the group's cases are left."""
        self.given_up.append(f"{', '.join(group.tasks)}: {reason}")

    def finished(self) -> int:
        """Return how many cases are tuned."""
        return sum(len(found.searched) for found in self._ended)

    def result(self, complete: bool) -> TuningResult:
        """Return what was decided by everything that has arrived; all cases are judged as one suite."""
        found = list(self._all())
        if not any(one.searched for one in found):
            raise BackendUnavailable("nothing was tuned: " + "; ".join(self.given_up or ["no job has found anything"]))
        searched = {one.default.task: one for part in found for one in part.searched}
        ordered = tuple(searched[case.task] for case in self.cases if case.task in searched)
        again = {task: measured for part in found for task, measured in part.again.items()}
        facts = next(part.facts for part in found if part.searched)
        left = tuple(case for case in self.cases if case.task not in searched)
        decisions = TuningFound(ordered, again, facts).decisions(self.noise)
        return TuningResult(decisions, left, facts, time.monotonic() - self._began, complete and not left)

    def _all(self) -> Iterator[TuningFound]:
        yield from self._ended
        yield from self._under_way.values()


def tune_on(
    fleet: Fleet, boards: Sequence[FleetBoard], work: TuningWork, report: Callable[[FleetProgress], object]
) -> TuningResult:
    """Tune the work's cases on the boards; an interrupt, or the loss of all workers, keeps what was found by then."""
    schedule = Schedule(groups_of(work, boards[0].device), [board.key for board in boards], {})
    again = partial(replacements, fleet, backend=work.bench.backend, catalogue=work.bench.catalogue.folder)
    dispatcher = Dispatcher(
        fleet, list(boards), schedule, work, block_seconds(schedule.left, len(boards)), again,
        lambda states: report(FleetProgress(states, work.finished(), len(work.cases))),
    )  # fmt: skip
    return work.result(dispatcher.run_or_stop(lambda: work.finished() > 0))


def groups_of(work: TuningWork, device: Device) -> list[CaseGroup]:
    """Return a group for each case, with about the seconds that its search and the new times take."""
    return [CaseGroup((case.kernel,), (case.task,), _seconds(case, work.plan, device)) for case in work.cases]


def _seconds(case: Case, plan: TuningPlan, device: Device) -> float:
    tried = min(len(case.configurations(device)), plan.budget)
    return TRIAL_SECONDS * tried + AGAIN_SECONDS * plan.processes * (1 + min(plan.few, tried - 1))

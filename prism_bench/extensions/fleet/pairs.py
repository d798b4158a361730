"""Comparison of two builds, and tuning, on a fleet."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from prism_bench.analysis.compare.selection import Searched
from prism_bench.analysis.compare.verdict import VerdictRules
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.extensions.fleet.catalogue_run import FleetProgress, block_seconds
from prism_bench.extensions.fleet.dispatch import (
    BoardState,
    CaseGroup,
    Dispatcher,
    Schedule,
    folder_of,
    grouped,
    place_of,
    replacements,
)
from prism_bench.extensions.fleet.fleet import Fleet, FleetBoard, JobChannel
from prism_bench.io.files import Due
from prism_bench.record.run_record import RunRecord, decode, decode_measurement, encode, encode_measurement
from prism_bench.run import Settings
from prism_bench.run.builds import Build, Growth, interleaved, pair_settings
from prism_bench.run.job import merge
from prism_bench.run.pool import measuring
from prism_bench.spec.case import Case, Device
from prism_bench.workflows.pairs import PairEffort, PairJudge, Records
from prism_bench.workflows.tuning_session import FEW, Bench, TuningFound, TuningPlan, TuningResult, TuningSession

# Two builds: each board measures both sides of its kernels in turn, as a comparison on one GPU does

_CALL = f"{__name__}:measure"
_PAIR_SECONDS = 3.0  # of a case on both sides in one pair of processes, roughly


def measure(order: dict[str, Any], channel: JobChannel) -> dict[str, Any]:
    """Measure both sides of the order's tasks in this worker's processes; return the two records."""
    a, b = (_build(side, tasks) for side, tasks in zip(order["sides"], order["tasks"], strict=True))
    facts = order["judge"]
    judge = PairJudge(**{**facts, "rules": VerdictRules(**facts["rules"]), "changed": tuple(facts["changed"])})
    records = interleaved(
        (a, b),
        order["backend"],
        pair_settings(Settings(processes=order["looks"][0]), order["metrics"]),
        channel.report,
        growth=Growth(tuple(order["looks"]), judge.undecided),
        trusted=order["trusted"],
    )
    return {"records": [encode(record) for record in records]}


def _build(side: Mapping[str, Any], tasks: Sequence[str]) -> Build:
    folder = Path(side["catalogue"])
    if not folder.is_dir():
        raise UsageError(f"{folder}: this worker of the fleet has no such folder; both sides are files that all share")
    catalogue = discover(folder)
    root = Path(side["root"]) if side["root"] else None
    cases = tuple(catalogue.anywhere(task) for task in tasks)
    return Build(side["name"], catalogue, cases, measuring(root, side["variables"]))


@dataclass
class PairWork:
    """Work of a fleet that compares two builds; a job has some kernels, and its results are kept at its end."""

    builds: tuple[Build, Build]
    effort: PairEffort
    looks: tuple[int, ...]
    judge: PairJudge
    call: str = _CALL
    parts: list[Records] = field(default_factory=list[Records])
    given_up: list[str] = field(default_factory=list[str])
    finished: int = 0

    def order(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> dict[str, Any]:
        """Return the order of a job for the groups."""
        wanted = {task for group in groups for task in group.tasks}
        places = [place for place, case in enumerate(self.builds[0].cases) if case.task in wanted]
        return {
            "backend": self.effort.backend,
            "looks": list(self.looks),
            "trusted": list(self.effort.trusted),
            "metrics": list(self.effort.metrics),
            "sides": [_side(build) for build in self.builds],
            "tasks": [[build.cases[place].task for place in places] for build in self.builds],
            "judge": {**asdict(self.judge), "changed": list(self.judge.changed)},
        }

    def event(self, board: FleetBoard, groups: Sequence[CaseGroup], event: dict[str, Any], state: BoardState) -> None:
        """Show the activity of the board."""
        state.follow(event)

    def done(self, board: FleetBoard, groups: Sequence[CaseGroup], result: Any) -> None:
        """Keep the records of both sides."""
        a, b = (decode(plain, f"job of {board.title}") for plain in result["records"])
        self.parts.append((_on(board, a), _on(board, b)))
        self.finished += sum(len(group.tasks) for group in groups)

    def lost(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> list[CaseGroup]:
        """Return all groups: a pair counts as a whole."""
        return list(groups)

    def give_up(self, board: FleetBoard, group: CaseGroup, reason: str) -> None:
        """Keep the reason, which makes the records incomplete."""
        self.given_up.append(f"{', '.join(group.kernels)}: {reason}")

    def records(self, complete: bool) -> Records:
        """Return one record of each side; raise BackendUnavailable if no job has ended."""
        if not self.parts:
            raise BackendUnavailable("nothing was measured: " + "; ".join(self.given_up or ["no job has ended"]))
        sides: list[RunRecord] = []
        for records in zip(*self.parts, strict=True):
            merged = records[0] if len(records) == 1 else merge([(f"job {n}", job) for n, job in enumerate(records, 1)])
            sides.append(replace(merged, complete=merged.complete and complete and not self.given_up))
        return sides[0], sides[1]


def _side(build: Build) -> dict[str, Any]:
    root = build.place.root
    return {
        "name": build.name,
        "catalogue": str(build.catalogue.folder.resolve()),
        "root": str(root.resolve()) if root else None,
        "variables": dict(build.place.variables),
    }


def _on(board: FleetBoard, record: RunRecord) -> RunRecord:
    """Return the record with the host and software of its board, as in a run on the fleet."""
    machine = {**record.machine, "host": dict(board.host)}
    return replace(record, machine=machine, software=dict(board.software))


def measure_pairs(
    fleet: Fleet, boards: Sequence[FleetBoard], work: PairWork, report: Callable[[FleetProgress], object]
) -> Records:
    """Measure both builds of the work on the boards, every kernel on one board; return a record of each side.

    After an interrupt, or the loss of all workers, the records have the ended jobs and are marked incomplete.
    """
    groups = groups_of(work)
    schedule = Schedule(groups, [board.key for board in boards], {})
    total = sum(len(group.tasks) for group in groups)
    again = partial(replacements, fleet, backend=work.effort.backend, catalogue=work.builds[0].catalogue.folder)
    dispatcher = Dispatcher(
        fleet,
        list(boards),
        schedule,
        work,
        block_seconds(schedule.left, len(boards)),
        again,
        lambda states: report(FleetProgress(states, work.finished, total)),
    )
    return work.records(dispatcher.run_or_stop(lambda: bool(work.parts)))


def groups_of(work: PairWork) -> list[CaseGroup]:
    """Return the groups of side A's cases; every job also measures the launch overhead."""
    cases, seconds = work.builds[0].cases, _PAIR_SECONDS * work.looks[0]
    return grouped(cases, {case.name: seconds for case in cases})


# Tuning: each board searches its cases, and one suite of verdicts decides on all of them together

_TUNING_CALL = f"{__name__}:tuning_measure"
TRIAL_SECONDS = 0.5  # of a configuration in the search, roughly
AGAIN_SECONDS = 1.0  # of a process that times a configuration again


def tuning_measure(order: dict[str, Any], channel: JobChannel) -> dict[str, Any]:
    """Tune the order's tasks on this worker's board; send the results after the search and after each round."""
    catalogue = discover(folder_of(order["catalogue"]))
    bench = Bench(order["backend"], catalogue, order["timeout"], order["least"])
    session = TuningSession(bench, Device(**order["device"]), TuningPlan(**order["plan"]), channel.report)
    for _ in session.steps([catalogue.anywhere(task) for task in order["tasks"]]):
        channel.send({"found": encoded(session.found)})
    return encoded(session.found)


def encoded(results: TuningFound) -> dict[str, Any]:
    """Return the results as plain values; cases become their tasks."""
    searched = [
        {**vars(search), "default": search.default.task, "best": [case.task for case in search.best]}
        for search in results.searched
    ]
    again = {task: encode_measurement(times) for task, times in results.again.items()}
    return {"searched": searched, "again": again, "facts": dict(results.facts)}


def decoded(plain: dict[str, Any], catalogue: Catalogue) -> TuningFound:
    """Return the inverse of `encoded`."""
    searched: list[Searched] = []
    for search in plain["searched"]:
        best = tuple(map(catalogue.anywhere, search["best"]))
        searched.append(Searched(**{**search, "default": catalogue.anywhere(search["default"]), "best": best}))
    again = {task: decode_measurement(times) for task, times in plain["again"].items()}
    return TuningFound(tuple(searched), again, plain["facts"])


@dataclass
class TuningWork:
    """Work of a fleet that tunes `cases`: all configurations of a case are tried and timed on one board.

    `keep` gets interim results, as in `TuningSession.run`; `noise` is the folder of noise floors.
    """

    bench: Bench
    plan: TuningPlan
    cases: Sequence[Case]
    noise: Path
    keep: Callable[[TuningResult], object] = lambda _: None
    call: str = _TUNING_CALL
    given_up: list[str] = field(default_factory=list[str])
    _ended: list[TuningFound] = field(default_factory=list[TuningFound])
    _under_way: dict[str, TuningFound] = field(default_factory=dict[str, TuningFound])  # by board
    _due: Due = field(default_factory=Due)
    _began: float = field(default_factory=time.monotonic)

    def order(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> dict[str, Any]:
        """Return the order of a job for the groups."""
        return {
            "backend": self.bench.backend,
            "catalogue": place_of(self.bench.catalogue.folder),
            "timeout": self.bench.timeout,
            "least": self.bench.least,
            "plan": asdict(self.plan),
            "device": asdict(board.device),
            "tasks": [task for group in groups for task in group.tasks],
        }

    def event(self, board: FleetBoard, groups: Sequence[CaseGroup], event: dict[str, Any], state: BoardState) -> None:
        """Show the activity of the board, and keep its interim results."""
        state.follow(event)
        if "found" in event:
            self._under_way[board.key] = decoded(event["found"], self.bench.catalogue)
            if self._due():
                self.keep(self.result(complete=False))

    def done(self, board: FleetBoard, groups: Sequence[CaseGroup], result: Any) -> None:
        """Keep the results of the job."""
        self._under_way.pop(board.key, None)
        self._ended.append(decoded(result, self.bench.catalogue))
        self.keep(self.result(complete=False))

    def lost(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> list[CaseGroup]:
        """Return all groups: configurations of a case are compared on one board."""
        self._under_way.pop(board.key, None)
        return list(groups)

    def give_up(self, board: FleetBoard, group: CaseGroup, reason: str) -> None:
        """Keep the reason; the group's cases stay untuned."""
        self.given_up.append(f"{', '.join(group.tasks)}: {reason}")

    def finished(self) -> int:
        """Return the number of tuned cases."""
        return sum(len(results.searched) for results in self._ended)

    def result(self, complete: bool) -> TuningResult:
        """Return the decisions by all results so far; all cases are judged as one suite."""
        parts = [*self._ended, *self._under_way.values()]
        if not any(part.searched for part in parts):
            raise BackendUnavailable("nothing was tuned: " + "; ".join(self.given_up or ["no job has found anything"]))
        searched = {search.default.task: search for part in parts for search in part.searched}
        ordered = tuple(searched[case.task] for case in self.cases if case.task in searched)
        again = {task: measured for part in parts for task, measured in part.again.items()}
        facts = next(part.facts for part in parts if part.searched)
        left = tuple(case for case in self.cases if case.task not in searched)
        decisions = TuningFound(ordered, again, facts).decisions(self.noise)
        return TuningResult(decisions, left, facts, time.monotonic() - self._began, complete and not left)


def tune_on(
    fleet: Fleet, boards: Sequence[FleetBoard], work: TuningWork, report: Callable[[FleetProgress], object]
) -> TuningResult:
    """Tune the work's cases on the boards; an interrupt, or the loss of all workers, keeps the results until then."""
    schedule = Schedule(tuning_groups_of(work, boards[0].device), [board.key for board in boards], {})
    again = partial(replacements, fleet, backend=work.bench.backend, catalogue=work.bench.catalogue.folder)
    dispatcher = Dispatcher(
        fleet,
        list(boards),
        schedule,
        work,
        block_seconds(schedule.left, len(boards)),
        again,
        lambda states: report(FleetProgress(states, work.finished(), len(work.cases))),
    )
    return work.result(dispatcher.run_or_stop(lambda: work.finished() > 0))


def tuning_groups_of(work: TuningWork, device: Device) -> list[CaseGroup]:
    """Return a group for each case, with the approximate seconds of its search and its new times."""
    groups: list[CaseGroup] = []
    for case in work.cases:
        tried = min(len(case.configurations(device)), work.plan.budget)
        timed_again = work.plan.processes * (1 + min(FEW, tried - 1))
        seconds = TRIAL_SECONDS * tried + AGAIN_SECONDS * timed_again
        groups.append(CaseGroup((case.kernel,), (case.task,), seconds))
    return groups

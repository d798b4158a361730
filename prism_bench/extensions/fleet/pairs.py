"""Two builds on a fleet: each board measures both sides of its kernels in turn, as a comparison on one GPU does."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from prism_bench.analysis.compare.verdict import VerdictRules
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.extensions.fleet.board import FleetBoard
from prism_bench.extensions.fleet.catalogue_run import FleetProgress, block_seconds
from prism_bench.extensions.fleet.describe import replacements
from prism_bench.extensions.fleet.dispatch import BoardState, Dispatcher
from prism_bench.extensions.fleet.fleet import Fleet
from prism_bench.extensions.fleet.job import JobChannel
from prism_bench.extensions.fleet.placement import CaseGroup, Schedule, grouped
from prism_bench.record.run_record import RunRecord, decode, encode
from prism_bench.run import Progress, Settings
from prism_bench.run.interleave import Build, Growth, interleaved, pair_settings
from prism_bench.run.merge import merge
from prism_bench.run.places import measuring
from prism_bench.workflows.pairs import PairEffort, PairJudge, Records

CALL = f"{__name__}:measure"
PAIR_SECONDS = 3.0  # of a case on both sides in one pair of processes, about


def measure(order: dict[str, Any], channel: JobChannel) -> dict[str, Any]:
    """Measure both sides of the order's tasks in this worker's processes; return the two records."""
    a, b = (_build(side, tasks) for side, tasks in zip(order["sides"], order["tasks"], strict=True))
    judge = PairJudge(**{**order["judge"], "rules": VerdictRules(**order["judge"]["rules"]),
                         "changed": tuple(order["judge"]["changed"])})  # fmt: skip

    def report(progress: Progress) -> None:
        channel.send({"task": progress.task, "done": progress.done, "total": progress.total})

    records = interleaved(
        (a, b), order["backend"], pair_settings(Settings(processes=order["looks"][0]), order["metrics"]), report,
        growth=Growth(tuple(order["looks"]), judge.undecided), trusted=order["trusted"],
    )  # fmt: skip
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
    """The work of a fleet that compares two builds; a job has some kernels, and what it measured is kept at its end."""

    builds: tuple[Build, Build]
    effort: PairEffort
    looks: tuple[int, ...]
    judge: PairJudge
    call: str = CALL
    parts: list[Records] = field(default_factory=list[Records])
    given_up: list[str] = field(default_factory=list[str])
    finished: int = 0

    def order(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> dict[str, Any]:
        """Return the order of a job for the groups."""
        wanted = {task for group in groups for task in group.tasks}
        places = [place for place, case in enumerate(self.builds[0].cases) if case.task in wanted]
        return {
            "backend": self.effort.backend, "looks": list(self.looks), "trusted": list(self.effort.trusted),
            "metrics": list(self.effort.metrics),
            "sides": [_side(build) for build in self.builds],
            "tasks": [[build.cases[place].task for place in places] for build in self.builds],
            "judge": {**asdict(self.judge), "changed": list(self.judge.changed)},
        }  # fmt: skip

    def event(self, board: FleetBoard, groups: Sequence[CaseGroup], event: dict[str, Any], state: BoardState) -> None:
        """Show what the board is at."""
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
        """Return one record of each side; BackendUnavailable where no job has ended."""
        if not self.parts:
            raise BackendUnavailable("nothing was measured: " + "; ".join(self.given_up or ["no job has ended"]))
        a, b = (self._merged([pair[side] for pair in self.parts], complete) for side in range(2))
        return a, b

    def _merged(self, records: Sequence[RunRecord], complete: bool) -> RunRecord:
        found = records[0] if len(records) == 1 else merge([(f"job {n}", one) for n, one in enumerate(records, 1)])
        return replace(found, complete=found.complete and complete and not self.given_up)


def _side(build: Build) -> dict[str, Any]:
    root = build.place.root
    return {
        "name": build.name, "catalogue": str(build.catalogue.folder.resolve()),
        "root": str(root.resolve()) if root else None, "variables": dict(build.place.variables),
    }  # fmt: skip


def _on(board: FleetBoard, record: RunRecord) -> RunRecord:
    """Return the record with the host and software of its board, as a run on the fleet keeps them."""
    machine = {**record.machine, "host": dict(board.host)}
    return replace(record, machine=machine, software=dict(board.software))


def measure_pairs(
    fleet: Fleet, boards: Sequence[FleetBoard], work: PairWork, report: Callable[[FleetProgress], object]
) -> Records:
    """Measure both builds of the work on the boards, every kernel on one board; return a record of each side.

    An interrupt, or the loss of all workers, keeps the jobs that have ended, in records marked incomplete.
    """
    groups = groups_of(work)
    schedule = Schedule(groups, [board.key for board in boards], {})
    total = sum(len(group.tasks) for group in groups)
    again = partial(replacements, fleet, backend=work.effort.backend, catalogue=work.builds[0].catalogue.folder)
    dispatcher = Dispatcher(
        fleet, list(boards), schedule, work, block_seconds(schedule.left, len(boards)), again,
        lambda states: report(FleetProgress(states, work.finished, total)),
    )  # fmt: skip
    return work.records(dispatcher.run_or_stop(lambda: bool(work.parts)))


def groups_of(work: PairWork) -> list[CaseGroup]:
    """Return the groups of side A's cases; the launch overhead is measured in every job, too."""
    cases, seconds = work.builds[0].cases, PAIR_SECONDS * work.looks[0]
    return grouped(cases, {case.name: seconds for case in cases})

"""Run of a catalogue on a fleet: its kernels on many boards, into one record."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import UsageError
from prism_bench.extensions.fleet.dispatch import (
    BoardRefused,
    BoardState,
    CaseGroup,
    Dispatcher,
    Schedule,
    costed_groups,
    folder_of,
    job_overhead,
    last_boards,
    place_of,
    replacements,
)
from prism_bench.extensions.fleet.fleet import Fleet, FleetBoard, JobChannel
from prism_bench.io.files import CACHE_REFUSED, Due, number_variable
from prism_bench.io.workers import WorkerDied
from prism_bench.record import identity
from prism_bench.record.run_record import CaseResult, RunRecord, decode_case, encode_case
from prism_bench.run.forecast import MOST_READ, ROUGH, costs_of
from prism_bench.run.job import Run, merge
from prism_bench.run.pool import lanes_for
from prism_bench.run.session import result_of
from prism_bench.run.settings import RunClock, Settings, anchor_cases, ceiling_cases, from_plain, to_plain
from prism_bench.spec.case import Case

# The job in a worker: verifies and times some groups of cases on a board, and sends every result at once

_CALL = f"{__name__}:measure"


class _StreamedRun(Run):
    """Run that sends the results that it keeps; its own process needs them at the end of the job."""

    def __init__(self, catalogue: Catalogue, backend: str, settings: Settings, channel: JobChannel) -> None:
        self._channel = channel
        self._sent: dict[str, int] = {}
        super().__init__(catalogue, backend, settings, channel.report)

    def keep(self, task: str, results: Sequence[CaseResult]) -> None:
        super().keep(task, results)
        self.flush()

    def lose(self, death: WorkerDied, task: str) -> None:
        super().lose(death, task)
        self.flush()

    def flush(self) -> None:
        """Send the results that were not sent yet."""
        new = [result for name, results in self.results.items() for result in results[self._sent.get(name, 0) :]]
        self._sent = {name: len(results) for name, results in self.results.items()}
        if new:
            self._channel.send({"results": [encode_case(result) for result in new], "facts": self.facts})


@cache
def _catalogue(folder: Path, digest: str) -> Catalogue:
    """Return the catalogue with this digest, read once for all jobs of this worker."""
    return discover(folder)


def measure(order: dict[str, Any], channel: JobChannel) -> dict[str, Any]:
    """Verify and time the order's `tasks` and `anchors`; send every result at once, and return the run's facts."""
    catalogue = _catalogue(folder_of(order["catalogue"]), order["digest"])
    settings = replace(from_plain(order["settings"]), known_seconds=order["known_seconds"])
    run = _StreamedRun(catalogue, order["backend"], settings, channel)
    cases, anchors = ([catalogue.anywhere(task) for task in order[which]] for which in ("tasks", "anchors"))
    run.measure(cases, anchors=anchors)
    run.flush()
    return {
        "facts": run.facts,
        "protocol": run.protocol,
        "monitor": run.monitor,
        "spent": run.spent(),
        "results": sum(map(len, run.results.values())),
    }


# The work of the fleet: the results of each board so far, and one record of all


@dataclass
class _BoardRun:
    """Results of a board: `run` has the finished jobs, `streamed` the results of the running job."""

    board: FleetBoard
    run: Run
    streamed: list[CaseResult] = field(default_factory=list[CaseResult])

    def keep(self, results: Iterable[CaseResult]) -> None:
        for result in results:
            self.run.results.setdefault(result.name, []).append(result)


class CatalogueWork:
    """Run of a catalogue's cases on the boards of a fleet; every board measures the anchors once, in its first job."""

    call = _CALL

    def __init__(
        self,
        catalogue: Catalogue,
        backend: str,
        settings: Settings,
        cases: Iterable[Case],
        *,
        anchors: Iterable[Case] = (),
        lanes: int | None = None,
        keep: Callable[[], object] = lambda: None,
    ) -> None:
        """Verify in `lanes` processes, by default as many as the board's cores allow.

        `keep` is called after every event with results.
        """
        self._catalogue, self._backend, self._settings, self._keep = catalogue, backend, settings, keep
        self._lanes, self._anchors = lanes, {case.name: case.task for case in anchors}
        self._chosen = {case.name for case in cases}
        self._boards: dict[str, _BoardRun] = {}
        self.clock = RunClock()

    @property
    def has_results(self) -> bool:
        """Whether any result has arrived."""
        return any(board.run.has_results or board.streamed for board in self._boards.values())

    def order(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> dict[str, Any]:
        mine = self._of(board)
        mine.streamed = []
        lanes = self._lanes or lanes_for(self._backend, len(board.claim.cores))
        return {
            "backend": self._backend,
            "catalogue": place_of(Path(self._catalogue.folder)),
            "digest": board.versions.get("catalogue", ""),
            "settings": to_plain(replace(self._settings, lanes=lanes)),
            "known_seconds": self._settings.known_seconds,  # plain settings, which workers get, lack it
            "tasks": list(dict.fromkeys(task for group in groups for task in group.tasks)),
            "anchors": [task for name, task in self._anchors.items() if name not in mine.run.results],
        }

    def event(self, board: FleetBoard, groups: Sequence[CaseGroup], event: dict[str, Any], state: BoardState) -> None:
        mine = self._of(board)
        state.follow(event)
        if "results" not in event:
            return
        mine.run.facts = mine.run.facts or event["facts"]
        results = [decode_case(plain) for plain in event["results"]]
        mine.streamed += results
        clocks = [times.clock for result in results for times in result.measurements if times.clock]
        state.clock = clocks[0] if clocks else state.clock
        self._save()

    def done(self, board: FleetBoard, groups: Sequence[CaseGroup], result: Any) -> None:
        mine = self._of(board)
        results, mine.streamed = mine.streamed, []
        for case in results:
            if case.reason and case.reason.startswith(CACHE_REFUSED):
                raise BoardRefused(case.reason)
        if len(results) != result["results"]:
            raise BoardRefused(f"{len(results)} of {result['results']} results arrived")
        mine.keep(results)
        mine.run.facts, mine.run.protocol = result["facts"], result["protocol"]
        mine.run.monitor += result["monitor"]
        mine.run.spend(result["spent"])
        self._save()

    def lost(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> list[CaseGroup]:
        """Keep the groups of a lost job that have all results; return the other groups."""
        mine = self._of(board)
        streamed, mine.streamed = mine.streamed, []
        whole = [group for group in groups if self._is_whole(group, streamed)]
        kernels = {kernel for group in whole for kernel in group.kernels}
        anchors = {name for name in self._anchors if self._is_measured(_of_case(name, streamed))}
        mine.keep(result for result in streamed if result.kernel in kernels or result.name in anchors)
        return [group for group in groups if group not in whole]

    def give_up(self, board: FleetBoard, group: CaseGroup, reason: str) -> None:
        cases = [self._catalogue.anywhere(task) for task in group.tasks]
        mine = self._of(board)
        mine.run.facts = mine.run.facts or dict(board.facts)
        mine.keep(result_of(case, "crashed", f"{case.name}: {reason}") for case in cases)

    def finished(self) -> int:
        """Return the number of chosen cases that have all their results."""
        return sum(
            name in self._chosen and self._is_measured(results)
            for board in self._boards.values()
            for name, results in self._results(board).items()
        )

    def record(self, complete: bool) -> RunRecord:
        """Return one record of the results of all boards, including those of running jobs."""
        span = self.clock.span(complete)
        parts = [self._part(board, complete) for board in self._boards.values() if board.run.results or board.streamed]
        if not parts:
            return Run(self._catalogue, self._backend, self._settings).record(span)
        if len(parts) == 1:
            return replace(parts[0], duration=round(span.seconds, 1))
        merged = merge([(f"board {number}", part) for number, part in enumerate(parts, 1)])
        return replace(merged, created=identity.timestamp(span.started), duration=round(span.seconds, 1))

    def _save(self) -> None:
        if self.has_results:
            self._keep()

    def _part(self, measured: _BoardRun, complete: bool) -> RunRecord:
        """Return the record of one board."""
        run = Run(self._catalogue, self._backend, self._settings)
        run.facts, run.protocol, run.monitor = measured.run.facts, measured.run.protocol, measured.run.monitor
        run.results = self._results(measured)
        run.spend(measured.run.spent())
        record = run.record(self.clock.span(complete))
        machine = {**record.machine, "host": dict(measured.board.host)}
        return replace(record, machine=machine, software=dict(measured.board.software))

    def _results(self, board: _BoardRun) -> dict[str, list[CaseResult]]:
        by_name = {name: list(results) for name, results in board.run.results.items()}
        for result in board.streamed:
            by_name.setdefault(result.name, []).append(result)
        return by_name

    def _is_whole(self, group: CaseGroup, results: Sequence[CaseResult]) -> bool:
        names = [self._catalogue.anywhere(task).name for task in group.tasks]
        return all(self._is_measured(_of_case(name, results)) for name in names)

    def _is_measured(self, results: Sequence[CaseResult]) -> bool:
        """Return whether a case was timed in every process, or failed."""
        timed = sum(bool(result.measurements) for result in results)
        return timed >= self._settings.processes or any(result.status != "ok" for result in results)

    def _of(self, board: FleetBoard) -> _BoardRun:
        if board.key not in self._boards:
            self._boards[board.key] = _BoardRun(board, Run(self._catalogue, self._backend, self._settings))
        return self._boards[board.key]


def _of_case(name: str, results: Sequence[CaseResult]) -> list[CaseResult]:
    return [result for result in results if result.name == name]


# The run

SECONDS = "PRISM_BENCH_FLEET_SECONDS"
_BLOCK_SECONDS = 90.0  # of a job at least
_START_SECONDS = 14.0  # of a job next to its cases, without a record: an H200 without peers, 2026-11-27
# Approximate error of the plan as a share of a board's last job, without earlier times and with a record of most cases;
# see DECISIONS.md.
MISSED, MISSED_BY_RECORD = 0.14, 0.05


@dataclass(frozen=True)
class FleetProgress:
    """Progress of a fleet: the states of its boards, and cases `done` of `total`."""

    boards: Sequence[BoardState]
    done: int
    total: int


@dataclass(frozen=True)
class FleetRun:
    """Run of `cases` of a catalogue on a fleet; `lanes` as in a run, None for a number by the board's cores.

    `earlier` are records of such boards, the newest first: they decide which board gets which kernel.
    """

    fleet: Fleet
    boards: Sequence[FleetBoard]
    catalogue: Catalogue
    backend: str
    cases: Sequence[Case]
    settings: Settings
    lanes: int | None = None
    earlier: Iterable[RunRecord] = field(default_factory=tuple[RunRecord, ...])

    def run(
        self,
        report: Callable[[FleetProgress], object] = lambda _: None,
        keep: Callable[[RunRecord], object] = lambda _: None,
    ) -> RunRecord:
        """Measure; return one record. `report` gets the progress; `keep` gets incomplete records, as in `run.run`.

        After an interrupt, or the loss of all workers, the record has the results so far and is marked incomplete.
        """
        chosen = self._grouped_cases()
        due, anchors = Due(), self._anchors()
        work = CatalogueWork(
            self.catalogue,
            self.backend,
            self.settings,
            chosen,
            lanes=self.lanes,
            anchors=anchors,
            keep=lambda: keep(work.record(complete=False)) if due() else None,
        )
        schedule, missed = self._schedule(chosen, anchors)
        seconds = block_seconds(schedule.left, len(self.boards), schedule.overhead.start, missed)
        dispatcher = Dispatcher(
            self.fleet,
            list(self.boards),
            schedule,
            work,
            seconds,
            partial(replacements, self.fleet, backend=self.backend, catalogue=self.catalogue.folder),
            lambda states: report(FleetProgress(states, work.finished(), len(chosen))),
        )
        try:
            complete = dispatcher.run_or_stop(lambda: work.has_results)
        except Exception:
            if work.has_results:
                keep(work.record(complete=False))
            raise
        return work.record(complete)

    def _grouped_cases(self) -> list[Case]:
        """Return the cases that the boards share, without the ceiling benchmarks, which are a separate group."""
        cases = [case for case in self.cases if not (self.backend == "numpy_reference" and case.variant)]
        ceilings = {case.name for case in self._ceilings()}
        left = [case for case in cases if case.name not in ceilings]
        if not left:
            raise UsageError("a fleet shares kernels, and only ceiling benchmarks are chosen; leave --fleet out")
        return left

    def _ceilings(self) -> list[Case]:
        return ceiling_cases(self.catalogue) if self.backend == "cuda" else []

    def _anchors(self) -> list[Case]:
        """Return the ceiling benchmarks that every board measures."""
        return anchor_cases(self.catalogue, islice(self.earlier, MOST_READ)) if self.backend == "cuda" else []

    def _schedule(self, cases: Sequence[Case], anchors: Sequence[Case]) -> tuple[Schedule, float]:
        """Return the schedule, and its expected error as a share of a job."""
        costs, source = costs_of(cases, self.settings, self.backend, self.earlier)
        compiled = costs if self.settings.peers else replace(costs, compiling=0.0)  # mostly of peers
        peers = self.settings.peers and self.backend == "cuda"
        groups = costed_groups(cases, self._ceilings(), compiled, self.settings.processes, peers=peers)
        bare, _ = costs_of(cases, replace(self.settings, peers=False), self.backend, self.earlier)
        overhead = job_overhead(bare, anchors, self.settings.processes, peers=peers)
        last = last_boards(islice(self.earlier, MOST_READ), {case.spec.name for case in cases})
        schedule = Schedule(groups, [board.key for board in self.boards], last, overhead)
        return schedule, MISSED if source == ROUGH else MISSED_BY_RECORD


def block_seconds(left: float, boards: int, start: float = _START_SECONDS, missed: float = MISSED) -> float:
    """Return the approximate seconds of a job, which a lost worker costs, for `left` seconds of work on some boards.

    Each job costs `start` seconds more; long jobs leave boards idle at the end, since the plan is wrong by a share
    `missed` of the last job. The result balances both costs and is at least 90 s, or is PRISM_BENCH_FLEET_SECONDS.
    """
    best = math.sqrt(left / max(1, boards) * start / missed)
    meaning = "a number of seconds; with 0 each kernel is one job"
    return number_variable(SECONDS, max(_BLOCK_SECONDS, best), meaning)

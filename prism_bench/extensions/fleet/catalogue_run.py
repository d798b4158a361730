"""Run of a catalogue on a fleet: its kernels on many boards, into one record."""

import math
import os
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
from prism_bench.io.files import CACHE_REFUSED, Due
from prism_bench.io.workers import WorkerDied
from prism_bench.record import identity
from prism_bench.record.run_record import CaseResult, RunRecord, decode_case, encode_case
from prism_bench.run.forecast import MOST_READ, ROUGH, costs_of
from prism_bench.run.job import Run, merge
from prism_bench.run.pool import Progress, lanes_for
from prism_bench.run.session import result_of
from prism_bench.run.settings import RunClock, Settings, anchor_cases, ceiling_cases, from_plain, to_plain
from prism_bench.spec.case import Case

# Job of a run: some groups of its cases, verified and timed on one board, every result sent as it comes.

_CALL = f"{__name__}:measure"


class StreamedRun(Run):
    """A run that sends what it keeps; its own process keeps it too, for the end of the job."""

    def __init__(self, catalogue: Catalogue, backend: str, settings: Settings, channel: JobChannel) -> None:
        self._channel = channel
        self._sent: dict[str, int] = {}
        super().__init__(catalogue, backend, settings, self._progress)

    def _progress(self, event: Progress) -> None:
        self._channel.send({"task": event.task, "done": event.done, "total": event.total})

    def keep(self, task: str, results: Sequence[CaseResult]) -> None:
        super().keep(task, results)
        self.flush()

    def lose(self, death: WorkerDied, task: str) -> None:
        super().lose(death, task)
        self.flush()

    def flush(self) -> None:
        """Send the results that were not sent yet."""
        new = [one for name, results in self.results.items() for one in results[self._sent.get(name, 0) :]]
        self._sent = {name: len(results) for name, results in self.results.items()}
        if new:
            self._channel.send({"results": [encode_case(result) for result in new], "facts": self.facts})


@cache
def _catalogue(folder: Path, digest: str) -> Catalogue:
    """Return the catalogue of that content, read once for all jobs of this worker."""
    return discover(folder)


def measure(order: dict[str, Any], channel: JobChannel) -> dict[str, Any]:
    """Verify and time the order's `tasks` and `anchors`; send every result as it comes, and return the run's facts."""
    catalogue = _catalogue(folder_of(order["catalogue"]), order["digest"])
    settings = replace(from_plain(order["settings"]), known_seconds=order["known_seconds"])
    driven = StreamedRun(catalogue, order["backend"], settings, channel)
    cases, anchors = ([catalogue.anywhere(task) for task in order[which]] for which in ("tasks", "anchors"))
    driven.measure(cases, anchors=anchors)
    driven.flush()
    return {
        "facts": driven.facts,
        "protocol": driven.protocol,
        "monitor": driven.monitor,
        "spent": driven.spent(),
        "results": sum(map(len, driven.results.values())),
    }


# Work of a fleet that runs a catalogue: what each board measured so far, as one record.


@dataclass
class _BoardRun:
    """What one board measured: `run` holds what is finished, `streamed` the results of the job under way."""

    board: FleetBoard
    run: Run
    streamed: list[CaseResult] = field(default_factory=list[CaseResult])

    def keep(self, results: Iterable[CaseResult]) -> None:
        for result in results:
            self.run.results.setdefault(result.name, []).append(result)


class CatalogueWork:
    """Runs cases of a catalogue on the boards of a fleet; every board measures the anchors once, in its first job."""

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

        `keep` is called after every event that brought results.
        """
        self._catalogue, self._backend, self._settings, self._keep = catalogue, backend, settings, keep
        self._lanes, self._anchors = lanes, {case.name: case.task for case in anchors}
        self._chosen = {case.name for case in cases}
        self._boards: dict[str, _BoardRun] = {}
        self.clock = RunClock()

    @property
    def has_results(self) -> bool:
        """Whether any result has arrived."""
        return any(one.run.has_results or one.streamed for one in self._boards.values())

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
        clocks = [one.clock for result in results for one in result.measurements if one.clock]
        state.clock = clocks[0] if clocks else state.clock
        self._save()

    def done(self, board: FleetBoard, groups: Sequence[CaseGroup], result: Any) -> None:
        mine = self._of(board)
        results, mine.streamed = mine.streamed, []
        full = next((one.reason for one in results if (one.reason or "").startswith(CACHE_REFUSED)), None)
        if full:
            raise BoardRefused(full)
        if len(results) != result["results"]:
            raise BoardRefused(f"{len(results)} of {result['results']} results arrived")
        mine.keep(results)
        mine.run.facts, mine.run.protocol = result["facts"], result["protocol"]
        mine.run.monitor += result["monitor"]
        mine.run.spend(result["spent"])
        self._save()

    def lost(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> list[CaseGroup]:
        """Keep the groups of a lost job that have all results; return the others."""
        mine = self._of(board)
        streamed, mine.streamed = mine.streamed, []
        whole = [group for group in groups if self._is_whole(group, streamed)]
        kernels, anchors = {kernel for group in whole for kernel in group.kernels}, self._measured_anchors(streamed)
        mine.keep(result for result in streamed if result.kernel in kernels or result.name in anchors)
        return [group for group in groups if group not in whole]

    def give_up(self, board: FleetBoard, group: CaseGroup, reason: str) -> None:
        cases = [self._catalogue.anywhere(task) for task in group.tasks]
        mine = self._of(board)
        mine.run.facts = mine.run.facts or dict(board.facts)
        mine.keep(result_of(case, "crashed", f"{case.name}: {reason}") for case in cases)

    def finished(self) -> int:
        """Return how many of the chosen cases have all their results."""
        return sum(
            name in self._chosen and self._is_measured(results)
            for one in self._boards.values()
            for name, results in self._results(one).items()
        )

    def record(self, complete: bool) -> RunRecord:
        """Return one record of what all boards measured, those results included that have arrived of running jobs."""
        span = self.clock.span(complete)
        parts = [self._part(one, complete) for one in self._boards.values() if one.run.results or one.streamed]
        if not parts:
            return Run(self._catalogue, self._backend, self._settings).record(span)
        if len(parts) == 1:
            return replace(parts[0], duration=round(span.seconds, 1))
        found = merge([(f"board {number}", part) for number, part in enumerate(parts, 1)])
        return replace(found, created=identity.timestamp(span.started), duration=round(span.seconds, 1))

    def _save(self) -> None:
        if self.has_results:
            self._keep()

    def _part(self, one: _BoardRun, complete: bool) -> RunRecord:
        """Return the record of one board."""
        run = Run(self._catalogue, self._backend, self._settings)
        run.facts, run.protocol, run.monitor = one.run.facts, one.run.protocol, one.run.monitor
        run.results = self._results(one)
        run.spend(one.run.spent())
        record = run.record(self.clock.span(complete))
        return replace(
            record, machine={**record.machine, "host": dict(one.board.host)}, software=dict(one.board.software)
        )

    def _results(self, one: _BoardRun) -> dict[str, list[CaseResult]]:
        found = {name: list(results) for name, results in one.run.results.items()}
        for result in one.streamed:
            found.setdefault(result.name, []).append(result)
        return found

    def _measured_anchors(self, results: Sequence[CaseResult]) -> set[str]:
        """Return the names of the anchors that are wholly measured."""
        return {name for name in self._anchors if self._is_measured([one for one in results if one.name == name])}

    def _is_whole(self, group: CaseGroup, results: Sequence[CaseResult]) -> bool:
        names = [self._catalogue.anywhere(task).name for task in group.tasks]
        return all(self._is_measured([one for one in results if one.name == name]) for name in names)

    def _is_measured(self, results: Sequence[CaseResult]) -> bool:
        """Return whether a case was timed in every process, or will not be."""
        timed = sum(bool(result.measurements) for result in results)
        return timed >= self._settings.processes or any(result.status != "ok" for result in results)

    def _of(self, board: FleetBoard) -> _BoardRun:
        if board.key not in self._boards:
            self._boards[board.key] = _BoardRun(board, Run(self._catalogue, self._backend, self._settings))
        return self._boards[board.key]


# Run of a catalogue on a fleet: its kernels on many boards, into one record.

SECONDS = "PRISM_BENCH_FLEET_SECONDS"
_BLOCK_SECONDS = 90.0  # of a job at least
_START_SECONDS = 14.0  # of a job next to its cases, where no record has them: of an H200 without peers, 2026-11-27
# Of the seconds of a board's last job about what the plan misses, where it has no times and by those of a record of
# most cases; see DECISIONS.md.
MISSED, MISSED_BY_RECORD = 0.14, 0.05


@dataclass(frozen=True)
class FleetProgress:
    """How far a fleet is: the states of its boards, and cases `done` of `total`."""

    boards: Sequence[BoardState]
    done: int
    total: int


@dataclass(frozen=True)
class FleetRun:
    """What a fleet measures: `cases` of a catalogue by a backend; `lanes` as those of a run, None for by its cores.

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
        """Measure; return one record. `report` gets the progress; `keep` incomplete records, as of `run.run`.

        An interrupt, or the loss of all workers, keeps what was measured in a record marked incomplete.
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
            self._rejoined(),
            lambda states: report(FleetProgress(states, work.finished(), len(chosen))),
        )
        try:
            complete = dispatcher.run_or_stop(lambda: work.has_results)
        except Exception:
            if work.has_results:
                keep(work.record(complete=False))
            raise
        return work.record(complete)

    def _rejoined(self) -> Callable[[set[str], Sequence[FleetBoard]], list[FleetBoard]]:
        return partial(replacements, self.fleet, backend=self.backend, catalogue=self.catalogue.folder)

    def _grouped_cases(self) -> list[Case]:
        """Return the cases that are shared; the ceiling benchmarks are another group."""
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
        """Return what is to be measured, and the share of a job that this plan misses."""
        costs, source = costs_of(cases, self.settings, self.backend, self.earlier)
        compiled = costs if self.settings.peers else replace(costs, compiling=0.0)  # most of it is that of peers
        raced = self.settings.peers and self.backend == "cuda"
        groups = costed_groups(cases, self._ceilings(), compiled, self.settings.processes, peers=raced)
        bare, _ = costs_of(cases, replace(self.settings, peers=False), self.backend, self.earlier)
        overhead = job_overhead(bare, anchors, self.settings.processes, peers=raced)
        last = last_boards(islice(self.earlier, MOST_READ), {case.spec.name for case in cases})
        schedule = Schedule(groups, [board.key for board in self.boards], last, overhead)
        return schedule, MISSED if source == ROUGH else MISSED_BY_RECORD


def block_seconds(left: float, boards: int, start: float = _START_SECONDS, missed: float = MISSED) -> float:
    """Return about how many seconds a job takes, and what a lost worker costs, of `left` seconds on so many boards.

    Many jobs take `start` seconds each; few leave boards idle at the end, since the plan has `missed` that share of
    what the last one takes. It is where both cost the same, at least 90 s, or what PRISM_BENCH_FLEET_SECONDS names.
    """
    written = os.environ.get(SECONDS)
    try:
        best = math.sqrt(left / max(1, boards) * start / missed)
        seconds = float(written) if written else max(_BLOCK_SECONDS, best)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise UsageError(f"{SECONDS}={written}: it is a number of seconds; with 0 each kernel is one job")
    return seconds

"""Run of a catalogue on a fleet: its kernels on many boards, into one record."""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from prism_bench.catalogue import Catalogue
from prism_bench.errors import UsageError
from prism_bench.extensions.fleet.board import FleetBoard
from prism_bench.extensions.fleet.catalogue_work import CatalogueWork
from prism_bench.extensions.fleet.describe import replacements
from prism_bench.extensions.fleet.dispatch import BoardState, Dispatcher
from prism_bench.extensions.fleet.fleet import Fleet
from prism_bench.extensions.fleet.placement import Schedule, costed_groups, job_overhead, last_boards
from prism_bench.io.saving import Due
from prism_bench.record.run_record import RunRecord
from prism_bench.run.ceilings import anchor_cases, ceiling_cases
from prism_bench.run.forecast import MOST_READ, ROUGH, costs_of
from prism_bench.run.settings import Settings
from prism_bench.spec.case import Case

SECONDS = "PRISM_BENCH_FLEET_SECONDS"
BLOCK_SECONDS = 90.0  # of a job at least
START_SECONDS = 14.0  # of a job next to its cases, where no record has them: of an H200 without peers, 2026-11-27
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
        self, report: Callable[[FleetProgress], object] = lambda _: None,
        keep: Callable[[RunRecord], object] = lambda _: None,
    ) -> RunRecord:  # fmt: skip
        """Measure; return one record. `report` gets the progress; `keep` incomplete records, as of `run.run`.

        An interrupt, or the loss of all workers, keeps what was measured in a record marked incomplete.
        """
        chosen = self._grouped_cases()
        due, anchors = Due(), self._anchors()
        work = CatalogueWork(
            self.catalogue, self.backend, self.settings, chosen, lanes=self.lanes, anchors=anchors,
            keep=lambda: keep(work.record(complete=False)) if due() else None,
        )  # fmt: skip
        schedule, missed = self._schedule(chosen, anchors)
        seconds = block_seconds(schedule.left, len(self.boards), schedule.overhead.start, missed)
        dispatcher = Dispatcher(
            self.fleet, list(self.boards), schedule, work, seconds, self._rejoined(),
            lambda states: report(FleetProgress(states, work.finished(), len(chosen))),
        )  # fmt: skip
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


def block_seconds(left: float, boards: int, start: float = START_SECONDS, missed: float = MISSED) -> float:
    """Return about how many seconds a job takes, and what a lost worker costs, of `left` seconds on so many boards.

    Many jobs take `start` seconds each; few leave boards idle at the end, since the plan has `missed` that share of
    what the last one takes. It is where both cost the same, at least 90 s, or what PRISM_BENCH_FLEET_SECONDS names.
    """
    written = os.environ.get(SECONDS)
    try:
        best = math.sqrt(left / max(1, boards) * start / missed)
        seconds = float(written) if written else max(BLOCK_SECONDS, best)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise UsageError(f"{SECONDS}={written}: it is a number of seconds; with 0 each kernel is one job")
    return seconds

"""Simulation of a fleet: how long a run of the catalogue takes on 1, 2, 4 and 8 boards, from a record's task times.

Groups, their placement and the size of jobs are those of `prism-bench run --fleet` without earlier records; only the
boards are simulated. A job takes the recorded seconds of its cases (verification, every process, peers), its share of
the compilation, all that its timing processes took next to their cases, and `placement.JOB_SECONDS`: what jobs of a
real fleet took anew. One board measures the ceilings, the others the anchors among them in their first job. Jobs are
planned by the times of another record where one is given. Not simulated: a scheduler that takes time, what peers add
to the start of a job (`placement.PEER_SECONDS`), cores that are shared, and differences between boards.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from pathlib import Path

from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import ResultsError
from prism_bench.extensions.fleet.catalogue_run import block_seconds
from prism_bench.extensions.fleet.dispatch import CaseGroup, JobOverhead, Schedule, costed_groups, job_overhead
from prism_bench.io.files import default_folder
from prism_bench.record import store
from prism_bench.record.run_record import RunRecord
from prism_bench.run.forecast import CaseCosts, recorded_costs
from prism_bench.run.settings import anchor_cases, ceiling_cases
from prism_bench.spec.case import Case
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv

BOARDS = (1, 2, 4, 8)


@dataclass(frozen=True)
class FleetCosts:
    """Seconds of a run's parts: `groups` of cases, those of the ceilings `early`, and the `overhead` of jobs.

    `planned` are the seconds of groups that the plan is made by, where they are others.
    """

    groups: tuple[CaseGroup, ...]
    overhead: JobOverhead = JobOverhead()
    planned: Mapping[tuple[str, ...], float] = field(default_factory=dict[tuple[str, ...], float])

    def expected(self) -> list[CaseGroup]:
        """Return the groups with the seconds that the plan is made by."""
        return [replace(one, seconds=self.planned.get(one.kernels, one.seconds)) for one in self.groups]


@dataclass(frozen=True)
class SimulatedFleet:
    """One row: how long so many boards take, how much faster that is than one, and the jobs and idle share."""

    boards: int
    seconds: float
    speedup: float
    jobs: int
    idle_share: float


def costs_in(record: RunRecord, catalogue: Catalogue, planned: RunRecord | None = None) -> FleetCosts:
    """Return what a run of the record's cases takes; ResultsError where the record has no times of its cases."""
    costs, processes = recorded_costs(record, peers=True), max(1, int(record.protocol.get("processes") or 1))
    ceilings = ceiling_cases(catalogue)
    alone = [case for case in _timed(catalogue, costs) if case not in ceilings]
    if not alone:
        raise ResultsError("the record has no times of this catalogue's cases, so there is nothing to simulate")
    overhead = job_overhead(recorded_costs(record, peers=False), anchor_cases(catalogue, [record]), processes)
    by = [recorded_costs(one, peers=True) for one in (record, planned) if one]
    groups, *plans = (costed_groups(alone, ceilings, one, processes) for one in by)
    return FleetCosts(tuple(groups), overhead, {one.kernels: one.seconds for plan in plans for one in plan})


def _timed(catalogue: Catalogue, costs: CaseCosts) -> list[Case]:
    return [case for case in catalogue.cases(labels=("S0", "S1", "S2")) if case.name in costs.timed]


def simulated(costs: FleetCosts, counts: Sequence[int] = BOARDS) -> list[SimulatedFleet]:
    """Return a row for each number of boards; the speedup is against a run without a fleet on one board."""
    alone = costs.overhead.start + sum(group.seconds for group in costs.groups)
    return [_row(costs, count, alone) for count in counts]


def _row(costs: FleetCosts, count: int, alone: float) -> SimulatedFleet:
    if count == 1:
        return SimulatedFleet(1, round(alone, 1), 1.0, 1, 0.0)
    jobs = list(_jobs(costs, count))
    end, busy = max(until for _, until in jobs), sum(until - began for began, until in jobs)
    return SimulatedFleet(count, round(end, 1), round(alone / end, 2), len(jobs), round(1 - busy / (count * end), 3))


def _jobs(costs: FleetCosts, count: int) -> Iterator[tuple[float, float]]:
    """Yield when each job begins and ends: whichever board is free first takes the next one."""
    boards = [f"board {number}" for number in range(count)]
    schedule, ends = Schedule(costs.expected(), boards, {}, costs.overhead), dict.fromkeys(boards, 0.0)
    seconds = block_seconds(schedule.left, count, costs.overhead.start)
    actual = {group.kernels: group.seconds for group in costs.groups}
    free = [(0.0, board) for board in boards]
    new = set(boards)
    while free:
        now, board = heappop(free)
        left = {other: max(0.0, end - now) for other, end in ends.items() if other != board}
        groups = schedule.take(board, seconds, left)
        if groups:
            ends[board] = now + schedule.expected[board]
            anchors = costs.overhead.anchors if board in new and not any(group.early for group in groups) else 0.0
            new.discard(board)
            until = now + costs.overhead.start + anchors + sum(actual[group.kernels] for group in groups)
            yield now, until
            heappush(free, (until, board))


def main() -> None:
    """Print the table of a record, and write it as CSV."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("record", type=Path, help="a complete record of the catalogue")
    parser.add_argument("--planned-by", type=Path, help="an earlier record, whose times the plan is made by")
    parser.add_argument("--table", type=Path, help="a CSV file for the rows")
    options = parser.parse_args()
    planned = store.read(options.planned_by) if options.planned_by else None
    rows = simulated(costs_in(store.read(options.record), discover(default_folder()), planned))
    for row in rows:
        print(
            f"{count_text(row.boards, 'board')}: {row.seconds:.0f} s, {row.speedup:.2f}x, "
            f"{count_text(row.jobs, 'job')}, idle {row.idle_share:.1%}"
        )
    if options.table:
        write_csv(rows, options.table)


if __name__ == "__main__":
    main()

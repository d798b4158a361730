"""Simulation of a fleet: how long a run of the catalogue takes on 1, 2, 4 and 8 boards, from a record's task times.

Groups, their placement and the size of jobs are those of `prism-bench run --fleet`; only the boards are simulated. A
job takes the recorded seconds of its cases (verification, every process, peers), its share of the compilation, and all
that the processes of the whole recorded run took next to their cases: an upper bound of what starts cost. The first job
of a board measures the ceilings, too. Not simulated: a scheduler that takes time, cores that are shared, and
differences between boards.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path

from prism_bench import store
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import ResultsError
from prism_bench.files import default_folder
from prism_bench.fleet.catalogue_run import block_seconds
from prism_bench.fleet.placement import CaseGroup, Schedule, grouped
from prism_bench.run.case_costs import recorded_costs
from prism_bench.run.ceilings import ceiling_cases
from prism_bench.run_record import RunRecord
from prism_bench.studies.csv_table import write_table
from prism_bench.units import count_text

BOARDS = (1, 2, 4, 8)


@dataclass(frozen=True)
class FleetCosts:
    """Seconds of a run's parts: `groups` of cases, the `ceilings` of each board, and what each job adds in `starts`."""

    groups: tuple[CaseGroup, ...]
    ceilings: float
    starts: float


@dataclass(frozen=True)
class SimulatedFleet:
    """One row: how long so many boards take, how much faster that is than one, and the jobs and idle share."""

    boards: int
    seconds: float
    speedup: float
    jobs: int
    idle_share: float


def costs_in(record: RunRecord, catalogue: Catalogue) -> FleetCosts:
    """Return what a run of the record's cases takes; ResultsError where the record has no times of its cases."""
    costs, processes = recorded_costs(record, peers=True), max(1, int(record.protocol.get("processes") or 1))
    everywhere = ceiling_cases(catalogue)
    timed = [case for case in catalogue.cases(labels=("S0", "S1", "S2")) if case.name in costs.timed]
    alone = [case for case in timed if case not in everywhere]
    if not alone:
        raise ResultsError("the record has no times of this catalogue's cases, so there is nothing to simulate")
    seconds = costs.by_case(alone, processes)
    compiling = costs.compiling / len(alone)
    groups = grouped(alone, {name: one + compiling for name, one in seconds.items()})
    return FleetCosts(tuple(groups), sum(costs.by_case(everywhere, processes).values()), processes * costs.start)


def simulated(costs: FleetCosts, counts: Sequence[int] = BOARDS) -> list[SimulatedFleet]:
    """Return a row for each number of boards; the speedup is against a run without a fleet on one board."""
    alone = costs.ceilings + costs.starts + sum(group.seconds for group in costs.groups)
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
    schedule, free = Schedule(costs.groups, boards, {}), list[tuple[float, str]]()
    seconds = block_seconds(schedule.left, count)
    for board in boards:
        heappush(free, (0.0, board))
    new = set(boards)
    while free:
        now, board = heappop(free)
        groups = schedule.take(board, seconds, count)
        if groups:
            extra = costs.starts + (costs.ceilings if board in new else 0.0)
            new.discard(board)
            until = now + extra + sum(group.seconds for group in groups)
            yield now, until
            heappush(free, (until, board))


def main() -> None:
    """Print the table of a record, and write it as CSV."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("record", type=Path, help="a complete record of the catalogue")
    parser.add_argument("--table", type=Path, help="a CSV file for the rows")
    options = parser.parse_args()
    rows = simulated(costs_in(store.read(options.record), discover(default_folder())))
    for row in rows:
        print(
            f"{count_text(row.boards, 'board')}: {row.seconds:.0f} s, {row.speedup:.2f}x, "
            f"{count_text(row.jobs, 'job')}, idle {row.idle_share:.1%}"
        )
    if options.table:
        write_table(rows, options.table)


if __name__ == "__main__":
    main()

"""Simulated fleets: bounds that any schedule keeps, and costs read from a record."""

from pathlib import Path

import pytest

from prism_bench import store
from prism_bench.catalogue import discover
from prism_bench.errors import ResultsError
from prism_bench.fleet.placement import CaseGroup
from prism_bench.studies.fleet_simulation import FleetCosts, costs_in, simulated
from tests.built_in import CATALOGUE
from tests.extensions.planted_programs import program, record

TOYS, REPORTS = Path(__file__).parent.parent / "toys", Path(__file__).resolve().parents[2] / "reports"


def groups(*seconds):
    return tuple(CaseGroup((f"k{place}",), (f"k{place}[n=1]",), one) for place, one in enumerate(seconds))


def speedups(costs):
    return {row.boards: row.speedup for row in simulated(costs)}


def test_equal_groups_without_overhead_are_shared_perfectly():
    assert {1: 1.0, 2: 2.0, 4: 4.0, 8: 8.0} == speedups(FleetCosts(groups(*[90.0] * 16), 0.0, 0.0))


def test_what_every_board_does_limits_it():
    found = speedups(FleetCosts(groups(*[45.0] * 32), 30.0, 0.0))
    assert found[8] == pytest.approx(1470 / (1440 / 8 + 30), abs=0.01)


def test_each_job_costs_its_starts():
    costs = FleetCosts(groups(*[90.0] * 8), 0.0, 10.0)
    two = simulated(costs, (2,))[0]
    assert (8, 400.0) == (two.jobs, two.seconds)


def test_the_longest_group_limits_it():
    assert 2.0 == speedups(FleetCosts(groups(100.0, *[1.0] * 100), 0.0, 0.0))[8]


def test_a_record_of_other_cases_is_refused():
    with pytest.raises(ResultsError, match="no times of this catalogue's cases"):
        costs_in(record(program()), discover(TOYS))


def test_a_stored_record_has_groups_and_ceilings():
    kept = store.read(next((REPORTS / "runs" / "nvidia-h200").glob("20261123T070904Z-*.json.gz")))
    found = costs_in(kept, CATALOGUE)
    assert len(found.groups) > 50 and 0 < found.ceilings < 100 and 0 < found.starts < 60
    two = simulated(found, (2,))[0]
    assert 1.0 < two.speedup < 2.0

"""Simulated fleets: bounds that any schedule keeps, and costs read from a record."""

import csv
from io import StringIO
from pathlib import Path

import pytest
from lab.fleet_simulation import FleetCosts, costs_in, simulated

from prism_bench.catalogue import discover
from prism_bench.errors import ResultsError
from prism_bench.extensions.fleet.dispatch import CaseGroup, JobOverhead
from prism_bench.record import store
from tests.built_in import CATALOGUE
from tests.extensions.planted_programs import program, record

TOYS, REPORTS = Path(__file__).parents[1] / "toys", Path(__file__).resolve().parents[2] / "reports"


def groups(*seconds):
    return tuple(CaseGroup((f"k{place}",), (f"k{place}[n=1]",), one) for place, one in enumerate(seconds))


def with_ceilings(seconds, anchors, *others):
    ceilings = CaseGroup(("copy",), ("copy[n=1]",), seconds, early=True)
    return FleetCosts((ceilings, *groups(*others)), JobOverhead(0.0, anchors))


def speedups(costs):
    return {row.boards: row.speedup for row in simulated(costs)}


def test_equal_groups_without_overhead_are_shared_perfectly():
    assert {1: 1.0, 2: 2.0, 4: 4.0, 8: 8.0} == speedups(FleetCosts(groups(*[90.0] * 16)))


def test_what_every_board_does_limits_it():
    found = speedups(with_ceilings(30.0, 30.0, *[45.0] * 32))
    assert found[8] == pytest.approx(1470 / (1440 / 8 + 30), abs=0.01)


def test_ceilings_of_one_board_limit_less():
    found = speedups(with_ceilings(30.0, 6.0, *[4.0] * 360))
    least = (1470 + 7 * 6) / 8
    assert 1470 / (least + 2 * 4.0) <= found[8] <= 1470 / least, "parts are whole groups of 4 s"


def test_a_plan_by_other_times_is_simulated_with_these():
    costs = FleetCosts(groups(*[10.0] * 16), planned={("k0",): 100.0})
    assert 250.0 == sum(one.seconds for one in costs.expected())
    (two,) = simulated(costs, (2,))
    assert 80.0 <= two.seconds <= 150.0


def test_each_job_costs_its_starts():
    costs = FleetCosts(groups(*[90.0] * 8), JobOverhead(10.0))
    two = simulated(costs, (2,))[0]
    assert (4, 380.0) == (two.jobs, two.seconds), "two jobs of each board, since more cost more than an early end"


def test_the_longest_group_limits_it():
    assert 2.0 == speedups(FleetCosts(groups(100.0, *[1.0] * 100)))[8]


def test_a_record_of_other_cases_is_refused():
    with pytest.raises(ResultsError, match="no times of this catalogue's cases"):
        costs_in(record(program()), discover(TOYS))


@pytest.mark.parametrize("created", ["20261123T070904Z", "20261127T141305Z"])
def test_a_stored_record_has_groups_and_ceilings(created):
    kept = store.read(next((REPORTS / "runs" / "nvidia-h200").glob(f"{created}-*.json.gz")))
    found = costs_in(kept, CATALOGUE)
    (ceilings,) = [one for one in found.groups if one.early]
    assert (
        len(found.groups) > 50 and 0 < found.overhead.anchors < ceilings.seconds / 2 and 0 < found.overhead.start < 60
    )
    rows = {row.boards: row.speedup for row in simulated(found)}
    assert rows[2] >= 1.9 and rows[4] >= 3.6 and rows[8] >= 7.0, rows
    assert all(speedup <= boards for boards, speedup in rows.items())


@pytest.mark.parametrize(("name", "planned"), [("simulated", None), ("simulated_by_older_times", "20261123T070904Z")])
def test_the_stored_table_is_that_of_the_stored_records(name, planned):
    folder = REPORTS / "runs" / "nvidia-h200"
    kept, *older = (store.read(next(folder.glob(f"{one}-*.json.gz"))) for one in ("20261127T141305Z", planned) if one)
    rows = simulated(costs_in(kept, CATALOGUE, *older))
    stored = list(csv.DictReader(StringIO((REPORTS / "fleet" / f"{name}.csv").read_text())))
    assert [row.boards for row in rows] == [int(row["boards"]) for row in stored]
    assert [row.speedup for row in rows] == pytest.approx([float(row["speedup"]) for row in stored], rel=0.05)

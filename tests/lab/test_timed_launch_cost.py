"""The cost of verifying timed launches is counted case by case; what is accused is named."""

from pathlib import Path

import pytest
from lab.timed_launch_cost import CaseCost, costs, share

from prism_bench.backends.null import NullBackend
from prism_bench.catalogue import discover
from prism_bench.measure import Criterion
from prism_bench.run.session import MeasuringSession
from prism_bench.run.settings import Settings
from prism_bench.workflows.compile_table import write_csv

TOYS = discover(Path(__file__).parents[1] / "toys")
QUICK = Settings(criteria=dict.fromkeys(("cold_time", "hot_time"), Criterion(min_samples=5, max_samples=5)))


def found(script, limit=60.0):
    session = MeasuringSession(NullBackend(script), TOYS, QUICK, 1)
    return list(costs(session, TOYS.cases(["double"], ["S0"]), limit))


def test_every_case_has_its_cost_and_the_idle_one_is_named():
    honest, idle = found({}), found({"double*": {"idles": True}})
    assert {("ok", "")} == {(one.status, one.invalid) for one in honest}
    assert all(0 < one.looking < one.seconds for one in honest)
    assert {"wrong"} == {one.status for one in idle}
    assert all("though it was right when it was verified" in one.invalid for one in idle)


def test_after_the_limit_no_case_begins():
    assert 1 == len(found({}, limit=0.0)) < len(found({}))


def test_the_share_is_of_all_time():
    assert 0.02 == pytest.approx(share([CaseCost("a", "ok", 1.0, 0.03, ""), CaseCost("b", "ok", 1.0, 0.01, "")]))
    assert 0.0 == share([])


def test_the_table_has_a_line_for_each_case(tmp_path):
    write_csv([CaseCost("a[n=1,k=2]", "ok", 1.23456789, 0.5, "").rounded()], tmp_path / "new" / "table.csv")
    lines = (tmp_path / "new" / "table.csv").read_text().splitlines()
    assert ["case,status,seconds,looking,invalid", '"a[n=1,k=2]",ok,1.234568,0.5,'] == lines

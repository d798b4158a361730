"""Runs that are ended at random points: a short soak, and that a soak notices what it is for."""

from dataclasses import replace
from pathlib import Path

import pytest
from lab.soak import COLUMNS, Noted, Plan, SoakTrial, found_of, soak, summary
from lab.soak_job import results_of

from prism_bench.record.store import save
from prism_bench.workflows.compile_table import table_text
from tests.report.synthetic import gpu_record

TOYS = Path(__file__).parents[1] / "toys"
PLAN = Plan(TOYS, kills=2, bursts=2, save_seconds=0.0)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to find the children")
def test_kills_and_bursts_of_signals_cost_nothing_that_was_saved(tmp_path):
    trials = list(soak(PLAN, tmp_path / "runs"))
    assert ["kill"] * 2 + ["burst"] * 2 == [one.how for one in trials]
    assert [""] * 4 == [one.wrong for one in trials]
    assert sum(one.saves for one in trials), "no run came to its first save"


@pytest.mark.parametrize(
    ("noted", "wrong"), [(0, []), (-1, []), (1, ["1 saved results are lost"]), (5, ["5 saved results are lost"])]
)
def test_a_record_that_lost_something_is_noticed(tmp_path, noted, wrong):
    record = gpu_record()
    results = results_of(record)
    path = save(record, tmp_path / "machine" / "record.json.gz")
    assert (results, wrong) == found_of(tmp_path, Noted(1, path.name, results + noted))


def test_a_record_that_cannot_be_read_is_noticed(tmp_path):
    (tmp_path / "record.json.gz").write_bytes(b"\x1f\x8b cut")
    found, (wrong,) = found_of(tmp_path, Noted(1, "record.json.gz", 3))
    assert (0, True) == (found, "record.json.gz" in wrong)


def test_the_table_has_a_row_for_each_trial():
    one = SoakTrial(0, "kill", 1.5, 3, 6, 6, 2, 1, 0, "")
    other = replace(one, number=1, unsaved=4, wrong="child 7 goes on")
    header, *rows = table_text([one, other], COLUMNS).splitlines()
    assert (",".join(COLUMNS), 2) == (header, len(rows))
    assert "2 kills and 0 bursts of signals: 1 with anything wrong; 6 saves; at most 4 tasks" in summary([one, other])

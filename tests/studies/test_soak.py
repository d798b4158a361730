"""Runs that are ended at random points: a short soak, and that a soak notices what it is for."""

from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.studies import soak_job
from prism_bench.studies.soak import COLUMNS, Plan, Trial, soak, summary, table

TOYS = Path(__file__).parents[1] / "toys"
PLAN = Plan(TOYS, kills=4, bursts=2, save_seconds=0.0)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to find the children")
def test_kills_and_bursts_of_signals_cost_nothing_that_was_saved(tmp_path):
    trials = list(soak(PLAN, tmp_path / "runs"))
    assert ["kill"] * 4 + ["burst"] * 2 == [one.how for one in trials]
    assert [""] * 6 == [one.wrong for one in trials]
    assert sum(one.saves for one in trials), "no run came to its first save"


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to find the children")
def test_a_record_that_lost_something_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("prism_bench.studies.soak.results_of", lambda record: soak_job.results_of(record) - 1)
    trials = list(soak(replace(PLAN, kills=0, bursts=2), tmp_path / "runs"))
    noted = [one for one in trials if one.saves]
    assert all("1 saved results are lost" in one.wrong for one in noted)


def test_the_table_has_a_row_for_each_trial():
    one = Trial(0, "kill", 1.5, 3, 6, 6, 2, 1, 0, "")
    other = replace(one, number=1, unsaved=4, wrong="child 7 goes on")
    assert [COLUMNS, COLUMNS] == [tuple(row) for row in table([one, other])]
    assert "2 kills and 0 bursts of signals: 1 with anything wrong; 6 saves; at most 4 tasks" in summary([one, other])

"""The table of speed: its counts are those of a run's headline, and its exit code says whether a goal is missed."""

import json
from pathlib import Path

import pytest
from lab.speed_numbers import RUNS, Figure, figures, main, records

from prism_bench.analysis.peers import BEST, headline_rows
from prism_bench.analysis.run_analysis import read
from prism_bench.record import store

H200 = RUNS / "nvidia-h200"


def test_counts_are_those_of_the_headline() -> None:
    reading = read(store.read(records(H200)[1]))
    values = {figure.title: figure.value for figure in figures(reading)}
    best = {tuple(row["labels"]): row["below"] for row in headline_rows(reading.record.cases) if row["peers"] == BEST}
    assert values["cases of S1 below 1.00"] == best["S1",] > 0
    assert values["cases of S0 below 1.00"] == best["S0",] > 0


def test_goals_are_met_at_least_or_at_most() -> None:
    assert Figure("share", 0.9, 0.9, more=True).is_met
    assert not Figure("share", 0.89, 0.9, more=True).is_met
    assert Figure("cases", 2, 2).is_met
    assert not Figure("cases", 3, 2).is_met
    assert Figure("cases", None, 2).is_met is None


def test_table_has_every_goal_and_ends_with_1_where_one_is_missed() -> None:
    lines: list[str] = []
    code = main([str(H200), "--json"], lines.append)
    table = json.loads("\n".join(lines))["nvidia-h200"]
    assert code == int(any(row["met"] is False for row in table))
    assert [row["figure"] for row in table] == [figure.title for figure in figures(read(store.read(records(H200)[1])))]


def test_folder_without_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no run record"):
        main([str(tmp_path)])

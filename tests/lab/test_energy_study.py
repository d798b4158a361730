"""What the study of energies promises is kept by played boards, and a broken promise is named."""

import csv
import sys
from pathlib import Path

import pytest
from lab.energy_study import MORE, USUAL, energies_of, main, measured, report, share_told_apart
from lab.trends import wilson

from prism_bench.backends.null import SCRIPT
from prism_bench.catalogue import discover
from prism_bench.record.measurement import Energy
from prism_bench.workflows.compile_table import write_csv

TOYS = discover(Path(__file__).parents[1] / "toys")
H200 = Path(__file__).parents[2] / "reports/energy/jumps-nvidia-h200.csv"


def test_played_boards_keep_all_promises(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["energy_study", "--simulate"])
    code, printed = main(), capsys.readouterr().out
    assert 0 == code, printed
    assert "of 110 intervals hold the mean; 5 % more work is found in 100 %" in printed


def test_a_share_of_few_intervals_is_uncertain():
    _, low, high = wilson(10, 10)
    assert (pytest.approx(0.722, abs=1e-3), pytest.approx(1.0)) == (low, high)
    assert wilson(3840, 4000)[1:] == (pytest.approx(0.9535, abs=1e-3), pytest.approx(0.9656, abs=1e-3))


def test_broken_promises_are_named(capsys):
    off = [Energy(joules, 0.001, disagreement=0.05, scope="gpu") for joules in (0.9, 1.0, 1.1)]
    broken = "\n".join(report({USUAL: off, MORE: off, "c": [Energy(reason="no energy counter")]}))
    assert "c: no run has an energy" in broken
    assert "33 % of 6 intervals hold the mean" in broken
    assert "5 % more work is found in 0.0 %" in broken
    assert all(f"{case}: not within 3.0 %" in broken for case in (USUAL, MORE))
    assert "no energy counter" in capsys.readouterr().out


def test_intervals_that_touch_find_nothing():
    assert 0.5 == share_told_apart([Energy(1.0, 0.02), Energy(1.0, 0.03)], [Energy(1.05, 0.02), Energy(1.05, 0.03)])


def test_runs_are_recorded_and_played_back(monkeypatch, tmp_path):
    script, jumps, table = tmp_path / "script.json", tmp_path / "jumps.csv", tmp_path / "table.csv"
    script.write_text('{"*": {"joules": 0.01}}')
    monkeypatch.setenv(SCRIPT, str(script))
    recorded = measured(TOYS, ["double"], "null", 1)
    ((case, (energy,)),) = energies_of(recorded).items()
    assert ("double[n=100000]", "gpu") == (case, energy.scope)
    assert energy.joules == pytest.approx(0.01, rel=0.03)
    write_csv(recorded, jumps)
    monkeypatch.setattr(sys, "argv", ["energy_study", "--jumps", str(jumps), "--output", str(table)])
    assert 1 == main(), "5 % more work was not measured"
    assert f"{energy.joules!r}" in table.read_text()


def test_the_counter_of_an_h200_keeps_all_promises(monkeypatch, capsys, tmp_path):
    """Ten runs of six kernels, recorded for 2.1 s each; after 0.8 s the board is throttled in three of them."""
    monkeypatch.setattr(sys, "argv", ["energy_study", "--jumps", str(H200), "--output", str(tmp_path / "table.csv")])
    code, printed = main(), capsys.readouterr().out
    assert 0 == code, printed
    made, stored = (
        [*csv.reader(path.read_text().splitlines())]
        for path in (tmp_path / "table.csv", H200.with_name("nvidia-h200.csv"))
    )
    assert [row[:3] for row in stored] == [row[:3] for row in made]
    for was, row in zip(stored[1:], made[1:], strict=True):
        assert [float(cell) for cell in was[3:6]] == pytest.approx([float(cell) for cell in row[3:6]], rel=1e-6)

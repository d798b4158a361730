"""The tables of `scripts/judge_noise`, on records whose truth is known."""

import csv
import sys
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from prism_bench import store
from tests.analysis.measured_pairs import case
from tests.report.synthetic import record_of

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "judge_noise"


@pytest.fixture(scope="module")
def script():
    """The script as a module, without leaving bytecode beside it."""
    loader = SourceFileLoader("judge_noise", str(SCRIPT))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setattr(sys, "path", list(sys.path))
        module = module_from_spec(spec_from_loader("judge_noise", loader))
        loader.exec_module(module)
    return module


SPREADS = [0.002] * 6 + [0.03] * 2


def record(side, ratio=1.0, processes=5):
    cases = [
        case(f"k{i}", ratio, f"{side}", seed=10 * i + side, spread=spread, processes=processes)
        for i, spread in enumerate(SPREADS)
    ]
    return record_of(*cases)


@pytest.fixture
def judged(script, tmp_path, monkeypatch, capsys):
    """A function that judges four records; gives both tables and what was said."""

    def run(ratio):
        records = {"same-a": record(1, processes=6), "same-b": record(2, processes=6), "plain": record(3)}
        for name, one in {**records, "planted": record(4, ratio)}.items():
            store.save(one, tmp_path / f"{name}.json.gz")
        words = ["judge_noise", "judge", "--records", str(tmp_path), "--output", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", words)
        script.main()
        folder = tmp_path / "nvidia-h200"
        tables = [
            list(csv.DictReader((folder / name).read_text().splitlines())) for name in ("same.csv", "planted.csv")
        ]
        return *tables, capsys.readouterr().out

    return run


def test_twenty_pairs_of_one_build_are_judged_with_and_without_a_floor(judged):
    same, _, said = judged(1.05)
    assert ["of other processes", "of the pair's own"] * 20 == [row["floor"] for row in same]
    assert {"8"} == {row["cases"] for row in same}
    assert 0.01 * 160 >= sum(int(row["slower"]) + int(row["faster"]) for row in same[::2])
    assert "of 160 verdicts in 20 pairs called a change" in said


def test_the_planted_slowdown_counts_where_the_floor_allows_it(judged):
    _, planted, said = judged(1.05)
    assert ["slower"] * 6 == [row["verdict"] for row in planted if row["counts"] == "yes"]
    assert ["no"] * 2 == [row["counts"] for row in planted][-2:]
    assert "planted: 6 of 6 cases above 5 us with a floor below 3 % called slower" in said


def test_a_slowdown_that_is_not_there_is_not_found(judged):
    _, planted, said = judged(1.0)
    assert set() == {row["verdict"] for row in planted} & {"slower", "faster"}
    assert "planted: 0 of 6 cases" in said


def test_a_case_without_a_time_is_in_the_table_and_does_not_count(script):
    broken = replace(record(4, 1.05), cases=(replace(record(4).cases[0], status="crashed", measurements=()),))
    records = {"same-a": record(1), "same-b": record(2), "plain": record(3), "planted": broken}
    (row,) = script.planted_rows(records)
    assert ("not compared", "no", "") == (row["verdict"], row["counts"], row["ratio"])
    assert row["reason"].startswith("crashed in B")

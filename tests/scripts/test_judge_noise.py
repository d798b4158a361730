"""The tables of `scripts/judge_noise` on records whose truth is known."""

import csv
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from lab import noise_judgement

from prism_bench.analysis.compare.noise import stored_noise
from prism_bench.backends.null import SCRIPT as SCRIPTED
from prism_bench.errors import BackendUnavailable
from prism_bench.measure import Criterion
from prism_bench.record import store
from prism_bench.run import Settings
from prism_bench.run.builds import pair_settings
from tests.analysis.measured_pairs import case
from tests.report.synthetic import record_of

TOYS = Path(__file__).parent.parent / "toys"


@pytest.fixture(scope="module")
def script():
    return noise_judgement


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
    assert "as a control 0 stand out" in said
    assert {"0"} == {row["standing_out"] for row in same}


def test_the_planted_slowdown_counts_where_the_floor_allows_it(judged):
    _, planted, said = judged(1.05)
    assert [("3", 8), ("5", 8)] == list(Counter(row["processes"] for row in planted).items())
    assert ["slower"] * 6 == [row["verdict"] for row in planted if row["counts"] == "yes" and row["processes"] == "5"]
    assert ["no"] * 2 == [row["counts"] for row in planted][-2:]
    expected = "6 of 6 cases above 5 us with a noise floor below 3 % called slower, 6 of all 8 above 5 us"
    assert f"planted, 5 processes a side: {expected}" in said


def test_a_slowdown_that_is_not_there_is_not_found(judged):
    _, planted, said = judged(1.0)
    assert set() == {row["verdict"] for row in planted} & {"slower", "faster"}
    assert "planted, 5 processes a side: 0 of 6 cases" in said


def test_a_case_without_a_time_is_in_the_table_and_does_not_count(script):
    broken = replace(record(4, 1.05), cases=(replace(record(4).cases[0], status="crashed", measurements=()),))
    records = {"same-a": record(1), "same-b": record(2), "plain": record(3), "planted": broken}
    row, _ = script.planted_rows(records)
    assert ("not compared", "no", "") == (row["verdict"], row["counts"], row["ratio"])
    assert row["reason"].startswith("crashed in B")


@pytest.fixture
def both(script, tmp_path, monkeypatch, capsys):
    """A function that measures the toys on the null backend and judges them; gives the folder and what was said."""
    behaviours = {"triple*": {"seconds": 2e-6, "clock": 1.8e9}, "*": {"seconds": 1e-5, "clock": 1.8e9}}
    (tmp_path / "script.json").write_text(json.dumps(behaviours))
    monkeypatch.setenv(SCRIPTED, str(tmp_path / "script.json"))
    monkeypatch.setenv("PRISM_BENCH_MACHINE", "toy")
    quick = dict.fromkeys(("cold_time", "hot_time"), Criterion(min_samples=3, max_samples=3))
    short = lambda n: pair_settings(Settings(processes=n, criteria=quick), ("cold_time",))  # noqa: E731
    monkeypatch.setattr(script, "settings", short)

    def run(*more):
        words = ["both", "--backend", "null", "--catalogue", TOYS, "--label", "S0", "--same", "2", "--planted", "2"]
        where = ["--records", tmp_path, "--output", tmp_path, "--noise", tmp_path / "noise"]
        monkeypatch.setattr(sys, "argv", ["judge_noise", *(str(word) for word in [*words, *where, *more])])
        with pytest.raises(SystemExit) as ended:
            script.main()
            raise SystemExit
        return tmp_path, capsys.readouterr().out, ended.value.code

    return run


def test_measuring_leaves_records_tables_and_floors(both):
    folder, said, code = both()
    assert None is code
    counts = {name: len(store.read(folder / f"{name}.json.gz").cases) for name in ("same-a", "same-b")}
    assert {"same-a": 4, "same-b": 4} == counts
    planted = list(csv.DictReader((folder / "toy" / "planted.csv").read_text().splitlines()))
    assert "triple[n=1000]" not in [row["case"] for row in planted], "which takes less than 5 us"
    assert "planted 0.05" == store.read(folder / "planted.json.gz").catalogue
    assert set(store.read(folder / "same-a.json.gz").case("double[n=1000]").workload) == {"n"}
    assert ("double[n=1000]", "cold_time") in stored_noise("toy", folder / "noise").floors
    assert "2 processes a side of the build against itself" in said


def test_the_build_against_itself_can_be_measured_alone(both):
    folder, said, code = both("--only-same", "--pairs", "3")
    assert (None, False) == (code, (folder / "planted.json.gz").exists())
    assert 6 == len((folder / "toy" / "same.csv").read_text().splitlines()) - 1
    assert "2 processes a side of the build against itself" in said


def test_what_was_kept_before_an_error_is_judged(both, script, monkeypatch):
    def lost(*words):
        raise BackendUnavailable("the device is gone")

    monkeypatch.setattr(script, "with_slowdown", lost)
    folder, said, code = both()
    assert "judge_noise: the device is gone" == code
    assert f"planted: no records of it in {folder}" in said
    assert (folder / "toy" / "same.csv").exists()


def test_where_nothing_takes_long_nothing_is_planted(both):
    folder, said, code = both("--filter", "triple")
    assert (None, True) == (code, "0 cases planted and compiled" in said)
    assert not (folder / "planted.json.gz").exists()


def test_the_planted_comparison_alone_leaves_what_was_kept_of_the_same_build(both):
    folder, _, _ = both()
    before = {name: (folder / f"{name}.json.gz").read_bytes() for name in ("same-a", "same-b")}
    (folder / "planted.json.gz").unlink()
    _, said, code = both("--only-planted")
    assert (None, False) == (code, "of the build against itself" in said)
    assert before == {name: (folder / f"{name}.json.gz").read_bytes() for name in before}
    assert "planted 0.05" == store.read(folder / "planted.json.gz").catalogue

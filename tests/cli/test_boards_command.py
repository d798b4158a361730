"""`prism-bench trend --boards`: boards with their anchors, factors and A/A rate; what is not known is named."""

import json
import random
from math import exp

import pytest

from prism_bench.record.store import path_for, save
from tests.report.synthetic import MACHINE, case_result, record_of

RUNS = "reports/runs"
BOARDS = {"GPU-a": 0.0, "GPU-b": 0.08}
ANCHORS = {"null": "launch", "copy": "bandwidth", "read": "read_bandwidth", "fma": "fp32"}
NAMES = [*ANCHORS, *(f"own{number}" for number in range(8))]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "160")


def keep(runs, boards=BOARDS, nights=4, changes=None):
    rng = random.Random(1)
    for night in range(nights):
        for hour, (board, effect) in enumerate(boards.items()):
            session = rng.gauss(0, 0.002)
            cases = [
                case_result(name, times={"cold_time": 1e-4 * exp(effect + session + rng.gauss(0, 0.001))},
                            code={"sass": f"{name}{(changes or {}).get((board, name), '')}"}, ceiling=ANCHORS.get(name))
                for name in NAMES
            ]  # fmt: skip
            record = record_of(
                *cases, machine={**MACHINE, "uuid": board}, created=f"2026-03-{night + 1:02d}T0{hour}:00:00",
                boards=({"uuid": board, "vbios": "96.00", "power_limit": 700.0, "host": "ab12"},),
            )  # fmt: skip
            save(record, path_for(record, runs))
    return runs


def test_factors_anchors_and_the_rate_are_printed(shell, tmp_path):
    done = shell("trend", "--boards", "--runs", keep(tmp_path / RUNS))
    assert 0 == done.code, done.err
    assert "GPU-a" in done.out and "96.00" in done.out and "700 W" in done.out and "ab12" in done.out
    assert "anchors missing: tensor" in done.out
    assert "GPU-a -> GPU-b" in done.out and "1.08" in done.out
    assert "A/A over boards: 0 of 96 verdicts on one machine code call a change" in done.out
    assert "boards taken for alike: 100 %" in done.out


def test_the_same_as_json(shell, tmp_path):
    done = shell("trend", "--boards", "--runs", keep(tmp_path / RUNS), "--json")
    (kind,) = json.loads(done.out)["kinds"]
    (pair,) = kind["pairs"]
    assert (["GPU-a", "GPU-b"], True, None, 12, [4, 4]) == tuple(
        pair[name] for name in ("boards", "known", "reason", "units", "runs"))  # fmt: skip
    assert pair["low"] < exp(0.08) < pair["high"] and 1.08 == pytest.approx(pair["ratio"], abs=0.01)
    assert (96, 0, 0.0, False) == (*(kind["agreement"][name] for name in ("given", "false", "rate")), kind["broken"])
    assert {"null", "copy", "read", "FMA"} == set(kind["boards"][0]["anchors"])
    low, high = (row["anchors"]["copy"] for row in kind["boards"])
    assert 0.08 == pytest.approx(high - low, abs=0.01)
    assert ["tensor"] == kind["anchors_missing"]


def test_what_is_not_known_is_named(shell, tmp_path):
    done = shell("trend", "--boards", "--runs", keep(tmp_path / RUNS, nights=1))
    assert 0 == done.code
    assert "verdicts withheld between 1 pair of boards: no board was measured in two runs" in done.out
    done = shell("trend", "--boards", "--runs", keep(tmp_path / "one", boards={"GPU-a": 0.0}))
    assert "1 board\n" in done.out and "no machine code was measured on two of them in several runs" in done.out


def test_a_rate_above_what_is_promised_is_a_bad_finding(shell, tmp_path, monkeypatch):
    monkeypatch.setattr("prism_bench.analysis.boards.is_change", lambda *arguments: True)
    assert 1 == shell("trend", "--boards", "--runs", keep(tmp_path / RUNS)).code


def test_bad_input_is_refused(shell, tmp_path):
    done = shell("trend", "--boards", "--runs", tmp_path / "nothing")
    assert 2 == done.code and "no run record below" in done.err
    runs = keep(tmp_path / RUNS, nights=1)
    assert 2 == shell("trend", "--boards", "--runs", runs, "--metric", "cold_tim").code
    assert 2 == shell("trend", "--boards", "--runs", runs, "--machine", "other").code
    done = shell("trend", "--boards", "--runs", runs, "--metric", "cold_time", "--metric", "hot_time")
    assert 2 == done.code and "--metric hot_time: boards are compared in one metric" in done.err
    case = case_result("unknown", times={"cold_time": 1e-4})
    save(record_of(case), tmp_path / "plain/m/20260101T000000Z-a.json.gz")
    done = shell("trend", "--boards", "--runs", tmp_path / "plain")
    assert 2 == done.code and "no trusted cold_time of a known GPU and a known machine code" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ("CASES", "null"),
        ("--filter", "null"),
        ("--least", "0.1"),
        ("--noise", "floors"),
    ],
    ids=lambda words: words[0],
)
def test_options_of_steps_are_refused(shell, words):
    done = shell("trend", "--boards", *(words[1:] if words[0] == "CASES" else words))
    assert (2, "") == (done.code, done.out)
    assert f"{words[0]}: leave it out with --boards" in done.err


def test_steps_take_no_catalogue(shell):
    done = shell("trend", "--catalogue", "kernels")
    assert 2 == done.code and "only --boards reads kernels" in done.err


def test_the_former_command_names_its_replacement(shell):
    done = shell("boards")
    assert 2 == done.code and "use 'prism-bench trend --boards'" in done.err


def test_compare_divides_by_the_factor_of_the_records_below_runs(shell, tmp_path):
    runs = keep(tmp_path / RUNS)
    new = keep(tmp_path / "new", {"GPU-b": 0.08}, nights=1, changes={("GPU-b", name): "x" for name in NAMES})
    a, b = next(runs.rglob("20260301T00*.gz")), next(new.rglob("*.gz"))
    known = json.loads(shell("compare", a, b, "--runs", runs, "--json").out)
    notes = " ".join(known["notes"])
    assert "12 cases were measured on board GPU-a and on board GPU-b: divided by their factor, 1.08" in notes
    unknown = json.loads(shell("compare", a, b, "--runs", tmp_path / "nothing", "--json").out)
    assert "their factor is not known" in " ".join(unknown["notes"])
    assert {"inconclusive"} == {one["verdict"] for one in unknown["cases"]}

"""`scripts/truth`: what failed in a process that another kernel may have spoilt is done again in a fresh one."""

import csv
from types import SimpleNamespace

import pytest
from lab import emulator_truth
from lab.emulator_truth import COLUMNS, FAILED, NOT_EMULATED, NOTHING


@pytest.fixture(scope="module")
def script():
    return emulator_truth


def line(kernel, verdict):
    return {**dict.fromkeys(COLUMNS, ""), "kernel": kernel, "verdict": verdict}


def test_only_what_failed_is_done_again_alone(script, monkeypatch, tmp_path, capsys):
    found = {
        "a": "agrees",
        "b": f"{FAILED}: CUDARuntimeError: illegal",
        "c": NOTHING,
        "d": "unequal in 1 output",
        "e": NOT_EMULATED,
    }
    monkeypatch.setattr(script, "alone", lambda make, name: line(name, "agrees"))
    make = lambda name: line(name, found[name])  # noqa: E731
    lines = script.lines(SimpleNamespace(map=map), make, list(found))
    assert 2 == script.write(lines, tmp_path / "table.csv")
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert ["agrees", "agrees", NOTHING, "unequal in 1 output", NOT_EMULATED] == [row["verdict"] for row in rows]
    assert 5 == len(capsys.readouterr().out.splitlines())

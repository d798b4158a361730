"""Boards of one name: each one's outputs are compared with the first one's, in workers that see only that board."""

from pathlib import Path

import pytest

from prism_bench.backends.null import GPU
from prism_bench.catalogue import discover
from prism_bench.run import Settings
from prism_bench.workflows import bitwise
from prism_bench.workflows.bitwise import verified_on_boards

TOYS = Path(__file__).parent.parent / "toys"


def verified(boards, **settings):
    catalogue = discover(TOYS)
    cases = catalogue.cases(("double",), ("S0",))
    return verified_on_boards(catalogue, "null", cases, Settings(bitwise=True, **settings), lambda _: None, boards)


@pytest.fixture(autouse=True)
def pretended(monkeypatch):
    """The null backend pretends to run on the one board that a worker sees."""
    monkeypatch.setattr(bitwise, "VISIBLE", GPU)


def test_outputs_on_every_board_are_compared_with_those_on_the_first():
    record = verified(["GPU-1", "GPU-2", "GPU-3"])
    (case,) = (case for case in record.cases if case.label == "S0" and not case.variant)
    checks = [entry["check"] for entry in case.verification if "check" in entry]
    assert ["repeated", "configurations", "contention", "boards", "boards"] == checks
    assert [True, True] == [entry["same"] for entry in case.verification if entry.get("check") == "boards"]
    assert ["board GPU-2", "board GPU-3"] == [
        entry["against"] for entry in case.verification if entry.get("check") == "boards"
    ]
    assert record.complete and "GPU-1" == record.machine["uuid"]


def test_a_case_that_fails_on_one_board_fails(monkeypatch, tmp_path):
    script = tmp_path / "script.json"
    script.write_text("{}")
    monkeypatch.setenv("PRISM_BENCH_NULL", str(script))
    plain = bitwise.run

    def changing(*words, **more):
        record = plain(*words, **more)
        script.write_text('{"double[n=1000]": {"wrong": true}}')
        return record

    monkeypatch.setattr(bitwise, "run", changing)
    record = verified(["GPU-1", "GPU-2"])
    (case,) = (case for case in record.cases if case.name == "double[n=1000]")
    assert "wrong" == case.status
    assert case.reason.endswith("(board GPU-2)")

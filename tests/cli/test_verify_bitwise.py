"""`prism-bench verify --bitwise`."""

import re
import sys
from pathlib import Path

import pytest

from prism_bench.cli import verify
from prism_bench.report.terminal.verification import _bits_cell
from prism_bench.workflows.bitwise import equal_boards

PLANTED, TUNABLE = (Path(__file__).parent.parent / name for name in ("bits", "tunable"))


@pytest.fixture
def played(monkeypatch):
    """The null backend, which is refused because it runs no kernel, plays one that does."""
    monkeypatch.setattr(verify, "_OF_REFERENCES", ())


def test_what_nobody_promised_is_reported_and_ends_with_0(shell, toys, script, played):
    script({"double*": {"peers": {"cupy": {"skips": True}}}})
    found = shell("verify", *toys, "double", "--backend", "null", "--bitwise")
    assert 0 == found.code, found.out
    assert re.search(r"double\[n=1000\] peer:cupy +differs", found.out)
    assert "double[n=1000] peer:cupy: y[0] is nan with launch 2, else " in found.out
    assert "    unknown: the code of a library was not looked at" in found.out


def test_json_has_every_check(shell, played):
    found = shell("verify", "--catalogue", TUNABLE, "tripled", "--backend", "null", "--bitwise", "--json")
    assert 0 == found.code
    (case,) = (case for case in found.json if case["name"] == "tripled[n=1000]")
    checks = {entry["check"]: entry for entry in case["verification"] if "check" in entry}
    assert ["repeated", "configurations", "contention"] == list(checks)
    assert (True, 4) == (checks["configurations"]["same"], checks["configurations"]["launches"])
    assert (None, "only a GPU has streams") == (checks["contention"]["same"], checks["contention"]["left_out"])
    assert not [
        entry for case in found.json if case["label"] == "edge" for entry in case["verification"] if "check" in entry
    ]


def test_peers_have_a_row_each(shell, toys, script, played):
    script({"double*": {"peers": {"cupy": {}, "torch": {"raises": "no device"}}}})
    found = shell("verify", *toys, "double", "--backend", "null", "--bitwise")
    assert 0 == found.code
    assert re.search(r"double\[n=1000\] peer:cupy +4 same", found.out)
    assert re.search(r"double\[n=1000\] peer:torch +- ", found.out)


def test_a_peer_that_ends_its_process_is_left_out_and_the_kernel_is_checked(shell, toys, script, played):
    script({"double*": {"peers": {"cupy": {"crash": True}, "torch": {}}}})
    found = shell("verify", *toys, "double", "--backend", "null", "--bitwise", "--json")
    assert 0 == found.code
    (case,) = (case for case in found.json if case["name"] == "double[n=1000]")
    checks = {(entry.get("subject"), entry["check"]): entry for entry in case["verification"] if "check" in entry}
    assert "killed by signal 6" in checks["peer:cupy", "repeated"]["left_out"]
    assert checks[None, "repeated"]["same"] and checks["peer:torch", "repeated"]["same"]


@pytest.mark.parametrize("backend", ["numpy_reference", "null"])
def test_without_a_kernel_that_runs_the_command_ends_with_2(shell, toys, backend):
    found = shell("verify", *toys, "--bitwise", "--backend", backend)
    assert (2, "") == (found.code, found.out)
    assert f"prism-bench: --backend {backend}: it runs no kernel; leave it out with --bitwise\n" == found.err


def test_a_kernel_without_outputs_ends_with_2(shell, toys, played):
    found = shell("verify", *toys, "nothing", "--bitwise", "--backend", "null")
    assert 2 == found.code
    assert "--bitwise: no case with an output was right" in found.err


def test_checks_after_a_broken_promise_are_not_done():
    same = {"check": "repeated", "same": True, "passed": True, "launches": 4}
    kept, broken = {**same, "check": "order"}, {**same, "check": "order", "same": False, "passed": False}
    cells = [
        [str(_bits_cell([same, order], check)) for check in ("order", "batch", "boards")] for order in (kept, broken)
    ]
    assert [["4 same", "-", "-"], ["differs", "not done", "-"]] == cells


def test_boards_have_the_name_of_the_first(gpus):
    gpus.add(uuid="GPU-1")
    gpus.add(uuid="GPU-2", name="another")
    gpus.add(uuid="GPU-3")
    assert ["GPU-1", "GPU-3"] == equal_boards()


def test_without_nvml_there_are_no_boards(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert [] == equal_boards()


@pytest.mark.gpu
def test_a_broken_promise_on_a_gpu_ends_with_1(shell):
    found = shell(
        "verify", "--catalogue", PLANTED, "row_sums", "--bitwise", "--backend", "cuda", "--label", "S1", "--json"
    )
    assert 1 == found.code
    statuses = {case["name"].partition("[")[0]: case["status"] for case in found.json if case["label"] == "S1"}
    broken = {"row_sums:split_rows", "row_sums:tile_rows", "row_sums:neighbour"}
    assert broken == {name for name, status in statuses.items() if status == "wrong"}
    (steady,) = (case for case in found.json if case["name"].startswith("row_sums[rows=4096"))
    checks = {entry["check"] for entry in steady["verification"] if entry.get("same")}
    assert {"repeated", "batch", "contention"} <= checks

"""`python -m prism_bench.extensions.links` on the null backend: verification, detected faults, and records."""

import json
import subprocess
import sys

import pytest

from prism_bench.backends.null import SCRIPT
from prism_bench.extensions.links.__main__ import main
from prism_bench.record import store
from tests.extensions.planted_programs import record, trace

RUN = ("-b", "null", "--processes", "1", "--json")


@pytest.fixture
def links(shell, monkeypatch):
    """A function that runs the module with these words."""
    monkeypatch.setattr("tests.cli.conftest.main", main)
    return shell


@pytest.fixture
def scripted(monkeypatch, tmp_path):
    """Return a function that scripts the null backend, by pattern of a case's name."""

    def write(**behaviours):
        path = tmp_path / "script.json"
        path.write_text(json.dumps({f"{name}*": behaviour for name, behaviour in behaviours.items()}))
        monkeypatch.setenv(SCRIPT, str(path))

    return write


def rows(result):
    return {f"{row['operation']}:{row['form']}": row for row in result.json["links"]}


def test_all_operations_have_bandwidth_share_and_speedup(links, scripted, tmp_path):
    scripted(
        **{"peer_copy": {"seconds": 2e-6, "noise": 0}, "matmul_all_reduce:fused": {"seconds": 1e-6, "noise": 0},
           "matmul_all_reduce:nccl": {"seconds": 3e-6, "noise": 0}, "all_": {"seconds": 4e-6, "noise": 0}}
    )  # fmt: skip
    measured = links(*RUN, "--devices", "3", "--records", tmp_path)
    assert 0 == measured.code
    by_name = rows(measured)
    assert 7 == len(by_name) and {"ok"} == {row["status"] for row in by_name.values()}
    assert 3.0 == pytest.approx(by_name["matmul_all_reduce:fused"]["against"])
    assert by_name["matmul_all_reduce:nccl"]["against"] is None
    copy, gather = by_name["peer_copy:driver"], by_name["all_gather:nccl"]
    assert 192 * 4 / 2e-6 == pytest.approx(copy["bandwidth"]) and 1.0 == pytest.approx(copy["share"])
    assert 1 / 3 == pytest.approx(gather["share"])
    again = links("--from", tmp_path, "--json")
    assert measured.json == again.json


def test_each_fault_is_found_and_costs_one_operation(links, scripted):
    scripted(
        peer_copy={"crash": True}, all_gather={"wrong": True}, meet={"skips": True}, all_reduce={"idles": True},
        all_to_all={"fails": True},
    )  # fmt: skip
    result = links(*RUN)
    assert 1 == result.code
    by_name = {row["operation"]: row for row in result.json["links"]}
    status = {name: row["status"] for name, row in by_name.items()}
    assert ("wrong", "wrong", "wrong") == (status["all_gather"], status["meet"], status["all_reduce"])
    assert "device 1: 1 of 192 elements differ" in by_name["all_gather"]["reason"]
    assert "crashed" in {row["status"] for row in result.json["links"]}
    assert ("ok", None, "scripted to fail") == tuple(
        by_name["all_to_all"][key] for key in ("status", "seconds", "reason")
    )
    fused, chain = (row for row in result.json["links"] if row["operation"] == "matmul_all_reduce")
    assert fused["seconds"] and chain["seconds"]


def test_table_in_the_terminal(links):
    result = links("all_reduce", "-b", "null", "--processes", "1")
    assert 0 == result.code
    assert "all_reduce:nccl" in result.out and "meet" not in result.out
    assert "slowest between its events" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("all_reduc",), "unknown operation 'all_reduc'; did you mean all_reduce"),
        (("--devices", "1"), "Invalid value for '--devices'"),
        (("-l", "S9"), "unknown label 'S9'"),
    ],
)
def test_bad_input(links, arguments, message):
    result = links(*arguments, "-b", "null")
    assert 2 == result.code
    assert message in result.err


def test_a_record_of_kernels_is_refused(links, tmp_path):
    kept = store.save(record(trace()), tmp_path / "one.json.gz")
    result = links("--from", kept)
    assert 2 == result.code
    assert "one.json.gz: a record without links" in result.err


def test_it_is_a_module_and_no_command(shell):
    message = "prism-bench: 'links' is no command any more; use 'python -m prism_bench.extensions.links'\n"
    assert (2, message) == (shell("links").code, shell("links").err)
    done = subprocess.run(
        [sys.executable, "-m", "prism_bench.extensions.links", "--help"], capture_output=True, text=True
    )
    assert 0 == done.returncode
    assert "Usage: python -m prism_bench.extensions.links [OPTIONS]" in done.stdout

"""The sweep of compute-sanitizer over edges, with one that is played."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
FAKES = HOUSE / "tests" / "profilers" / "fakes"
TOYS = HOUSE / "tests" / "toys"
OUT_OF_BOUNDS = (
    "========= Invalid __global__ write of size 4 bytes\n"
    "=========     at doubled(const float *, float *, int)+0x160 in /somewhere/double.cu:6"
)


@pytest.fixture
def sanitize(tmp_path):
    """A function that runs the script on the toys: exit code, rows, findings, words."""

    def run(*words, **behaviour):
        path = tmp_path / "table.csv"
        environment = {**os.environ, "PATH": f"{FAKES}{os.pathsep}{os.environ['PATH']}",
                       "PRISM_BENCH_FAKE": json.dumps(behaviour)}  # fmt: skip
        command = [sys.executable, HOUSE / "scripts" / "sanitize", *words, "--catalogue", TOYS, "--backend", "null"]
        ended = subprocess.run([*command, "--output", path], env=environment, capture_output=True, text=True)
        rows, findings = (_rows(one) for one in (path, path.with_suffix(".findings.csv")))
        return ended.returncode, rows, findings, ended.stdout + ended.stderr

    return run


def _rows(path):
    return list(csv.DictReader(path.read_text().splitlines())) if path.is_file() else []


def test_clean_edges_end_with_0_and_a_row_per_kernel_and_check(sanitize):
    code, rows, findings, _ = sanitize("double", "--jobs", "1", "--checks", "memcheck,initcheck")
    assert (0, []) == (code, findings)
    assert {"clean"} == {row["verdict"] for row in rows}
    assert {("memcheck", "double", "3", "3"), ("initcheck", "double:by_adding", "2", "2")} <= {
        (row["check"], row["kernel"], row["cases"], row["finished"]) for row in rows
    }


def test_a_finding_ends_with_1_and_names_case_kernel_and_line(sanitize):
    code, rows, findings, words = sanitize(
        "double", "--jobs", "1", "--checks", "memcheck", says={"double[n=1]": OUT_OF_BOUNDS}
    )
    assert 1 == code
    (finding,) = findings
    assert ("double[n=1]", "double.cu:6") == (finding["case"], finding["source"])
    assert "memcheck: double[n=1]: Invalid __global__ write" in words
    assert {"double": "findings", "double:by_adding": "clean"} == {row["kernel"]: row["verdict"] for row in rows}


def test_what_the_time_does_not_suffice_for_ends_with_3_and_is_told(sanitize):
    code, rows, _, words = sanitize("triple", "--checks", "memcheck", "--limit-seconds", "-5")
    assert 3 == code
    assert ["not finished"] == [row["verdict"] for row in rows]


def test_a_tool_that_refuses_is_explained(sanitize):
    code, rows, _, words = sanitize(
        "triple", "--checks", "memcheck", refuses="========= Error: Device not supported. Please refer to ..."
    )
    assert (2, []) == (code, rows)
    assert "compute-sanitizer: it refuses this device" in words
    assert "Traceback" not in words


def test_a_process_that_cannot_be_watched_costs_its_own_rows_alone(sanitize):
    code, rows, _, words = sanitize(
        "triple", "--jobs", "1", "--checks", "memcheck,racecheck",
        refuses="========= Error: Device not supported. Please refer to ...", checks=["racecheck"],
    )  # fmt: skip
    assert 3 == code
    assert {"memcheck": "clean", "racecheck": "not finished"} == {row["check"]: row["verdict"] for row in rows}
    assert "racecheck: triple: compute-sanitizer: it refuses this device" in words

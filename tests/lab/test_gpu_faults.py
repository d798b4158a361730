"""Planted faults that a GPU stops: all are found without one, right forms pass, and the table keeps both sides."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from lab.gpu_faults import FAULTS, KINDS, TABLE, FaultRow, merged, on_gpu, planted, read_rows, without_gpu

from prism_bench.catalogue import discover
from prism_bench.compilation import nvrtc_version
from prism_bench.errors import BackendUnavailable

FAKES = Path(__file__).parents[1] / "profilers" / "fakes"
ROWS = planted(discover(FAULTS))


@pytest.fixture(scope="module")
def nvrtc():
    """Skips, saying what to install, where there is no offline compiler."""
    try:
        return nvrtc_version()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def test_ten_faults_of_each_kind_are_planted():
    assert dict.fromkeys(KINDS, 10) == {kind: sum(row.kind == kind for row in ROWS) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_is_found_and_every_right_form_passes(nvrtc, kind):
    rows = without_gpu(ROWS, [kind])
    assert [] == [row.fault for row in rows if not row.found_by]
    assert [] == [(row.fault, row.right) for row in rows if row.right != "passes"]
    if kind != "limits":
        assert {"emulator"} == {row.found_by for row in rows}
        assert [] == [row.fault for row in rows if f"[{kind}.cu:" not in row.without_gpu]
    if kind == "misaligned":
        assert [] == [row.fault for row in rows if "misaligned: " not in row.without_gpu]


def asked(monkeypatch, fault, **behaviour):
    """The row of a fault that is asked about on a device that is played, with a compute-sanitizer that is played."""
    monkeypatch.setenv("PATH", f"{FAKES}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PRISM_BENCH_FAKE", json.dumps(behaviour))
    (row,) = on_gpu([row for row in ROWS if row.fault == fault], "null", 2, 60.0)
    return row


def test_fault_that_no_launch_shows_is_found_by_a_check(monkeypatch):
    finding = (
        "========= Invalid __global__ write of size 4 bytes\n"
        "=========     at global_write<(bool)1>(const float *, float *, int)+0x160 in /somewhere/bounds.cu:17"
    )
    row = asked(monkeypatch, "global_write", says={"bounds:global_write_fault[n=64]": finding})
    assert ("memcheck", "Invalid __global__ write of size 4 bytes bounds.cu:17") == (row.gpu_found_by, row.gpu)
    assert "passes" == row.gpu_right
    assert row.is_held


def test_fault_that_nothing_shows_is_not_held(monkeypatch):
    row = asked(monkeypatch, "global_write")
    assert ("", "passes", "passes") == (row.gpu_found_by, row.gpu, row.gpu_right)
    assert not row.is_held


def test_each_side_keeps_the_answers_of_the_other():
    asked_here = FaultRow("bounds", "columns", "m", "emulator", "out of bounds", "passes")
    on_device = FaultRow("bounds", "columns", "m", gpu_found_by="memcheck", gpu="Invalid", gpu_right="passes")
    stored = {("bounds", "columns"): on_device}
    (both,) = merged([asked_here], stored, gpu=False)
    assert replace(asked_here, gpu_found_by="memcheck", gpu="Invalid", gpu_right="passes") == both
    assert [both] == merged([on_device], {("bounds", "columns"): both}, gpu=True)


def test_stored_table_has_the_planted_faults_and_each_is_held():
    stored = read_rows(TABLE)
    assert [(row.kind, row.fault, row.meaning) for row in ROWS] == [
        (row.kind, row.fault, row.meaning) for row in stored.values()
    ]
    assert [] == [row.fault for row in stored.values() if not row.is_held]

"""`prism-bench profile` of timelines: captures of nsys from files, and what it says where it cannot work."""

import json
import sqlite3
from pathlib import Path

import pytest


@pytest.fixture
def capture(tmp_path):
    """A small export of nsys."""
    path = tmp_path / "capture.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript("""
            CREATE TABLE META_DATA_EXPORT (name, value);
            INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0');
            CREATE TABLE StringIds (id, value);
            INSERT INTO StringIds VALUES (1, 'add'), (2, 'cuLaunchKernel');
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, correlationId, globalPid, shortName);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 1, 16777216, 1), (300, 400, 0, 2, 16777216, 1);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, 16777217, 1, 2), (210, 290, 16777217, 2, 2);
        """)
    database.close()
    return path


def test_kernels_by_their_time_then_gaps_and_copies(shell, capture):
    title, header, kernel, rest = shell("profile", capture).out.splitlines()
    assert title.endswith("capture.sqlite: 300 ns, busy 67 %")
    assert ["kernel", "launches", "total", "mean", "share"] == header.split()
    assert ["add", "2", "200", "ns", "100", "ns", "100", "%"] == kernel.split()
    assert "1 gap of 100 ns (launch 100 ns); no copies" == rest.strip()


def test_json_has_the_whole_and_who_is_to_blame(shell, capture):
    total = shell("profile", capture, "--json").json["total"]
    assert (2, 2) == (total["kernels"], total["launch_calls"])
    assert {"launch": {"count": 1, "seconds": pytest.approx(1e-7)}} == total["gaps"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("none.py",), "none.py: no such file"),
        (("none.sqlite",), "none.sqlite: no such file"),
        (("one.qdstrm",), "QdstrmImporter"),
    ],
)
def test_what_cannot_be_read_ends_with_2(shell, words, complaint):
    Path("one.qdstrm").write_bytes(b"x")
    found = shell("profile", *words)
    assert (2, True) == (found.code, complaint in found.err)


def test_without_cupti_it_says_what_works(shell, toys, monkeypatch):
    found = shell("profile", "double", *toys, "--backend", "null", "--tool", "cupti", "--label", "S0")
    assert 2 == found.code
    assert "CUPTI" in found.err or "cupti" in found.err
    assert "Traceback" not in found.err


def test_words_of_a_capture_are_no_markup(shell, tmp_path):
    from lab.reader_subjects import nsys_export

    path = nsys_export(tmp_path).rename(tmp_path / "odd [bold].sqlite")
    found = shell("profile", path)
    assert 0 == found.code
    assert "odd [bold].sqlite" in found.out


def test_executions_of_graphs_are_noted(shell, tmp_path):
    from lab.reader_subjects import nsys_export

    export = nsys_export(tmp_path)
    assert 1 == shell("profile", export, "--json").json["total"]["graphs"]
    assert "1 execution of graphs were traced as a whole" in shell("profile", export).out


def test_the_oracle_of_real_captures_is_met(shell, samples):
    expected = json.loads((samples / "nsys_trim_expected.json").read_text())
    for name, values in expected.items():
        found = shell("profile", samples / name, "--json").json
        assert found["total"]["kernels"] == sum(kernel["launches"] for kernel in found["kernels"])
        assert pytest.approx(values["total_kernel_ns"] * 1e-9) == sum(kernel["seconds"] for kernel in found["kernels"])
        by_name = {kernel["name"]: (kernel["launches"], kernel["seconds"]) for kernel in found["kernels"]}
        for kernel, (launches, nanoseconds) in values.get("by_kernel", {}).items():
            assert (launches, pytest.approx(nanoseconds * 1e-9)) == by_name[kernel]


def test_ranges_are_shown_with_all(shell, samples):
    path = samples / "nsys_cupy_power_iteration_t4_trim.sqlite"
    short, whole = shell("profile", path).out, shell("profile", path, "--all").out
    assert "gemv2T_kernel_val" in short.splitlines()[2], "the longest kernel first"
    assert "511 gaps of 87.4 ms (host 87.1 ms" in short
    assert "Step 0 to 10" not in short and "Step 0 to 10" in whole


def test_a_summary_of_nsys_is_shown_by_its_times(shell):
    rows = ['"Time (%)","Total Time (ns)","Instances","Avg (ns)","Name"', '"20.0","200","2","100","add(int)"']
    Path("sums.csv").write_text("\n".join([*rows, '"80.0","800","1","800","void ns::mul<4>(float*)"', ""]))
    header, *lines = (line.split() for line in shell("profile", "sums.csv").out.splitlines())
    assert ["kernel", "launches", "total", "mean", "share"] == header
    assert [
        ["mul", "1", "800", "ns", "800", "ns", "80", "%"],
        ["add", "2", "200", "ns", "100", "ns", "20", "%"],
    ] == lines
    first, _ = shell("profile", "sums.csv", "--json").json["kernels"]
    assert {"name": "void ns::mul<4>(float*)", "launches": 1, "seconds": pytest.approx(8e-7)} == first
    assert "1 more rows take 200 ns: --limit 2" in shell("profile", "sums.csv", "--limit", 1).out

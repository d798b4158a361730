"""`prism-bench pipeline`: on NumPy, from records, and its refusals."""

import pytest

from prism_bench.record import store
from tests.extensions.planted_programs import program, record, trace


def test_pipelines_on_numpy(shell, tmp_path):
    options = ("-b", "numpy_reference", "-l", "small", "--processes", "1", "--json", "--records", tmp_path)
    result = shell("pipeline", "dendritic", *options)
    assert 0 == result.code
    rows = {row["form"]: row for row in result.json["pipelines"]}
    assert {"per_call", "one_stream"} == set(rows)
    assert (6, 1) == (rows["per_call"]["moved"]["up"], rows["one_stream"]["moved"]["up"])
    assert rows["one_stream"]["latency"] > 0
    again = shell("pipeline", "--from", tmp_path, "--json")
    assert result.json["pipelines"][0]["form"] == again.json["pipelines"][0]["form"]


def test_verified_only(shell):
    result = shell("pipeline", "dendritic", "-b", "numpy_reference", "-l", "small", "streams", "--verify-only")
    assert 0 == result.code
    assert "dendritic:streams" in result.out and "yes" in result.out


def test_record_with_a_wrong_form_exits_1(shell, tmp_path):
    kept = store.save(record(program(), program(form="graph", status="wrong")), tmp_path / "one.json.gz")
    result = shell("pipeline", "--from", kept)
    assert 1 == result.code
    assert "image:graph: scripted" in result.out


def test_a_record_of_kernels_is_refused(shell, tmp_path):
    kept = store.save(record(trace()), tmp_path / "one.json.gz")
    result = shell("pipeline", "--from", kept)
    assert (2, "") == (result.code, result.out)
    assert "one.json.gz: a record without pipelines" in result.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("imag",), "unknown pipeline 'imag'; did you mean image"),
        (("dendritic", "graph"), "graphs are captured on a GPU alone"),
        (("dendritic", "-l", "S9"), "unknown label of pipeline dendritic 'S9'"),
        (("dendritic", "fast"), "unknown pipeline 'fast'"),
    ],
)
def test_impossible_requests_end_without_a_traceback(shell, arguments, reason):
    result = shell("pipeline", *arguments, "-b", "numpy_reference", "--processes", "1")
    assert result.code in (1, 2)
    assert reason in result.out + result.err
    assert "Traceback" not in result.err

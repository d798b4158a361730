"""`prism-bench pipeline`: on NumPy, from records, and what it refuses."""

import pytest

from prism_bench.record import store
from tests.extensions.planted_programs import program, record, trace


def test_pipelines_on_numpy(shell, tmp_path):
    found = shell("pipeline", "dendritic", "-b", "numpy_reference", "-l", "small", "--processes", "1", "--json",
                  "--records", tmp_path)  # fmt: skip
    assert 0 == found.code
    rows = {row["form"]: row for row in found.json["pipelines"]}
    assert {"per_call", "one_stream"} == set(rows)
    assert (6, 1) == (rows["per_call"]["moved"]["up"], rows["one_stream"]["moved"]["up"])
    assert rows["one_stream"]["latency"] > 0
    again = shell("pipeline", "--from", tmp_path, "--json")
    assert found.json["pipelines"][0]["form"] == again.json["pipelines"][0]["form"]


def test_verified_only(shell):
    found = shell("pipeline", "dendritic", "-b", "numpy_reference", "-l", "small", "--form", "streams", "--verify-only")
    assert 0 == found.code
    assert "dendritic:streams" in found.out and "yes" in found.out


def test_a_record_is_shown_and_its_wrong_form_ends_with_one(shell, tmp_path):
    kept = store.save(record(program(), program(form="graph", status="wrong")), tmp_path / "one.json.gz")
    found = shell("pipeline", "--from", kept)
    assert 1 == found.code
    assert "image:graph: scripted" in found.out


def test_a_record_of_kernels_is_refused(shell, tmp_path):
    kept = store.save(record(trace()), tmp_path / "one.json.gz")
    found = shell("pipeline", "--from", kept)
    assert (2, "") == (found.code, found.out)
    assert "one.json.gz: a record without pipelines" in found.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("imag",), "unknown pipeline 'imag'; did you mean image"),
        (("dendritic", "--form", "graph"), "graphs are captured on a GPU alone"),
        (("dendritic", "-l", "S9"), "unknown label of pipeline dendritic 'S9'"),
        (("dendritic", "--form", "fast"), "unknown form 'fast'"),
    ],
)
def test_what_cannot_be_ends_without_a_traceback(shell, words, said):
    found = shell("pipeline", *words, "-b", "numpy_reference", "--processes", "1")
    assert found.code in (1, 2)
    assert said in found.out + found.err
    assert "Traceback" not in found.err

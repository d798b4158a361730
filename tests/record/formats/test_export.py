"""Records as asv's results, which asv itself must take, and as tables."""

import ast
import json
import math
from pathlib import Path

import pandas
import pytest
from asv.results import Results

from prism_bench.errors import BackendUnavailable, ResultsError
from prism_bench.record.formats import read_foreign, tables
from prism_bench.record.formats.asv import METRICS
from prism_bench.report.asv.results import write
from tests.report.synthetic import case_result, cpu_record, gpu_record, measurement, record_of

HOUSE = Path(__file__).resolve().parents[3]


def test_asv_takes_what_is_written(tmp_path):
    record = gpu_record()
    path = write(record, tmp_path)
    found = Results.load(str(path), "nvidia-h200")
    assert record.commit == found.commit_hash
    name = "times.Cold.track_cold_time"
    cases = [case for case in record.cases if case.measurement("cold_time")]
    assert [[repr(case.name) for case in cases]] == found.get_result_params(name)
    listed = json.loads((tmp_path / "benchmarks.json").read_text())[name]
    assert found.benchmark_version[name] == listed["version"] == "1 cold_time"
    values = found.get_result_value(name, listed["params"])
    for case, value in zip(cases, values, strict=True):
        one = case.measurement("cold_time")
        assert math.isnan(value) if not one.valid else value == pandas.Series(one.samples).median()


def test_asv_sees_samples_and_their_statistics(tmp_path):
    record = record_of(case_result("k", measurements=(measurement("hot_time", 1e-3, samples=20),)))
    found = Results.load(str(write(record, tmp_path)))
    (stats,) = found.get_result_stats("times.Hot.track_hot_time", [["'k[n=100]'"]])
    (samples,) = found.get_result_samples("times.Hot.track_hot_time", [["'k[n=100]'"]])
    assert (60, 1) == (stats["repeat"], stats["number"])
    assert stats["ci_99_a"] <= stats["q_25"] <= stats["q_75"] or stats["ci_99_a"] >= stats["q_25"]
    assert sorted(record.cases[0].measurements[0].samples) == sorted(samples)


@pytest.mark.parametrize("record", [gpu_record(), cpu_record()])
def test_what_is_written_is_read_back(record, tmp_path):
    (back,) = read_foreign(write(record, tmp_path)).records
    ours = {
        (case.name, one.metric): one.samples for case in record.cases for one in case.measurements
        if one.subject == "kernel" and one.samples and one.valid and one.metric in METRICS.values()
    }  # fmt: skip
    theirs = {(case.name, one.metric): one.samples for case in back.cases for one in case.measurements}
    assert ours == theirs
    assert (record.commit, record.machine["id"], record.created) == (back.commit, back.machine["id"], back.created)


def test_cases_of_several_records_are_listed_together(tmp_path):
    for kernel in ("a", "b"):
        write(record_of(case_result(kernel, times={"cold_time": 1e-3}), commit=kernel * 40), tmp_path)
    listed = json.loads((tmp_path / "benchmarks.json").read_text())["times.Cold.track_cold_time"]
    assert [["'a[n=100]'", "'b[n=100]'"]] == listed["params"]


def test_asv_needs_a_commit(tmp_path):
    with pytest.raises(ResultsError, match="by commit"):
        write(record_of(commit=None), tmp_path)


def test_the_names_are_those_of_the_suites():
    """Read from the source: importing suites lists the whole catalogue."""
    source = ast.parse((HOUSE / "suites" / "times.py").read_text())
    tracks = {
        f"times.{suite.name}.{method.name}"
        for suite in source.body if isinstance(suite, ast.ClassDef)
        for method in suite.body if isinstance(method, ast.FunctionDef)
    }  # fmt: skip
    assert tracks == set(METRICS)
    assert all(name.endswith(f".track_{metric}") for name, metric in METRICS.items())


FRAME = pandas.DataFrame({"case": pandas.Categorical(["a", "b"]), "value": [1e-3, 2e-3]})


def test_tables_are_read_back(tmp_path):
    assert "case,value\na,0.001\nb,0.002\n" == tables.write(FRAME, tmp_path / "t.csv", "csv").read_text()
    pytest.importorskip("pyarrow")
    back = pandas.read_parquet(tables.write(FRAME, tmp_path / "t.parquet", "parquet"))
    assert FRAME["value"].tolist() == back["value"].tolist()


def test_parquet_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailable, match="pip install"):
        tables.write(FRAME, tmp_path / "t.parquet", "parquet")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for call in (lambda: tables.write(FRAME, tmp_path / "file" / "t.csv", "csv"),
                 lambda: write(record_of(case_result("k", times={"cold_time": 1e-3})), tmp_path / "file")):  # fmt: skip
        with pytest.raises(ResultsError, match="cannot write"):
            call()

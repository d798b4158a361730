"""Records as files of other tools, read as those tools read them: asv by itself, and tables."""

import ast
import json
import math
import struct
from pathlib import Path
from statistics import fmean, median, stdev

import pandas
import pytest
from asv.results import Results

from prism_bench.errors import BackendUnavailable, ResultsError
from prism_bench.record.formats import google_benchmark, nvbench, read_foreign, tables
from prism_bench.record.formats.asv import METRICS
from prism_bench.record.measurement import Measurement
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


def small_record():
    """Cases with times and clocks, with a distrusted time, without one because it failed, and only verified."""
    cold = Measurement("cold_time", "kernel", ((1e-5, 1.2e-5), (1.1e-5, 1.4e-5)), ((1.9e9, 1.9e9), (1.8e9, 1.8e9)))
    hot = Measurement("hot_time", "kernel", ((8e-6, 8.2e-6), (8.4e-6, 8.6e-6)))
    peer = Measurement("cold_time", "peer:cublas", ((9e-6,),))
    bad = Measurement("cold_time", "kernel", ((1e-9,),), valid=False, reason="its bandwidth exceeds the ceiling")
    return record_of(
        case_result("copy", measurements=(cold, hot, peer), workload={"n": 1024, "kind": "f32"},
                    name="copy:fast[n=1024,kind=f32]"),
        case_result("copy", measurements=(bad,), workload={"n": 64, "kind": "f32"}, name="copy:fast[n=64,kind=f32]"),
        case_result("sort", status="failed", reason="it does not compile", measurements=()),
        case_result("sum", label="edge", measurements=()),
    )  # fmt: skip


def samples_of(record):
    return {(case.name, time.metric): time.samples for case in record.cases for time in case.measurements}


def value_of(summaries, tag):
    """Return the value as nvbench_compare takes it."""
    summary = next(summary for summary in summaries if summary["tag"] == tag)
    value = next(value for value in summary["data"] if value["name"] == "value")
    assert "float64" == value["type"]
    return float(value["value"])


def test_nvbench_compare_finds_its_fields(tmp_path):
    """Read as `nvbench_compare.py` and `nvbench_histogram.py` do."""
    root = json.loads(nvbench.write(small_record(), tmp_path / "out.json").read_text())
    assert "1.0.0" == root["meta"]["version"]["json"]["string"]
    (device,) = root["devices"]
    assert (0, "NVIDIA H200") == (device["id"], device["name"])
    fast, sort = root["benchmarks"]
    assert (["copy:fast", "sort"], [0]) == ([fast["name"], sort["name"]], fast["devices"])
    axes = {axis["name"]: axis for axis in fast["axes"]}
    assert [("int64", ""), ("string", "")] == [(axes[name]["type"], axes[name]["flags"]) for name in ("n", "kind")]
    measured, distrusted = fast["states"]
    assert ("Device=0 n=1024 kind=f32", 0) == (measured["name"], measured["device"])
    assert 1024 == int(measured["axis_values"][0]["value"])
    times = (1e-5, 1.2e-5, 1.1e-5, 1.4e-5)
    noise = stdev(times) / fmean(times)
    assert [fmean(times), noise, median(times)] == pytest.approx(
        [value_of(measured["summaries"], f"nv/cold/time/gpu/{tag}") for tag in ("mean", "stdev/relative", "median")]
    )
    assert 8.3e-6 == pytest.approx(value_of(measured["summaries"], "nv/batch/time/gpu/mean"))
    for tag, expected in (
        ("nv/json/bin:nv/cold/sample_times", times),
        ("nv/json/freqs-bin:nv/cold/sample_freqs", (1.9e9, 1.9e9, 1.8e9, 1.8e9)),
    ):
        (fields,) = [summary["data"] for summary in measured["summaries"] if summary["tag"] == tag]
        known = {field["name"]: (field["type"], field["value"]) for field in fields}
        assert ("string", "int64") == (known["filename"][0], known["size"][0])
        content = (tmp_path / known["filename"][1]).read_bytes()
        assert expected == pytest.approx([value for (value,) in struct.iter_unpack("<f", content)])
        assert 4 == int(known["size"][1])
    assert (True, None, "its bandwidth exceeds the ceiling") == (
        distrusted["is_skipped"], distrusted["summaries"], distrusted["skip_reason"],
    )  # fmt: skip
    assert "it does not compile" == sort["states"][0]["skip_reason"]


def test_a_single_sample_has_no_noise_in_nvbench(tmp_path):
    record = record_of(case_result("k", times={"cold_time": 1e-3}, measurements=(
        Measurement("cold_time", "kernel", ((1e-3,),)),)))  # fmt: skip
    (benchmark,) = json.loads(nvbench.write(record, tmp_path / "x.json").read_text())["benchmarks"]
    (noise,) = [summary["data"][0]["value"] for summary in benchmark["states"][0]["summaries"]
                if summary["tag"] == "nv/cold/time/gpu/stdev/relative"]  # fmt: skip
    assert noise is None, "what nvbench writes for an unknown noise"


def test_compare_of_google_benchmark_finds_its_fields(tmp_path):
    """Read as `gbench/util.py` and `gbench/report.py` do: rows by name, with unit and both times."""
    root = json.loads(google_benchmark.write(small_record(), tmp_path / "out.json").read_text())
    rows = [row for row in root["benchmarks"] if row["name"] == "copy:fast[n=1024,kind=f32]/cold_time"]
    assert all(row[name] == value for row in rows for name, value in (("time_unit", "ns"), ("run_type", "iteration")))
    assert [10_000, 12_000, 11_000, 14_000] == pytest.approx([row["real_time"] for row in rows])
    assert ([0, 0, 0, 0], [0, 1, 2, 3]) == (
        [row["cpu_time"] for row in rows], [row["repetition_index"] for row in rows],
    )  # fmt: skip
    statistics = {row["aggregate_name"]: row["real_time"] for row in root["benchmarks"]
                  if row["run_type"] == "aggregate" and row["run_name"].endswith("/cold_time")}  # fmt: skip
    times = (10_000, 12_000, 11_000, 14_000)
    expected = {"mean": fmean(times), "median": median(times), "stddev": stdev(times),
                "cv": stdev(times) / fmean(times)}  # fmt: skip
    assert expected == pytest.approx(statistics)
    failed = {row["name"]: row["error_message"] for row in root["benchmarks"] if row.get("error_occurred")}
    assert {"copy:fast[n=64,kind=f32]": "its bandwidth exceeds the ceiling",
            "sort[n=100]": "it does not compile"} == failed  # fmt: skip
    assert not any("peer" in row["name"] or "sum" in row["name"] for row in root["benchmarks"])


@pytest.mark.parametrize("writer", [google_benchmark, nvbench])
def test_what_other_tools_get_is_imported_again(tmp_path, writer):
    record = small_record()
    (back,) = read_foreign(writer.write(record, tmp_path / "out.json")).records
    fast = "copy:fast[n=1024,kind=f32]"
    hot = (8e-6, 8.2e-6, 8.4e-6, 8.6e-6) if writer is google_benchmark else (8.3e-6,)
    assert {(fast, "cold_time"): (1e-5, 1.2e-5, 1.1e-5, 1.4e-5), (fast, "hot_time"): hot} == {
        key: pytest.approx(value) for key, value in samples_of(back).items()
    }
    reasons = {case.name: case.reason for case in back.cases if case.status != "ok"}
    assert {"copy:fast[n=64,kind=f32]": "its bandwidth exceeds the ceiling",
            "sort[n=100]": "it does not compile"} == reasons  # fmt: skip
    if writer is google_benchmark:
        assert (record.commit, record.created, record.machine["id"]) == (back.commit, back.created, back.machine["id"])


def test_every_time_of_a_run_goes_to_google_benchmark_and_back(tmp_path):
    record = gpu_record()
    (back,) = read_foreign(google_benchmark.write(record, tmp_path / "out.json")).records
    ours = {
        (case.name, time.metric): pytest.approx(time.samples) for case in record.cases for time in case.measurements
        if time.subject == "kernel" and time.samples and time.valid
    }  # fmt: skip
    assert ours == samples_of(back)


@pytest.mark.parametrize("writer", [google_benchmark, nvbench])
def test_a_record_without_a_time_is_refused_and_nothing_written(tmp_path, writer):
    with pytest.raises(ResultsError, match="no trusted"):
        writer.write(record_of(case_result("k", status="failed", measurements=())), tmp_path / "x.json")
    assert [] == list(tmp_path.iterdir())


def test_another_record_of_the_same_name_leaves_no_foreign_samples(tmp_path):
    path = tmp_path / "out.json"
    for seconds in (1e-3, 2e-3):
        time = Measurement("cold_time", "kernel", ((seconds,) * 5,))
        nvbench.write(record_of(case_result("k", measurements=(time,))), path)
        assert {("k[n=100]", "cold_time"): pytest.approx((seconds,) * 5)} == samples_of(read_foreign(path).records[0])


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
                 lambda: write(record_of(case_result("k", times={"cold_time": 1e-3})), tmp_path / "file"),
                 lambda: nvbench.write(small_record(), tmp_path / "file" / "x.json"),
                 lambda: google_benchmark.write(small_record(), tmp_path / "file" / "x.json")):  # fmt: skip
        with pytest.raises(ResultsError, match="cannot write"):
            call()

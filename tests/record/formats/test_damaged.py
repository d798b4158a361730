"""Damaged and hostile files of other tools: each is refused by its place, or read without a wrong number."""

import json
import os
import re
from dataclasses import replace

import pytest

from prism_bench.errors import ResultsError
from prism_bench.record.formats import read_foreign
from prism_bench.report.asv.results import write
from tests.record.formats.results import (
    BENCHMARKS,
    ROWS,
    asv,
    axes,
    google_benchmark,
    nvbench,
    repetition,
    summary,
    written,
)
from tests.report.synthetic import case_result, record_of


def refused(path, words):
    """Whether the file is refused, or the row left out: by its place, in one line."""
    try:
        reasons = read_foreign(path).left_out
    except ResultsError as error:
        reasons = (str(error),)
    (reason,) = [reason for reason in reasons if re.search(words, reason)]
    assert reason.startswith(str(path.parent))
    assert "\n" not in reason


OUTSIDE = ("/etc/hostname", "../outside.bin", "out.json-bin/../../outside.bin", "", 5, None, "a\0b")


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_file_beside_nvbenchs_json_is_in_its_folder(tmp_path, name):
    folder = tmp_path / "results"
    path = nvbench(folder)
    (tmp_path / "outside.bin").write_bytes(bytes(12))
    plain = json.loads(path.read_text())
    plain["benchmarks"][0]["states"][0]["summaries"][0]["data"][0]["value"] = name
    refused(written(path, plain), "filename")


def test_a_link_out_of_the_folder_is_no_file_in_it(tmp_path):
    path = nvbench(tmp_path / "results")
    (tmp_path / "outside.bin").write_bytes(bytes(12))
    inside = tmp_path / "results" / "out.json-bin" / "0.bin"
    inside.unlink()
    os.symlink(tmp_path / "outside.bin", inside)
    refused(path, "filename")


def state(**changes):
    mean = summary("nv/cold/time/gpu/mean", value="2.5e-05")
    return {"device": 0, "axis_values": axes(n="1"), "summaries": [mean], "is_skipped": False, **changes}


NVBENCH = {
    "a device that is not there": ([state(device=7)], "device 7 is none of the file's"),
    "no device": ([{"axis_values": []}], "'device' is missing"),
    "one state twice": ([state(), state()], "is there 2 times, and nothing in the file"),
    "one axis twice": ([state(axis_values=axes(n="1") * 2)], "'n' is there twice"),
    "a tag twice": ([state(summaries=[summary("nv/cold/time/gpu/mean", value="1")] * 2)], "is there twice"),
    "an underscore": ([state(summaries=[summary("nv/cold/time/gpu/mean", value="2_5e-5")])], "not a number"),
    "a truth": ([state(summaries=[summary("nv/cold/time/gpu/mean", value=True)])], "not a number"),
    "a skip in words": ([state(is_skipped="no")], "not true or false"),
}


@pytest.mark.parametrize("name", NVBENCH)
def test_damaged_states_of_nvbench_are_named(tmp_path, name):
    states, words = NVBENCH[name]
    refused(nvbench(tmp_path, benchmarks=[{"name": "copy", "states": states}]), words)


ASV = {
    "our own benchmark without its case": ({"times.Cold.track_cold_time": [[1e-3], [], "1"]}, "0 parameters; our own"),
    "more results than parameters": ({"sorting.time_sort": [[1.0, 2.0], [["1"], ["2"]], "aa"]}, "2 of 'result' for 1"),
    "a row that is no list": ({"sorting.time_sort": "fast"}, "not a list of at most"),
    "a huge product": ({"sorting.time_sort": [None, [list(range(1000))] * 5, "aa"]}, "combinations of parameters"),
    "a start beyond all years": ({"sorting.time_sort": [[1.0], [["1"], ["2"]], "aa", 10**40]}, "not a time in milli"),
    "a start in words": ({"sorting.time_sort": [[1.0], [["1"], ["2"]], "aa", "today"]}, "not a time in milliseconds"),
    "a result that is true": ({"sorting.time_sort": [[True], [["1"], ["2"]], "aa"]}, "not a number of seconds"),
    "a parameter twice": ({"sorting.time_sort": [[1.0, 2.0], [["1", "1"], ["2"]], "aa"]}, "one value twice"),
}


@pytest.mark.parametrize("name", ASV)
def test_damaged_rows_of_asv_are_named(tmp_path, name):
    rows, words = ASV[name]
    refused(asv(tmp_path, rows=rows), words)


@pytest.mark.parametrize("listed", [[1], {"sorting.time_sort": 5}, {**BENCHMARKS, "sorting.time_sort": {
    "unit": "seconds", "param_names": 3, "version": "aa"}}])  # fmt: skip
def test_a_damaged_list_of_benchmarks_is_named(tmp_path, listed):
    path = asv(tmp_path, rows={"sorting.time_sort": ROWS["sorting.time_sort"]})
    written(tmp_path / "benchmarks.json", listed)
    with pytest.raises(ResultsError, match=r"benchmarks\.json"):
        read_foreign(path)


def test_a_parameter_that_no_parser_likes_is_its_text(tmp_path):
    deep = "(" * 1500
    rows = {"sorting.time_sort": [[1.0, 2.0, 3.0], [[deep, "'\\d'", deep * 2], ["2"]], "aa"]}
    found = read_foreign(asv(tmp_path, rows=rows))
    assert [deep, "\\d"] == [case.workload["n"] for case in found.records[0].cases]
    assert "longer" in found.left_out[0] or "length" in found.left_out[0], "no record has so long a name"


def test_a_field_that_is_there_twice_is_refused(tmp_path):
    path = google_benchmark(tmp_path, repetition("BM", 1.0))
    path.write_text(path.read_text().replace('"real_time": 1.0', '"real_time": 1.0, "real_time": 2.0'))
    refused(path, "'real_time' is there twice")


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"run_type": "other"}, "run_type"), ({"time_unit": []}, "time_unit"), ({"run_name": 5}, "run_name"),
     ({"real_time": True}, "real_time"), ({"run_type": "aggregate", "aggregate_name": "cv"}, "no repetition")],
)  # fmt: skip
def test_damaged_rows_of_google_benchmark_are_named(tmp_path, changes, words):
    refused(google_benchmark(tmp_path, {**repetition("BM", 1.0), **changes}), words)


def test_an_existing_machine_of_asv_stays(tmp_path):
    record = record_of(case_result("k", times={"cold_time": 1e-3}))
    path = write(record, tmp_path)
    own = path.parent / "machine.json"
    own.write_text('{"machine": "mine", "ram": "2 TB", "version": 1}')
    write(record, tmp_path)
    assert "2 TB" in own.read_text()


@pytest.mark.parametrize("content", ["", "[]", '{"version": 1}', '{"version": 2, "times.Cold.track_cold_time": 5}',
    '{"version": 2, "times.Cold.track_cold_time": {"params": []}}', '{"version": 2, "times.Cold.track_cold_time": {}}',
    '{"version": 2, "times.Cold.track_cold_time": {"params": [[5]]}}'])  # fmt: skip
def test_a_damaged_list_of_benchmarks_is_not_written_over(tmp_path, content):
    (tmp_path / "benchmarks.json").write_text(content)
    with pytest.raises(ResultsError, match=r"benchmarks\.json: "):
        write(record_of(case_result("k", times={"cold_time": 1e-3})), tmp_path)
    assert content == (tmp_path / "benchmarks.json").read_text()


def test_names_of_machine_and_commit_stay_in_the_folder(tmp_path):
    record = record_of(case_result("k", times={"cold_time": 1e-3}), commit="../../x")
    moved = replace(record, machine={**record.machine, "id": "../../outside"})
    path = write(moved, tmp_path / "results")
    assert (tmp_path / "results").resolve() in path.resolve().parents

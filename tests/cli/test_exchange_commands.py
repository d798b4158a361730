"""`prism-bench import` and `export`: other tools' results in and out of the store."""

import json
import os
from pathlib import Path

import pandas
import pytest

from prism_bench.record import store
from tests.record.formats.results import (
    asv,
    command,
    google_benchmark,
    hyperfine,
    launch,
    nvbench,
    pytest_benchmark,
    repetition,
    timed_test,
    trace,
)
from tests.report.synthetic import case_result, cpu_record, gpu_record, record_of

RUNS = Path("reports/runs")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))


def kept(record):
    return store.save(record, store.path_for(record, RUNS))


def test_results_of_all_tools_become_records(shell, tmp_path):
    paths = [nvbench(tmp_path / "n"), google_benchmark(tmp_path / "g", repetition("BM", 1.0)), asv(tmp_path / "a")]
    found = shell("import", *paths)
    assert (0, 3) == (found.code, found.out.count("record: reports/runs/"))
    assert "sorting.peakmem_sort is left out" in found.err
    backends = {store.read(path).backend for path in store.records_in(RUNS)}
    assert {"nvbench", "google-benchmark", "asv"} == backends
    for path in store.records_in(RUNS):
        assert 0 == shell("show", path).code


def test_results_of_tools_of_the_cpu_and_traces_become_records(shell, tmp_path):
    paths = [pytest_benchmark(tmp_path, timed_test()), hyperfine(tmp_path, command()), trace(tmp_path, launch())]
    found = shell("import", *paths)
    assert (0, 3) == (found.code, found.out.count("record: reports/runs/"))
    assert "a file names no machine" in found.err, "hyperfine's"
    backends = {store.read(path).backend for path in store.records_in(RUNS)}
    assert {"pytest-benchmark", "hyperfine", "torch-profiler"} == backends
    facts = ("--machine", "host-7", "--created", "2026-11-20", "--commit", "0123456789abcdef")
    found = shell("import", paths[1], *facts, "--format", "hyperfine")
    assert (0, "") == (found.code, found.err)
    assert 2 == shell("import", paths[0], *facts).code, "the file has its own"


@pytest.mark.parametrize("kind", ["nvbench", "google-benchmark"])
def test_a_record_goes_to_another_tool_and_comes_back(shell, kind):
    record = gpu_record()
    kept(record)
    found = shell("export", "--format", kind, "--output", "out.json", "--filter", "softmax")
    assert (0, "written: out.json\n") == (found.code, found.out)
    assert 0 == shell("import", "out.json", "--runs", "back").code
    (back,) = (store.read(path) for path in store.records_in(Path("back")))
    for case in back.cases:
        ours = record.case(case.name)
        for time in case.measurements:
            assert len(ours.measurement(time.metric).samples) == len(time.samples) or time.metric == "hot_time"
    assert {"softmax[rows=32768,cols=4096]"} <= {case.name for case in back.cases}
    assert "matmul" not in {case.kernel for case in back.cases}


def test_nvbench_gets_no_times_of_a_cpu(shell):
    kept(cpu_record())
    found = shell("export", "--format", "nvbench", "--output", "out.json")
    assert (2, False) == (found.code, Path("out.json").exists())
    assert "no trusted cold or hot time" in found.err


def test_the_same_file_twice_is_one_record_and_another_one_has_its_own_place(shell, tmp_path):
    first = google_benchmark(tmp_path / "a", repetition("BM_one", 1.0))
    other = google_benchmark(tmp_path / "b", repetition("BM_two", 1.0))
    for path in (first, first, other):
        assert 0 == shell("import", path).code
    assert 2 == len(store.records_in(RUNS))


def test_two_files_of_one_second_are_two_records(shell, tmp_path):
    paths = [nvbench(tmp_path / name) for name in "ab"]
    plain = json.loads(paths[1].read_text().replace("2.5e-05", "5.0e-05"))
    paths[1].write_text(json.dumps(plain))
    for path in paths:
        os.utime(path, (1_763_700_000, 1_763_700_000))
    found = shell("import", *paths, "--json").json["records"]
    assert (2, 2) == (len(set(found)), len(store.records_in(RUNS)))
    assert found == shell("import", *paths, "--json").json["records"]
    assert 2 == len(store.records_in(RUNS))


def test_cases_of_one_benchmark_are_shown_by_their_axes(shell, tmp_path):
    path = google_benchmark(tmp_path, repetition("BM_D/k:1/k:2", 9.0), repetition("BM_D/k:3/k:2", 5.0))
    shell("import", path)
    lines = [line.split() for line in shell("show").out.splitlines() if line.startswith("BM_D")]
    assert [["BM_D", "k=1,k_2=2"], ["BM_D", "k=3,k_2=2"]] == [words[:2] for words in lines]


def test_a_copy_of_a_file_without_a_time_is_the_same_record(shell, tmp_path):
    path = nvbench(tmp_path)
    first = shell("import", path)
    os.utime(path, (1_763_700_000, 1_763_700_000))
    assert (0, first.out) == (0, shell("import", path).out)
    assert 1 == len(store.records_in(RUNS))
    assert "a file does not say when it was measured: a record of it enters no trend without --created" in first.err


def test_a_guessed_time_enters_no_trend(shell, tmp_path):
    for day in range(1, 4):
        path = nvbench(tmp_path / str(day), meta={"version": {"nvbench": {"string": f"0.{day}"}}})
        os.utime(path, (1_763_700_000 + day, 1_763_700_000 + day))
        assert 0 == shell("import", path).code
    found = shell("trend", "--json").json
    assert {"imported without --created, and its file does not have it": 9} == found["set_aside"]
    stated = shell(
        "import", path, "--created", "2026-11-20T10:00:00+01:00", "--commit", "f" * 40, "--machine", "host-7"
    )
    assert (0, "record: reports/runs/host-7/20261120T090000Z-ffffffff.json.gz\n") == (stated.code, stated.out)
    assert 9 == sum(shell("trend", "--json").json["set_aside"].values())


@pytest.mark.parametrize(
    ("words", "reason"),
    [(("--created", "yesterday"), "--created: 'yesterday' is no time of ISO 8601"),
     (("--commit", "main"), "--commit 'main': it must be a hash"), (("--machine", "--"), "--machine '--': it must be")],
)  # fmt: skip
def test_a_stated_fact_that_is_no_fact_is_refused(shell, tmp_path, words, reason):
    found = shell("import", nvbench(tmp_path), f"{words[0]}={words[1]}")
    assert (2, True, []) == (found.code, reason in found.err, store.records_in(RUNS))


def test_where_nothing_comes_in_the_reasons_are_printed(shell, tmp_path):
    empty = asv(tmp_path / "a", rows={"sorting.peakmem_sort": [1e6, [], "bb"]})
    found = shell("import", empty, tmp_path / "a", google_benchmark(tmp_path / "g", repetition("BM", 1.0)))
    assert (2, 1) == (found.code, found.out.count("record: "))
    reason = "sorting.peakmem_sort is left out: its unit is bytes"
    assert [f"{empty}: nothing can be imported: {reason}", reason] == found.err.splitlines()
    found = shell("import", tmp_path / "a")
    assert (2, reason) == (found.code, found.err.splitlines()[0])


def test_one_file_named_twice_is_told_once(shell, tmp_path):
    path = nvbench(tmp_path)
    assert 1 == len(shell("import", path, path, "--json").json["records"])


def test_a_file_that_cannot_be_read_ends_with_two_and_harms_no_other(shell, tmp_path):
    (tmp_path / "broken.json").write_text('{"devices"')
    found = shell("import", tmp_path / "broken.json", nvbench(tmp_path / "n"))
    assert (2, 1) == (found.code, len(store.records_in(RUNS)))
    assert found.err.startswith(f"{tmp_path}/broken.json: not readable JSON")


def test_programs_learn_where_the_records_are(shell, tmp_path):
    found = shell("import", asv(tmp_path), "--json").json
    assert ["sorting.peakmem_sort is left out: its unit is bytes"] == found["left_out"]
    assert [str(path) for path in store.records_in(RUNS)] == found["records"]


def test_a_format_that_is_unknown_is_told(shell, tmp_path):
    found = shell("import", nvbench(tmp_path), "--format", "nvbnch")
    assert (2, True) == (found.code, "unknown format 'nvbnch'; did you mean nvbench" in found.err)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_record_becomes_a_table_of_samples(shell, kind):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    record = gpu_record()
    kept(record)
    found = shell("export", "--output", f"samples.{kind}")
    assert (0, f"written: samples.{kind}\n") == (found.code, found.out)
    frame = {"csv": pandas.read_csv, "parquet": pandas.read_parquet}[kind](f"samples.{kind}")
    assert sum(len(one.samples) for case in record.cases for one in case.measurements) == len(frame)
    assert ({"nvidia-h200"}, {record.commit}) == (set(frame["machine"]), set(frame["commit"]))


def test_all_records_become_one_table_of_medians(shell):
    kept(cpu_record())
    kept(record_of(case_result("k", times={"cold_time": 1e-3})))
    broken = kept(record_of(case_result("k"), created="2026-01-01T00:00:00"))
    broken.write_bytes(b"{")
    found = shell("export", "--all", "--output", "all.csv")
    frame = pandas.read_csv("all.csv")
    assert {"laptop", "nvidia-h200"} == set(frame["machine"])
    assert [1e-3] == pytest.approx(frame.loc[frame["case"] == "k[n=100]", "value"].tolist())
    assert broken.name in found.err


def test_records_become_results_of_asv(shell):
    kept(gpu_record())
    kept(cpu_record(commit="f" * 40))
    kept(record_of(case_result("k"), commit=None, created="2026-01-01T00:00:00"))
    found = shell("export", "--all", "--format", "asv", "--output", "asv", "--json")
    assert (0, 2) == (found.code, len(found.json["written"]))
    assert "by commit" in found.err
    assert 2 == json.loads(Path(found.json["written"][0]).read_text())["version"]


def test_trend_reads_imported_results_of_asv(shell, tmp_path):
    for index in range(30):
        rows = {
            "sorting.time_sort": [
                [1.0 + (index >= 20) / 5],
                [["1"], ["'heap'"]],
                "aa",
                1763700000000 + 864 * 10**5 * index,
            ]
        }
        asv(tmp_path / "asv", commit=f"{index:02d}23456789abcdef", rows=rows)
    assert 0 == shell("import", tmp_path / "asv").code
    found = shell("trend", "--json")
    (step,) = found.json["steps"]
    assert ("sorting.time_sort[n=1,kind=heap]", pytest.approx(1.2)) == (step["key"]["case"], step["ratio"])
    assert (1, "sources") == (found.code, step["cause"]["kind"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "where to?"),
        (("--output", "x.xlsx"), "unknown format 'xlsx'"),
        (("x.json.gz", "--all", "--output", "x.csv"), "leave out the record's name"),
        (("x.json.gz", "--output", "x.csv"), "x.json.gz: no such record"),
        (("--output", "x.csv"), "no run record below reports/runs"),
        (("--output", "x.json", "--format", "nvbench", "--all"), "a file of nvbench holds one record"),
        (("--output", "x.json"), "unknown format 'json'"),
    ],
)
def test_mistakes_are_told(shell, words, said):
    found = shell("export", *words)
    assert 2 == found.code
    assert said in found.err
    assert "Traceback" not in found.err

"""Results of other tools as records: what they measured, with its reasons, and refusals that name the place."""

import json

import pytest

from prism_bench.errors import ResultsError, UsageError
from prism_bench.record import store
from prism_bench.record.formats import read_foreign
from prism_bench.record.run_record import decode, encode
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


def one(path, **options):
    (record,) = read_foreign(path, **options).records
    return record


def times(record):
    """(case, metric) -> samples."""
    return {(case.name, time.metric): time.samples for case in record.cases for time in case.measurements}


def test_nvbench_gives_its_samples_clocks_batches_and_reasons(tmp_path):
    record = one(nvbench(tmp_path))
    assert ("nvbench", "nvidia-h200", "NVIDIA H200", 132) == (
        record.backend, record.machine["id"], record.machine["device"], record.machine["sm_count"],
    )  # fmt: skip
    first, second, third = record.cases
    assert pytest.approx((1e-5, 2e-5, 4e-5)) == first.measurement("cold_time").samples
    assert pytest.approx(1.98e9) == first.measurement("cold_time").clock
    assert (1.5e-5,) == first.measurement("hot_time").samples
    assert ((2.5e-5,), ("one number: nv/cold/time/gpu/mean",)) == (
        second.measurement("cold_time").samples, second.measurement("cold_time").notes,
    )  # fmt: skip
    assert ("copy[n=4096,T=F32]", "skipped", "too large") == (third.name, third.status, third.reason)


def test_nothing_was_promised_for_what_another_tool_measured(tmp_path):
    from prism_bench.analysis.gate.budgets import Promises, promises_for
    from prism_bench.catalogue import Catalogue

    record = one(nvbench(tmp_path))
    assert record.imported
    assert Promises() == promises_for(record, Catalogue(tmp_path, {}))


def test_nvbench_without_its_sample_files_gives_the_mean(tmp_path):
    path = nvbench(tmp_path)
    (tmp_path / "out.json-bin" / "0.bin").unlink()
    assert (2.5e-5,) == one(path).cases[0].measurement("cold_time").samples


def test_google_benchmark_gives_one_sample_per_repetition(tmp_path):
    rows = [repetition("BM_sort/n:1024/8", time, index) for index, time in enumerate((10.0, 12.0, 11.0))]
    median = repetition("BM_sort/n:1024/8", 11.0, run_type="aggregate", aggregate_name="median")
    record = one(google_benchmark(tmp_path, *rows, median))
    assert ("google-benchmark", "bench-1", "2026-11-20T09:00:00") == (
        record.backend, record.machine["id"], record.created,
    )  # fmt: skip
    assert {("BM_sort[n=1024,arg1=8]", "wall_time"): pytest.approx((1e-5, 1.2e-5, 1.1e-5))} == times(record)


def test_google_benchmark_with_aggregates_only_gives_the_median(tmp_path):
    rows = [repetition("BM", value, run_type="aggregate", aggregate_name=name, time_unit="ns")
            for name, value in (("mean", 12.0), ("median", 11.0), ("stddev", 1.0))]  # fmt: skip
    assert {("BM[]", "wall_time"): pytest.approx((1.1e-8,))} == times(one(google_benchmark(tmp_path, *rows)))


def test_what_google_benchmark_could_not_run_has_failed(tmp_path):
    row = repetition("BM", 0.0, error_occurred=True, error_message="no device")
    (case,) = one(google_benchmark(tmp_path, row)).cases
    assert ("failed", "no device", ()) == (case.status, case.reason, case.measurements)


def test_a_debug_build_is_noted(tmp_path):
    record = one(google_benchmark(tmp_path, repetition("BM", 1.0), library_build_type="debug"))
    assert ("built for debugging",) == record.cases[0].measurements[0].notes


def test_asv_gives_our_own_cases_back_and_others_as_wall_times(tmp_path):
    found = read_foreign(asv(tmp_path))
    (record,) = found.records
    assert ("asv", "bench-1", "0123456789abcdef", "2025-11-21T04:40:00") == (
        record.backend, record.machine["id"], record.commit, record.created,
    )  # fmt: skip
    assert {"python": "3.12", "env_name": "existing-py", "numpy": "2.4"} == record.software
    assert "2025-11-20T00:53:20" == record.committed
    assert {
        ("k[n=1]", "cold_time"): (1e-3, 1.1e-3, 9e-4),
        ("sorting.time_sort[n=100,kind=quick]", "wall_time"): (0.5,),
        ("sorting.time_sort[n=100,kind=heap]", "wall_time"): (0.7,),
    } == times(record)
    assert ("failed", "asv could not measure it") == (record.case("gone[n=2]").status, record.case("gone[n=2]").reason)
    assert ("k", "fast", ()) == tuple(
        getattr(record.case("k:fast[n=1]"), f) for f in ("kernel", "variant", "measurements")
    )
    assert ("sorting.peakmem_sort is left out: its unit is bytes",) == found.left_out


def test_another_version_of_an_asv_benchmark_is_another_case(tmp_path):
    rows = {"sorting.time_sort": [[0.5], [["100"]], "cccccccccccc"]}
    listed = {**BENCHMARKS, "sorting.time_sort": {**BENCHMARKS["sorting.time_sort"], "param_names": ["n"]}}
    path = asv(tmp_path, rows=rows)
    written(tmp_path / "benchmarks.json", listed)
    assert ["sorting.time_sort@cccccccc[n=100]"] == [case.name for case in one(path).cases]


def test_without_a_start_the_commits_date_is_the_records(tmp_path):
    path = asv(tmp_path, rows={"sorting.time_sort": [[0.5], [["100"], ["'heap'"]], "aa"]})
    assert "2025-11-20T00:53:20" == one(path).created


def test_a_folder_of_asv_is_read_and_a_broken_file_harms_no_other(tmp_path):
    asv(tmp_path)
    broken = asv(tmp_path, commit="fedcba9876543210")
    broken.write_text(broken.read_text()[:200])
    strange = asv(tmp_path, commit="1111111111111111", result_columns=None)
    written(tmp_path / "bench-1" / "machine.json", {"machine": "bench-1", "version": 1})
    found = read_foreign(tmp_path)
    assert ["0123456789abcdef"] == [record.commit for record in found.records]
    for path in (broken, strange):
        assert any(reason.startswith(f"{path}: ") for reason in found.left_out)


@pytest.mark.parametrize("make", [asv, nvbench, lambda folder: google_benchmark(folder, repetition("BM", 1.0))])
def test_an_imported_record_is_a_record_like_any_other(tmp_path, make):
    record = one(make(tmp_path))
    plain = json.loads(json.dumps(encode(record)))
    assert (
        encode(record) == encode(decode(plain, "here")) or times(record).keys() == times(decode(plain, "here")).keys()
    )
    saved = store.save(record, store.path_for(record, tmp_path / "runs"))
    assert len(store.load(saved)) == sum(len(samples) for samples in times(record).values())


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), 1e-9])
def test_a_repetition_without_a_possible_time_costs_itself(tmp_path, value):
    found = read_foreign(google_benchmark(tmp_path, repetition("BM", 1.0), repetition("BM", value, 1)))
    (time,) = found.records[0].cases[0].measurements
    assert (True, (1e-6,)) == (time.valid, time.samples)
    assert found.left_out[0].endswith("BM: 1 of 2 repetitions are left out: no time above zero")


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), 1e-9])
def test_a_case_without_a_possible_time_is_never_ok(tmp_path, value):
    (case,) = one(google_benchmark(tmp_path, repetition("BM", value))).cases
    assert ("failed", ()) == (case.status, case.measurements)
    assert "no times above zero" in case.reason


UNITS = {
    "s": 0.5, "seconds": 0.5, "ms": 5e-4, "us": 5e-7, "ns": 5e-10, "GB/s": 2.0, "items / ms": 2e-3,
    "ops per second": 2.0, "TFLOPS": 2.0,
}  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_units_of_time_and_rates_of_asv_come_in(tmp_path, unit):
    path = asv(tmp_path, rows={"track.track_it": [[0.5], [], "aa"]})
    written(tmp_path / "benchmarks.json", {"version": 2, "track.track_it": {"unit": unit, "param_names": []}})
    (case,) = one(path).cases
    assert ("ok", pytest.approx((UNITS[unit],))) == (case.status, case.measurements[0].samples)
    is_rate = "/" in unit or "per" in unit or "FLOPS" in unit
    assert ((f"one over a rate in {unit}",) if is_rate else ()) == case.measurements[0].notes


def test_what_asv_skipped_is_skipped_and_not_ok(tmp_path):
    record = one(asv(tmp_path, rows={"sorting.time_sort": [[float("nan"), None], [["1"], ["2", "3"]], "aa"]}))
    assert ["skipped", "failed"] == [case.status for case in record.cases]
    assert "its setup skipped it" in record.cases[0].reason


def test_fits_of_complexity_are_left_out(tmp_path):
    fits = [{"name": f"BM_{name}", "run_name": "BM", "run_type": "aggregate", "aggregate_name": name, **values}
            for name, values in (("BigO", {"real_coefficient": 1.0, "big_o": "N"}), ("RMS", {"rms": 0.1}))]  # fmt: skip
    found = read_foreign(google_benchmark(tmp_path, repetition("BM/1", 1.0), repetition("BM/8", 8.0), *fits))
    assert ["BM[arg0=1]", "BM[arg0=8]"] == [case.name for case in found.records[0].cases]
    assert 2 == len([reason for reason in found.left_out if "fit of complexity" in reason])


def test_what_google_benchmark_skipped_is_skipped(tmp_path):
    row = repetition("BM", 0.0, skipped=True, skip_message="no such device", iterations=0)
    (case,) = one(google_benchmark(tmp_path, row)).cases
    assert ("skipped", "no such device", ()) == (case.status, case.reason, case.measurements)


def test_times_of_the_cpu_in_nvbench_are_wall_times(tmp_path):
    tags = {"nv/cpu_only/time/cpu/mean": "0.002", "nv/cpu_only/time/cpu/median": "0.0019"}
    known = [summary(tag, value=value) for tag, value in tags.items()]
    states = [{"device": device, "axis_values": axes(n=n), "summaries": tagged}
              for device, n, tagged in ((0, "1", known), (0, "2", []), (0, "3", None), (None, "4", known))]  # fmt: skip
    found = read_foreign(nvbench(tmp_path, benchmarks=[{"name": "host", "states": states}]))
    gpu, cpu = found.records
    assert [("ok", "wall_time", (0.0019,))] == [
        (case.status, time.metric, time.samples) for case in gpu.cases for time in case.measurements
    ]
    assert ["the file has no time of it"] * 2 == [case.reason for case in gpu.cases if case.status == "failed"]
    assert (["host[n=4]"], ("created", "machine")) == ([case.name for case in cpu.cases], cpu.guessed)


def test_what_kernelbench_did_not_time_is_verified_on_the_files_machine(tmp_path):
    facts = {"sample_id": 0, "compiled": True, "correctness": True, "metadata": {"hardware": "NVIDIA H100"}}
    failed = {"compiled": False, "correctness": False, "metadata": {"compilation_error": "nvcc: x"}, "runtime": -1.0}
    data = {"1": [{**facts, "runtime": -1.0, "runtime_stats": {}}], "2": [failed], "3": "lost", "4": [
        {**facts, "runtime": 0.5, "runtime_stats": {"mean": 0.5}}, {**facts, "correctness": False, "sample_id": 1}],
        "5": [{**facts, "runtime_stats": {"mean": 0.0}}]}  # fmt: skip
    path = written(tmp_path / "eval.json", data)
    found = read_foreign(path)
    (record,) = found.records
    assert "nvidia-h100" == record.machine["id"]
    assert ["ok", "failed", "ok", "wrong", "ok"] == [case.status for case in record.cases]
    assert [({"passed": True},), (), ({"passed": True},), (), ({"passed": True},)] == [
        case.verification for case in record.cases
    ]
    assert [0, 0, 1, 0, 0] == [len(case.measurements) for case in record.cases]
    assert "KernelBench could not compile it: nvcc: x" == record.cases[1].reason
    assert [f"{path}: 3[0]: 'lost', no evaluation with 'correctness'"] == list(found.left_out)


ODD = {
    "google-benchmark": lambda folder: google_benchmark(
        folder, repetition("A", 1.0), 7, repetition("B", "fast"), repetition("C", 1.0, time_unit="fortnights"),
        {"real_time": 1.0}, repetition("D", 1.0, family_index=[]),
    ),
    "asv": lambda folder: asv(folder, rows={
        "sorting.time_sort": [[1.0, "fast"], [["1"], ["2", "3"]], "aa"], "times.Cold.track_cold_time": "fast",
        "sorting.peakmem_sort": [1e6, [], "bb"],
    }),
    "nvbench": lambda folder: nvbench(folder, benchmarks=[7, {"name": "copy", "states": [
        7, {"device": 0, "summaries": [summary("nv/cold/time/gpu/mean", value="1e-5")]},
        {"device": 0, "axis_values": axes(n="2"), "summaries": [{"tag": "x"}]},
        {"device": 0, "axis_values": [{"name": "n"}], "summaries": []},
    ]}]),
}  # fmt: skip


@pytest.mark.parametrize("tool", ODD)
def test_an_odd_row_costs_itself(tmp_path, tool):
    found = read_foreign(ODD[tool](tmp_path))
    (case,) = found.records[0].cases
    assert ("ok", 1) == (case.status, len(case.measurements))
    assert {"google-benchmark": 5, "asv": 3, "nvbench": 4}[tool] == len(found.left_out)


BROKEN = {
    "no JSON": lambda folder: folder / "x.json",
    "cut": lambda folder: cut(nvbench(folder)),
    "another's": lambda folder: written(folder / "x.json", {"results": []}),
    "a list": lambda folder: written(folder / "x.json", [1, 2]),
    "a number": lambda folder: written(folder / "x.json", 7),
    "an unknown unit": lambda folder: google_benchmark(folder, repetition("BM", 1.0, time_unit="fortnights")),
    "a time in words": lambda folder: google_benchmark(folder, repetition("BM", "fast")),
    "a date in words": lambda folder: google_benchmark(folder, date="yesterday"),
    "no benchmarks": lambda folder: nvbench(folder, benchmarks={}),
    "a device in words": lambda folder: nvbench(folder, devices=["H200"]),
    "a state in words": lambda folder: nvbench(folder, benchmarks=[{"name": "copy", "states": ["well"]}]),
    "an old version": lambda folder: asv(folder, version=1),
    "params in words": lambda folder: asv(folder, params="many"),
    "results in words": lambda folder: asv(folder, rows={"times.Cold.track_cold_time": "fast"}),
}


def cut(path):
    path.write_text(path.read_text()[:100])
    return path


def test_samples_that_are_cut_cost_their_state(tmp_path):
    path = nvbench(tmp_path)
    beside = tmp_path / "out.json-bin" / "0.bin"
    beside.write_bytes(beside.read_bytes()[:-1])
    found = read_foreign(path)
    assert ["copy[n=2048,T=F32]", "copy[n=4096,T=F32]"] == [case.name for case in found.records[0].cases]
    assert [f"{beside}: 11 bytes; 3 samples of 4 bytes were promised"] == list(found.left_out)


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_is_refused_by_name(tmp_path, name):
    path = BROKEN[name](tmp_path)
    with pytest.raises(ResultsError) as caught:
        read_foreign(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_list_of_benchmarks_that_is_missing_is_named(tmp_path):
    path = asv(tmp_path)
    (tmp_path / "benchmarks.json").unlink()
    with pytest.raises(ResultsError, match="benchmarks.json: no such file"):
        read_foreign(path)


def test_an_empty_folder_and_an_unknown_format_are_refused(tmp_path):
    with pytest.raises(ResultsError, match="no asv results"):
        read_foreign(tmp_path)
    with pytest.raises(UsageError, match="unknown format 'nvbnch'; did you mean nvbench"):
        read_foreign(tmp_path, "nvbnch")


def test_rows_are_as_asv_writes_them():
    assert {"times.Cold.track_cold_time", "sorting.time_sort", "sorting.peakmem_sort"} == set(ROWS)

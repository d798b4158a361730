"""Results of other tools as records: what they measured, with its reasons, and refusals that name the place."""

import gzip
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
    command,
    google_benchmark,
    hyperfine,
    launch,
    nvbench,
    pytest_benchmark,
    repetition,
    summary,
    timed_test,
    trace,
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


def test_samples_that_nvbench_could_not_write_are_missing(tmp_path):
    path = nvbench(tmp_path)
    plain = json.loads(path.read_text())
    for named in plain["benchmarks"][0]["states"][0]["summaries"][:2]:
        named["data"] = []
    found = read_foreign(written(path, plain))
    assert ((2.5e-5,), ()) == (found.records[0].cases[0].measurement("cold_time").samples, found.left_out)


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


def test_a_test_of_pytest_benchmark_is_a_case_with_its_rounds(tmp_path):
    record = one(pytest_benchmark(tmp_path, timed_test(), timed_test("test_k.py::A::test_y", param=None, params=None)))
    assert ("pytest-benchmark", "bench-1", "2026-11-20T09:00:00", "0123456789abcdef", True, "2026-11-20T08:00:00") == (
        record.backend, record.machine["id"], record.created, record.commit, record.dirty, record.committed,
    )  # fmt: skip
    assert ("AMD EPYC", "3.12.1", ()) == (record.machine["device"], record.software["python"], record.guessed)
    assert {
        ("test_k.py::test_sort[n=10,kind=a]", "wall_time"): (1e-3, 3e-3, 2e-3),
        ("test_k.py::A::test_y[]", "wall_time"): (1e-3, 3e-3, 2e-3),
    } == times(record)


def test_a_saved_file_of_pytest_benchmark_has_the_median(tmp_path):
    row = timed_test()
    del row["stats"]["data"]
    (time,) = one(pytest_benchmark(tmp_path, row)).cases[0].measurements
    assert ((2e-3,), ("one number: the median",)) == (time.samples, time.notes)


def test_a_test_whose_parameters_are_objects_is_known_by_their_id(tmp_path):
    row = timed_test(params={"n": 10, "kind": "UNSERIALIZABLE[<object object at 0x7f0000000000>]"})
    assert ["test_k.py::test_sort[param=10-a]"] == [case.name for case in one(pytest_benchmark(tmp_path, row)).cases]


def test_what_pytest_benchmark_does_not_know_is_a_guess(tmp_path):
    path = pytest_benchmark(tmp_path, timed_test(), machine_info={}, commit_info={"id": "unversioned", "dirty": False})
    record = one(path)
    assert (None, ("machine",), False) == (record.commit, record.guessed, record.dirty)


def test_another_clock_of_pytest_benchmark_is_noted(tmp_path):
    row = timed_test(options={"timer": "time.process_time"})
    assert ("timed by time.process_time",) == one(pytest_benchmark(tmp_path, row)).cases[0].measurements[0].notes


def test_a_command_of_hyperfine_is_a_case_with_its_runs(tmp_path):
    rows = [command(), command("sort\n --n 5", times=(0.25,), parameters={"n": "5"}, exit_codes=[1]),
            command("old", times=())]  # fmt: skip
    record = one(hyperfine(tmp_path, *rows))
    assert ("hyperfine", ("created", "machine"), None) == (record.backend, record.guessed, record.commit)
    assert {
        ("sort --by n[]", "wall_time"): (0.5, 0.7, 0.6),
        ("sort --n 5[n=5]", "wall_time"): (0.25,),
        ("old[]", "wall_time"): (0.6,),
    } == times(record)
    notes = [case.measurements[0].notes for case in record.cases]
    assert [(), ("1 of 1 run ended with another exit code than 0",), ("one number: the median",)] == notes


def test_a_trace_of_pytorch_gives_each_kernel_its_launches(tmp_path):
    wide = launch(args={"device": 0, "grid": [128, 1, 1], "block": [128, 1, 1]})
    record = one(trace(tmp_path, launch(), launch(microseconds=13), wide, launch("copy", 2.0, args={"device": 0})))
    assert ("torch-profiler", "nvidia-h200", "NVIDIA H200", 132, "2025-11-20T10:00:00", ()) == (
        record.backend, record.machine["id"], record.machine["device"], record.machine["sm_count"], record.created,
        record.guessed,
    )  # fmt: skip
    assert {"cuda_runtime_version": "12040"} == record.software
    assert {
        ("gemm[grid=64x2x1,block=128x1x1]", "wall_time"): pytest.approx((12.5e-6, 13e-6)),
        ("gemm[grid=128x1x1,block=128x1x1]", "wall_time"): pytest.approx((12.5e-6,)),
        ("copy[]", "wall_time"): pytest.approx((2e-6,)),
    } == times(record)


def test_a_trace_of_two_gpus_is_two_records_and_may_be_compressed(tmp_path):
    path = trace(tmp_path, launch(), launch(device=1), baseTimeNanoseconds=0)
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    first, second = read_foreign(packed).records
    assert ("nvidia-h200", ("created",)) == (first.machine["id"], first.guessed)
    assert ("unknown", ("created", "machine")) == (second.machine["id"], second.guessed)


def test_a_launch_that_took_no_time_costs_itself(tmp_path):
    found = read_foreign(trace(tmp_path, launch(), launch(microseconds=0)))
    assert 1 == len(found.records[0].cases[0].measurements[0].samples)
    assert found.left_out[0].endswith("gemm: 1 of 2 launches are left out: no time above zero")


MAKERS = [
    asv,
    nvbench,
    lambda folder: google_benchmark(folder, repetition("BM", 1.0)),
    lambda folder: pytest_benchmark(folder, timed_test()),
    lambda folder: hyperfine(folder, command()),
    lambda folder: trace(folder, launch()),
]


@pytest.mark.parametrize("make", MAKERS)
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
    "pytest-benchmark": lambda folder: pytest_benchmark(
        folder, timed_test(), 7, {"fullname": "b"}, timed_test("c", stats={"data": ["fast"]}),
        timed_test("d", stats={"data": {}, "median": True}), timed_test("e", stats={}),
    ),
    "hyperfine": lambda folder: hyperfine(
        folder, command(), 7, command(5), command("a", times=("fast",)), command("b", parameters=[1]),
        {"command": "c"}, command("d", exit_codes=7),
    ),
    "torch-profiler": lambda folder: trace(
        folder, launch(), 7, launch(args=7), launch(args={}), launch(name=5), launch(microseconds="long"),
        launch(ts="early"),
    ),
}  # fmt: skip


COUNTS = {
    "google-benchmark": 5, "asv": 3, "nvbench": 4, "pytest-benchmark": 5, "hyperfine": 6, "torch-profiler": 5,
}  # fmt: skip


@pytest.mark.parametrize("tool", ODD)
def test_an_odd_row_costs_itself(tmp_path, tool):
    found = read_foreign(ODD[tool](tmp_path))
    (case,) = found.records[0].cases
    assert ("ok", 1) == (case.status, len(case.measurements))
    assert COUNTS[tool] == len(found.left_out)


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
    "no tests": lambda folder: pytest_benchmark(folder),
    "tests in words": lambda folder: pytest_benchmark(folder, benchmarks={}),
    "a time of tests in words": lambda folder: pytest_benchmark(folder, timed_test(), datetime="yesterday"),
    "no command": lambda folder: hyperfine(folder),
    "commands in words": lambda folder: written(folder / "x.json", {"results": "fast"}),
    "a command without times": lambda folder: hyperfine(folder, {"command": "sort"}),
    "a trace without a kernel": lambda folder: trace(folder),
    "a cut trace": lambda folder: cut(trace(folder, launch())),
    "a cut trace in gzip": lambda folder: cut_gzip(trace(folder, launch())),
    "events in words": lambda folder: trace(folder, traceEvents={}),
    "an empty file": lambda folder: emptied(hyperfine(folder, command())),
    "a huge file in little gzip": lambda folder: bomb(folder / "trace.json.gz"),
    "results in words": lambda folder: asv(folder, rows={"times.Cold.track_cold_time": "fast"}),
}


def cut(path):
    path.write_text(path.read_text()[:100])
    return path


def cut_gzip(path):
    path.write_bytes(gzip.compress(path.read_bytes())[:-20])
    return path


def emptied(path):
    path.write_bytes(b"")
    return path


def bomb(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(b'{"traceEvents":[' + b"[]," * 10_000_000 + b"1]}"))
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

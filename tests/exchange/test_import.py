"""Results of other tools as records: what they measured, with its reasons, and refusals that name the place."""

import json

import pytest

from prism_bench import store
from prism_bench.errors import ResultsError, UsageError
from prism_bench.exchange import read_foreign
from prism_bench.run_record import decode, encode
from tests.exchange.results import BENCHMARKS, ROWS, asv, google_benchmark, nvbench, repetition, written


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
    from prism_bench.analysis.gate.promises import Promises, promises_for
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

"""Keys of other tools' rows are the keys of cases, and every reader of records takes what an importer makes."""

import json
import os
from datetime import UTC, datetime

import pytest

from prism_bench.errors import ResultsError
from prism_bench.record import store
from prism_bench.record.formats import read_foreign
from prism_bench.record.formats.foreign import StatedFacts
from tests.record.formats.results import BENCHMARKS, asv, axes, google_benchmark, nvbench, repetition, summary, written


def imported(path, tmp_path, **facts):
    """Return the record as the store reads it again, which the history takes, too, and what was left out."""
    found = read_foreign(path, facts=StatedFacts(**facts))
    (record,) = found.records
    runs = tmp_path / "runs"
    saved = store.read(store.add_once(record, runs))
    assert [] == list(store.read_history(runs).problems)
    return saved, list(found.left_out)


def of_parameters(folder, *values, name="flag"):
    """A result file of asv with one benchmark of one parameter, its values as asv writes them; 1 s, 2 s, ..."""
    rows = {"sorting.time_sort": [[float(place) for place, _ in enumerate(values, 1)], [list(values)], "aa"]}
    path = asv(folder, rows=rows)
    listed = {"unit": "seconds", "param_names": [name], "version": "aa"}
    written(folder / "benchmarks.json", {"version": 2, "sorting.time_sort": listed})
    return path


def medians(record):
    return {case.name: case.measurements[0].median for case in record.cases}


def test_a_parameter_that_is_no_plain_value_stays_text(tmp_path):
    record, _ = imported(of_parameters(tmp_path, "(64, 64)", "(128, 128)", name="shape"), tmp_path)
    assert ["(64, 64)", "(128, 128)"] == [case.workload["shape"] for case in record.cases]
    assert {"sorting.time_sort[shape=(64, 64)]": 1, "sorting.time_sort[shape=(128, 128)]": 2} == medians(record)


def test_values_that_only_their_quotes_set_apart_are_apart(tmp_path):
    texts = ("1", "'1'", "None", "'None'", "True", "'True'", "'a'", "'\\'1\\''", "1.0", "'(1, 2)'", "(1, 2)")
    record, left_out = imported(of_parameters(tmp_path, *texts), tmp_path)
    assert len(texts) == len(record.cases)
    assert [1, "'1'", None, "'None'", True, "'True'", "a"] == [case.workload["flag"] for case in record.cases][:7]
    assert list(map(float, range(1, 12))) == pytest.approx(list(medians(record).values()))
    assert not left_out


@pytest.mark.parametrize(
    "text", ["1e400", "nan", "-inf", str(10**30), "b'x'", "{1, 2}", "[1, [2]]", "{'a': (1,)}", "1j", "1_000", "...", ""]
)
def test_every_reader_takes_every_parameter(tmp_path, text):
    record, _ = imported(of_parameters(tmp_path, text), tmp_path)
    assert {f"sorting.time_sort[flag={text}]": 1} == medians(record)


def test_parameters_of_one_name_are_two(tmp_path):
    path = asv(tmp_path, rows={"sorting.time_sort": [[1.0, 2.0], [["1"], ["3", "4"]], "aa"]})
    listed = {**BENCHMARKS["sorting.time_sort"], "param_names": ["n", "n"]}
    written(tmp_path / "benchmarks.json", {"version": 2, "sorting.time_sort": listed})
    assert ["sorting.time_sort[n=1,n_2=3]", "sorting.time_sort[n=1,n_2=4]"] == list(
        medians(imported(path, tmp_path)[0])
    )


def test_an_older_version_of_a_benchmark_may_have_fewer_parameters(tmp_path):
    path = asv(tmp_path, rows={"sorting.time_sort": [[1.0], [["5"]], "cc"]})
    assert ["sorting.time_sort@cc[param0=5]"] == list(medians(imported(path, tmp_path)[0]))


def test_arguments_of_one_name_are_two_cases(tmp_path):
    path = google_benchmark(tmp_path, repetition("BM_D/k:1/k:2", 9.0), repetition("BM_D/k:3/k:2", 5.0))
    assert ["BM_D[k=1,k_2=2]", "BM_D[k=3,k_2=2]"] == list(medians(imported(path, tmp_path)[0]))


def test_two_registrations_of_one_name_are_two_cases(tmp_path):
    rows = [repetition("BM/8", time, index, family_index=family, per_family_instance_index=0)
            for family in (0, 3) for index, time in enumerate((10.0 + family, 12.0 + family))]  # fmt: skip
    record, _ = imported(google_benchmark(tmp_path, *rows), tmp_path)
    assert {"BM[arg0=8,instance=1]": 1.1e-5, "BM[arg0=8,instance=2]": 1.4e-5} == pytest.approx(medians(record))


def test_two_repetitions_of_one_index_are_none(tmp_path):
    path = google_benchmark(tmp_path, repetition("A", 1.0), repetition("A", 9.0), repetition("B", 2.0))
    record, left_out = imported(path, tmp_path)
    assert ["B[]"] == list(medians(record))
    assert [f"{path}: A: two rows have one repetition_index, and nothing in the file sets them apart; none is imported"
            ] == left_out  # fmt: skip


def test_files_before_repetitions_had_an_index_repeat_names(tmp_path):
    plain = {"iterations": 100, "time_unit": "us", "cpu_time": 1.0}
    times = {
        "BM/8": (1.0, 3.0, 2.0),
        "BM/8_mean": (2.0,),
        "BM/8_median": (2.0,),
        "BM/8_stddev": (1.0,),
        "BM_mean": (5.0,),
    }
    rows = [{"name": name, "real_time": time, **plain} for name, known in times.items() for time in known]
    record, _ = imported(google_benchmark(tmp_path, *rows), tmp_path)
    assert {"BM[arg0=8]": 2e-6, "BM_mean[]": 5e-6} == pytest.approx(medians(record))
    assert 3 == len(record.cases[0].measurements[0].samples)


def test_two_benchmarks_of_one_name_in_nvbench_are_apart(tmp_path):
    means = [summary("nv/cold/time/gpu/mean", value=value) for value in ("1e-5", "2e-5")]
    states = [{"device": 0, "axis_values": axes(n="1"), "summaries": [mean], "is_skipped": False} for mean in means]
    path = nvbench(tmp_path, benchmarks=[{"name": "copy", "states": [state]} for state in states])
    record, _ = imported(path, tmp_path)
    assert {"copy[n=1,instance=1]": 1e-5, "copy[n=1,instance=2]": 2e-5} == pytest.approx(medians(record))


def test_rows_that_nothing_sets_apart_are_left_out(tmp_path):
    table = tmp_path / "op.csv"
    table.write_text("x_val;a-latency\n1;0.5\n1;0.7\n2;0.9\n")
    timed = {"mean": 1.0, "hardware": "NVIDIA H200"}
    baseline = written(
        tmp_path / "k.json", {"level1": {"1_a.py": timed, "1_b.py": {**timed, "mean": 9.0}, "2_c.py": timed}}
    )
    for path, name, double in (
        (table, "a[x_val=2]", "a[x_val=1]"),
        (baseline, "level1[problem=2]", "level1[problem=1]"),
    ):
        found = read_foreign(path)
        assert [name] == [case.name for case in found.records[0].cases]
        words = f"{path}: {double} is there 2 times, and nothing in the file sets them apart; none of them is imported"
        assert [words] == list(found.left_out)


@pytest.mark.parametrize(
    ("changes", "place"),
    [({"devices": [{"id": 0, "name": "H200", "number_of_sms": "many"}]}, "machine.sm_count"),
     ({"devices": [{"id": 0, "name": "x" * 3000, "number_of_sms": 1}]}, "machine.id")],
)  # fmt: skip
def test_a_machine_that_no_reader_takes_is_refused_at_once(tmp_path, changes, place):
    path = nvbench(tmp_path, **changes)
    with pytest.raises(ResultsError, match=place) as caught:
        read_foreign(path)
    assert str(caught.value).startswith(str(path))


WHEN = datetime(2026, 11, 20, 9, tzinfo=UTC)


def test_what_a_file_lacks_is_a_guess_until_it_is_stated(tmp_path):
    path = nvbench(tmp_path)
    (record,) = read_foreign(path).records
    assert (("created",), None, "nvidia-h200") == (record.guessed, record.commit, record.machine["id"])
    stated, _ = imported(path, tmp_path, created=WHEN, commit="0123456789abcdef", machine="Host 7")
    assert ((), "2026-11-20T09:00:00", "0123456789abcdef", "host-7", "NVIDIA H200") == (
        stated.guessed, stated.created, stated.commit, stated.machine["id"], stated.machine["device"],
    )  # fmt: skip


def test_a_table_of_tritonbench_has_neither_time_nor_machine(tmp_path):
    path = tmp_path / "op.csv"
    path.write_text("x_val;a-latency\n1;0.5\n")
    assert ("created", "machine") == read_foreign(path).records[0].guessed
    (record,) = read_foreign(path, facts=StatedFacts(machine="host-7")).records
    assert (("created",), "host-7") == (record.guessed, record.machine["id"])


def test_results_of_google_benchmark_without_a_host_are_read(tmp_path):
    path = google_benchmark(tmp_path, {"name": "BM_X/8", "real_time": 1200, "time_unit": "ns"})
    plain = json.loads(path.read_text())
    plain["context"] = {"date": "2018-03-27 11:32:59", "num_cpus": 8}
    record, _ = imported(written(path, plain), tmp_path)
    assert ("unknown", ("machine",), "2018-03-27T11:32:59") == (record.machine["id"], record.guessed, record.created)


@pytest.mark.parametrize(
    ("make", "facts", "option"),
    [(asv, {"created": WHEN}, "--created"), (asv, {"commit": "f" * 40}, "--commit"),
     (asv, {"machine": "x"}, "--machine"),
     (lambda folder: google_benchmark(folder, repetition("BM", 1.0)), {"machine": "x"}, "--machine")],
)  # fmt: skip
def test_a_fact_of_the_file_is_never_replaced(tmp_path, make, facts, option):
    path = make(tmp_path)
    with pytest.raises(ResultsError, match=f"the file has its own: .*; import it without {option}"):
        read_foreign(path, facts=StatedFacts(**facts))


def test_files_of_one_date_are_no_doubles(tmp_path):
    for number in "12":
        path = nvbench(tmp_path / number, meta={"version": {"nvbench": {"string": number}}})
        os.utime(path, (1_763_700_000, 1_763_700_000))
        imported(path, tmp_path)
    assert 2 == len(store.read_history(tmp_path / "runs").records)


def test_content_and_not_its_date_makes_a_record(tmp_path):
    path, runs = nvbench(tmp_path), tmp_path / "runs"
    first = store.add_once(read_foreign(path).records[0], runs)
    os.utime(path, (1_763_700_000, 1_763_700_000))
    assert first == store.add_once(read_foreign(path).records[0], runs)
    first.write_bytes(b"damaged")
    assert first != store.add_once(read_foreign(path).records[0], runs)

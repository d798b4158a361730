"""Records on disk: whole, small, read back to four digits, refused with their name where they are no records."""

import gzip
import json
from dataclasses import replace

import pytest

from prism_bench.errors import ResultsError
from prism_bench.record.run_record import encode
from prism_bench.record.schema import SCHEMA
from prism_bench.record.store import (
    RecordPlace,
    add_once,
    load,
    newest,
    path_for,
    read,
    read_history,
    records_in,
    save,
    table,
)
from tests.report.synthetic import case_result, cpu_record, gpu_record, large_record, record_of

LARGEST_RECORD = 500_000


def test_without_edges_the_timed_cases_are_read_and_all_are_checked(tmp_path):
    timed, golden = case_result("k", times={"cold_time": 1e-5}), case_result("k", "golden", times={"cold_time": 1e-5})
    edge = case_result("k", "edge")
    cases = timed, replace(golden, name="k[golden]"), replace(edge, name="k[edge]")
    path = save(record_of(*cases), tmp_path / "record.json")
    assert [case.name for case in read(path).cases] == [case.name for case in cases]
    found = read(path, edges=False)
    assert [timed.name, "k[golden]"] == [case.name for case in found.cases], "a golden case with times is no edge"
    assert not any(case.is_edge for case in found.cases)
    plain = json.loads(path.read_text())
    plain["cases"][2]["status"] = "fine"
    path.write_text(json.dumps(plain))
    with pytest.raises(ResultsError, match="status"):
        read(path, edges=False)


@pytest.mark.parametrize("record", [gpu_record(), cpu_record(), record_of(case_result("k"), complete=False)])
@pytest.mark.parametrize("name", ["record.json", "record.json.gz"])
def test_what_is_saved_is_read_back_to_four_digits(record, name, tmp_path):
    found = read(save(record, tmp_path / name))
    assert (found.created, found.commit, found.machine, found.complete) == (
        record.created, record.commit, record.machine, record.complete,
    )  # fmt: skip
    for ours, theirs in zip(record.cases, found.cases, strict=True):
        assert (ours.name, ours.status, ours.reason, ours.workload) == (
            theirs.name,
            theirs.status,
            theirs.reason,
            theirs.workload,
        )
        for one, other in zip(ours.measurements, theirs.measurements, strict=True):
            assert (one.metric, one.subject, one.valid, one.reason) == (
                other.metric,
                other.subject,
                other.valid,
                other.reason,
            )
            assert [len(group) for group in one.processes] == [len(group) for group in other.processes]
            assert other.samples == pytest.approx(one.samples, rel=5e-4)


def test_saving_what_was_read_changes_nothing(tmp_path):
    first = save(gpu_record(), tmp_path / "a.json.gz")
    assert save(read(first), tmp_path / "b.json.gz").read_bytes() == first.read_bytes()


def test_three_hundred_cases_stay_small(tmp_path):
    record = large_record(300)
    assert {len(one.processes) for case in record.cases for one in case.measurements if one.subject == "kernel"} == {3}
    assert save(record, tmp_path / "record.json.gz").stat().st_size < LARGEST_RECORD


def refusal(path):
    with pytest.raises(ResultsError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("keep", [0, 1, 5, 200, -1])
def test_a_cut_record_is_refused_by_name(keep, tmp_path):
    path = save(gpu_record(), tmp_path / "record.json.gz")
    path.write_bytes(path.read_bytes()[:keep])
    refusal(path)


@pytest.mark.parametrize("keep", [1, 40, -2])
def test_a_cut_plain_record_is_refused_by_name(keep, tmp_path):
    path = save(gpu_record(), tmp_path / "record.json")
    path.write_bytes(path.read_bytes()[:keep])
    refusal(path)


def test_damaged_compression_is_refused_by_name(tmp_path):
    path = save(gpu_record(), tmp_path / "record.json.gz")
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 40] = bytes(40)
    path.write_bytes(data)
    refusal(path)


@pytest.mark.parametrize("text", ["[]", "{}", "3", '"record"', '{"results": [1]}', "\x00\x01", "<html>"])
def test_foreign_files_are_refused_by_name(text, tmp_path):
    path = tmp_path / "foreign.json"
    path.write_text(text)
    refusal(path)


def test_binary_files_are_refused_by_name(tmp_path):
    path = tmp_path / "picture.json"
    path.write_bytes(b"\x89PNG\xff\xfe\x00\x80")
    refusal(path)


def test_a_missing_record_and_a_folder_are_refused_by_name(tmp_path):
    assert "no such record" in refusal(tmp_path / "gone.json.gz")
    refusal(tmp_path)


def test_a_newer_record_asks_for_an_upgrade(tmp_path):
    path = tmp_path / "record.json"
    path.write_text(json.dumps({**encode(cpu_record()), "schema": SCHEMA + 1}))
    assert "upgrade" in refusal(path)


DAMAGES = {
    "cases is a number": lambda plain: {**plain, "cases": 3},
    "a case is a word": lambda plain: {**plain, "cases": ["softmax"]},
    "a case has no name": lambda plain: {**plain, "cases": [_without(plain["cases"][0], "name")]},
    "an unknown status": lambda plain: {**plain, "cases": [{**plain["cases"][0], "status": "splendid"}]},
    "no machine": lambda plain: _without(plain, "machine"),
    "samples without a unit": lambda plain: _with_measurement(plain, {"processes": [{"counts": [1]}]}),
    "samples that are words": lambda plain: _with_measurement(plain, {"processes": [{"unit": 1e-9, "counts": ["x"]}]}),
    "measurements is a number": lambda plain: {**plain, "cases": [{**plain["cases"][0], "measurements": 7}]},
    "the schema is a word": lambda plain: {**plain, "schema": "one"},
}


def _without(plain, key):
    return {name: value for name, value in plain.items() if name != key}


def _with_measurement(plain, changes):
    case = plain["cases"][0]
    return {**plain, "cases": [{**case, "measurements": [{**case["measurements"][0], **changes}]}]}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_records_are_refused_by_name(damage, tmp_path):
    path = tmp_path / "record.json"
    path.write_text(json.dumps(damage(encode(cpu_record()))))
    refusal(path)


def test_an_interrupted_save_leaves_the_old_record(tmp_path, monkeypatch):
    path = save(cpu_record(), tmp_path / "record.json.gz")
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(gpu_record(), path)
    assert path.read_bytes() == before
    assert [child.name for child in tmp_path.iterdir()] == [path.name]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ResultsError, match="cannot write"):
        save(cpu_record(), tmp_path / "file" / "record.json")


def test_the_path_tells_machine_time_and_commit(tmp_path):
    path = path_for(gpu_record(), tmp_path)
    assert path.relative_to(tmp_path).as_posix() == "nvidia-h200/20261120T221405Z-7471611d.json.gz"
    assert path_for(gpu_record(dirty=True, commit=None), tmp_path).name == "20261120T221405Z-nocommit-dirty.json.gz"


def test_records_that_begin_in_one_second_have_places_of_their_own(tmp_path):
    one, other, third = (RecordPlace(tmp_path) for _ in range(3))
    first, second = one.save(gpu_record(complete=False)), other.save(gpu_record())
    assert [path.name for path in (first, second)] == [
        "20261120T221405Z-7471611d.json.gz", "20261120T221405Z-7471611d-2.json.gz"
    ]  # fmt: skip
    assert "20261120T221405Z-7471611d-3.json.gz" == third.save(gpu_record()).name
    assert not read(first).complete
    assert newest(tmp_path).name.endswith("-3.json.gz")


def test_a_later_version_of_a_record_replaces_the_earlier_one(tmp_path):
    place, named = RecordPlace(tmp_path), RecordPlace(tmp_path, tmp_path / "mine.json")
    assert place.save(gpu_record(complete=False)) == place.save(gpu_record())
    assert (tmp_path / "mine.json", [True]) == (
        named.save(gpu_record()),
        [read(p).complete for p in records_in(tmp_path)],
    )


def test_records_come_oldest_first(tmp_path):
    for day in ("2026-11-20T10:00:00", "2025-01-01T10:00:00", "2026-11-21T10:00:00"):
        record = cpu_record(created=day)
        save(record, path_for(record, tmp_path))
    assert [path.name[:8] for path in records_in(tmp_path)] == ["20250101", "20261120", "20261121"]
    assert newest(tmp_path).name.startswith("20261121")


def test_no_record_is_an_error_that_says_how_to_make_one(tmp_path):
    with pytest.raises(ResultsError, match="prism-bench run"):
        newest(tmp_path)


def test_the_table_has_one_row_per_sample(tmp_path):
    record = record_of(case_result("k", times={"cold_time": 1e-3, "cold_time@peer:torch": 2e-3}))
    frame = table(record)
    assert len(frame) == sum(len(one.samples) for case in record.cases for one in case.measurements)
    assert frame.groupby("subject")["seconds"].median().to_dict() == pytest.approx({"kernel": 1e-3, "peer:torch": 2e-3})
    loaded = load(save(record, tmp_path / "record.json.gz"))
    assert loaded.attrs["machine"] == record.machine
    assert list(table(record_of()).columns) == list(frame.columns)


def test_records_are_compressed_the_same_way_every_time(tmp_path):
    path = save(cpu_record(), tmp_path / "record.json.gz")
    assert json.loads(gzip.decompress(path.read_bytes()))["schema"] == SCHEMA


def test_ten_records_of_one_second_are_in_the_order_of_their_numbers(tmp_path):
    paths = [RecordPlace(tmp_path).save(gpu_record()) for _ in range(11)]
    assert paths == records_in(tmp_path)
    assert newest(tmp_path).name.endswith("-11.json.gz")


def test_a_file_that_exists_already_is_no_place_for_a_record(tmp_path):
    (tmp_path / "mine.json.gz").write_bytes(b"theirs")
    with pytest.raises(ResultsError, match="exists already"):
        RecordPlace(tmp_path, tmp_path / "mine.json.gz")


def test_a_file_that_came_to_exist_meanwhile_is_not_replaced(tmp_path):
    place = RecordPlace(tmp_path, tmp_path / "mine.json.gz")
    (tmp_path / "mine.json.gz").write_bytes(b"theirs")
    assert tmp_path / "mine-2.json.gz" == place.save(gpu_record())
    assert b"theirs" == (tmp_path / "mine.json.gz").read_bytes()


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "..", "a/b", "", "\0"])
def test_what_a_record_says_never_leads_out_of_the_folder(name, tmp_path):
    record = gpu_record(created=name, commit=name)
    hostile = replace(record, machine={**record.machine, "id": name})
    path = RecordPlace(tmp_path / "runs").save(hostile)
    assert path.parent.parent == tmp_path / "runs"
    assert [path] == records_in(tmp_path / "runs")


def test_a_record_without_cases_is_neither_written_nor_read(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    for write in (save, RecordPlace(tmp_path / "runs").save, add_once):
        with pytest.raises(ResultsError, match="nothing was measured: no record is written"):
            write(record_of(complete=False), *([tmp_path / "runs"] if write in (save, add_once) else []))
    assert [] == list(tmp_path.iterdir())
    path = empty_record(tmp_path / "runs" / "machine" / "empty.json.gz")
    with pytest.raises(ResultsError, match="empty.json.gz: a run record without cases: nothing was measured"):
        read(path)
    (problem,) = read_history(tmp_path / "runs").problems
    assert "without cases" in problem.reason


def empty_record(path):
    """Write what version 0.1 wrote where a run was interrupted before its first case."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(encode(record_of(complete=False))).encode()))
    return path

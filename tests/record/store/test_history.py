"""All records as one table: what they measured, nothing of what is broken or double; its cache is never stale."""

import gzip
import json
import os
import shutil
import weakref
from dataclasses import replace

import numpy
import pytest

from prism_bench.record.run_record import encode
from prism_bench.record.schema import checked
from prism_bench.record.store import history as cache
from prism_bench.record.store import read_history, save
from prism_bench.record.store.history import History
from prism_bench.record.store.points import NUMBERS, WORDS, block, points_in, together
from prism_bench.spec.metric import CODE
from tests.report.synthetic import MACHINE, case_result, cpu_record, gpu_record, measurement, record_of


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "runs"


def night(runs, day, seconds=1e-3, name=None, **changes):
    """A record of one case, made on that day of January."""
    made = {"created": f"2026-01-{day:02d}T03:00:00", **changes}
    record = record_of(case_result("k", times={"cold_time": seconds, "cold_time@peer:torch": 2 * seconds}), **made)
    return save(record, runs / "nvidia-h200" / (name or f"202601{day:02d}T030000Z-abc.json.gz"))


def in_cache(runs):
    return cache.cache_kept(cache.folder_for(runs)).entries


def values(history: History, subject="kernel"):
    points = history.points
    return points.loc[points["subject"] == subject, "value"].tolist()


@pytest.mark.parametrize("record", [gpu_record(), cpu_record()])
def test_points_are_the_measurements_of_the_record(record):
    plain = json.loads(json.dumps(encode(record)))
    facts, columns = points_in(checked(plain, "origin"), "file")
    told = [
        (case.name, one.metric, one.subject, len(one.samples), one.throttled, pytest.approx(one.median, rel=5e-4),
         one.valid) for case in record.cases for one in case.measurements if one.samples
    ]  # fmt: skip
    told += [
        (case.name, metric, "kernel", 1, 0, case.code[metric], True)
        for case in record.cases
        for metric in CODE
        if case.code.get(metric) and any(one.samples for one in case.measurements)
    ]
    names = ("case", "metric", "subject", "samples", "throttled", "value")
    found = [
        (*row, doubt == "") for *row, doubt in zip(*(columns[name] for name in names), columns["doubt"], strict=True)
    ]
    assert told == found
    assert (record.machine["id"], record.commit) == (facts.machine, facts.commit)


def test_the_device_of_a_merged_record_is_all_of_its_devices():
    parts = ({"uuid": "GPU-b", "kernels": ["k"]}, {"uuid": "GPU-a", "kernels": []})
    devices = {"GPU-a+GPU-b": gpu_record(machine={"id": "m", "device": "H200"}, parts=parts),
               MACHINE["uuid"]: gpu_record(), "H200": gpu_record(machine={"id": "m", "device": "H200"})}  # fmt: skip
    plain = [json.loads(json.dumps(encode(record))) for record in devices.values()]
    assert list(devices) == [points_in(checked(one, "origin"), "file")[0].device for one in plain]


def test_clocks_are_in_hertz():
    record = record_of(case_result("k", measurements=(measurement("cold_time", 1e-3),)))
    _, columns = points_in(checked(json.loads(json.dumps(encode(record))), "origin"), "file")
    assert [pytest.approx(record.cases[0].measurements[0].clock, rel=5e-3)] == columns["clock"]


def test_without_a_clock_there_is_none():
    record = record_of(case_result("k", measurements=(measurement("launch_time", 1e-5),)))
    assert [0.0] == points_in(checked(json.loads(json.dumps(encode(record))), "origin"), "file")[1]["clock"]


def test_the_oldest_record_comes_first(runs):
    for day in (3, 1, 2):
        night(runs, day, day * 1e-3)
    history = read_history(runs)
    assert [1e-3, 2e-3, 3e-3] == pytest.approx(values(history))
    assert [1, 2, 3] == [int(facts.created[8:10]) for facts in history.records]


def test_times_with_a_zone_are_put_in_order_by_utc(runs):
    night(runs, 2, 2e-3, created="2026-01-02T00:30:00")
    night(runs, 3, 1e-3, created="2026-01-02T01:00:00+02:00")
    assert [1e-3, 2e-3] == pytest.approx(values(read_history(runs)))


def test_no_records_are_an_empty_history(runs):
    assert (0, (), ()) == (len(read_history(runs).points), read_history(runs).records, read_history(runs).problems)


def test_what_was_read_is_not_read_again(runs, monkeypatch):
    night(runs, 1)
    first = read_history(runs)
    monkeypatch.setattr("prism_bench.record.store.history.text_at", lambda *_: pytest.fail("was read again"))
    again = read_history(runs)
    assert first.points.equals(again.points)
    assert first.records == again.records


def replaced(path):
    night(path.parent.parent, 1, 5e-3, name=path.name)


def rewritten_in_place_with_its_old_times(path):
    before, old = path.stat(), path.read_bytes()
    path.write_bytes(old.replace(b"[1000,1000,1000]", b"[5000,5000,5000]"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert before.st_size == path.stat().st_size


@pytest.mark.parametrize("change", [replaced, rewritten_in_place_with_its_old_times])
def test_a_changed_record_is_read_again(runs, change):
    path = night(runs, 1)
    path.write_bytes(gzip.decompress(path.read_bytes()))
    assert [1e-3] == pytest.approx(values(read_history(runs)))
    change(path)
    assert [5e-3] == pytest.approx(values(read_history(runs)))


def linked(path):
    os.link(path, path.parent.parent / "the same file elsewhere")


def copied_with_its_times(path):
    shutil.copy2(path, path.with_suffix(".copy"))
    os.replace(path.with_suffix(".copy"), path)


def made_private(path):
    path.chmod(0o600)


@pytest.mark.parametrize("change", [linked, copied_with_its_times, made_private])
def test_what_leaves_the_content_as_it_was_makes_no_record_be_read_again(runs, change, monkeypatch):
    path = night(runs, 1)
    first = read_history(runs)
    before = path.stat().st_ctime_ns
    while path.stat().st_ctime_ns == before:  # the file system's clock has steps
        change(path)
        (path.parent.parent / "the same file elsewhere").unlink(missing_ok=True)
    monkeypatch.setattr("prism_bench.record.store.history.text_at", lambda *_: pytest.fail("was read again"))
    assert first.points.equals(read_history(runs).points)


def test_new_and_removed_records_are_noticed(runs):
    first = night(runs, 1)
    read_history(runs)
    night(runs, 2, 2e-3)
    assert [1e-3, 2e-3] == pytest.approx(values(read_history(runs)))
    first.unlink()
    assert [2e-3] == pytest.approx(values(read_history(runs)))
    assert ["20260102T030000Z-abc.json.gz"] == [os.path.basename(file) for file in in_cache(runs)]


@pytest.mark.parametrize("damage", [b"", b"PAR1", lambda whole: whole[: len(whole) // 2]])
def test_a_damaged_cache_is_made_again(runs, damage):
    night(runs, 1)
    read_history(runs)
    (place,) = cache.folder_for(runs).paths()
    place.write_bytes(damage(place.read_bytes()) if callable(damage) else damage)
    assert [1e-3] == pytest.approx(values(read_history(runs)))
    assert 1 == len(in_cache(runs))


def test_other_code_makes_other_points(runs, monkeypatch):
    night(runs, 1)
    read_history(runs)
    monkeypatch.setattr(cache, "_maker", lambda: "another")
    assert {} == in_cache(runs)


def test_a_new_record_adds_a_small_file_to_the_cache_until_there_are_many(runs, monkeypatch):
    monkeypatch.setattr(cache, "MANY", 3)
    for day in (1, 2):
        night(runs, day)
    read_history(runs)
    (month,) = cache.folder_for(runs).paths()
    before = month.read_bytes()
    for day in (3, 4):
        night(runs, day)
        read_history(runs)
    assert before == month.read_bytes()
    assert 3 == len(cache.folder_for(runs).paths())
    night(runs, 5)
    read_history(runs)
    assert [month] == cache.folder_for(runs).paths()
    assert 5 == len(in_cache(runs))


def test_a_cache_that_cannot_be_written_is_done_without(runs, monkeypatch, tmp_path):
    night(runs, 1)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "file"))
    assert [1e-3] == pytest.approx(values(read_history(runs)))


def test_a_broken_record_harms_no_other(runs):
    night(runs, 1)
    half = night(runs, 2)
    half.write_bytes(half.read_bytes()[:100])
    (runs / "nvidia-h200" / "20260103T000000Z-x.json.gz").write_bytes(b'{"benchmarks": []}')
    timeless = night(runs, 4)
    plain = json.loads(gzip.decompress(timeless.read_bytes()))
    timeless.write_bytes(gzip.compress(json.dumps({**plain, "created": "yesterday"}).encode()))
    for _ in ("read", "from the cache"):
        history = read_history(runs)
        assert [1e-3] == pytest.approx(values(history))
        assert ["20260102", "20260103", "20260104"] == [problem.file.split("/")[1][:8] for problem in history.problems]
        assert all(problem.file in problem.reason for problem in history.problems)


def test_a_record_that_is_there_twice_counts_once(runs):
    first = night(runs, 1)
    (runs / "copy").mkdir()
    (runs / "copy" / first.name).write_bytes(first.read_bytes())
    history = read_history(runs)
    assert [1e-3] == pytest.approx(values(history))
    assert 1 == len(history.records) == len(history.problems)
    assert "the same run as" in history.problems[0].reason


def test_of_a_cut_run_and_the_whole_one_the_whole_one_counts(runs):
    short = record_of(case_result("k", times={"cold_time": 1e-3}), created="2026-01-01T03:00:00", complete=False)
    save(short, runs / "nvidia-h200" / "a.json.gz")
    night(runs, 1, name="b.json.gz")
    assert [1e-3] == pytest.approx(values(read_history(runs)))
    assert [2e-3] == pytest.approx(values(read_history(runs), "peer:torch"))


def test_many_records_are_read_by_several_processes(runs, monkeypatch):
    monkeypatch.setattr("prism_bench.record.store.history.FEW", 2)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    for day in range(1, 6):
        night(runs, day, day * 1e-3)
    told = []
    history = read_history(runs, lambda done, total: told.append((done, total)))
    assert [1e-3, 2e-3, 3e-3, 4e-3, 5e-3] == pytest.approx(values(history))
    assert [(done, 5) for done in range(1, 6)] == told


def test_a_table_has_the_points_without_the_numbers_of_samples(runs):
    for day in range(1, 4):
        night(runs, day, day * 1e-3)
    history = replace(read_history(runs), metrics=frozenset({"cold_time"}))
    points, table = history.points, history.table
    assert {*points.columns} - {"samples", "throttled"} == {*table.columns}
    assert points["value"].tolist() == table.columns["value"].tolist()
    assert [points[word].astype(str).tolist() for word in WORDS] == [table.texts(word) for word in WORDS]
    assert [0, 2, 4] == numpy.flatnonzero(table.rows_with({"subject": {"kernel"}, "metric": None})).tolist()


def test_blocks_that_are_put_together_are_not_kept():
    """A window of years is a hundred megabytes: what has been copied goes while the next shard is read."""
    columns = {**dict.fromkeys(WORDS, ["a"]), "value": [1.0], "clock": [0], "samples": [1], "throttled": [0]}
    held: list[weakref.ref] = []
    alive: list[int] = []

    def blocks():
        for number in range(5):
            one = block(str(number), "", None, {**columns, "case": [f"{number}"]})
            held.extend(weakref.ref(column) for column in one.columns.values())
            yield one
            del one
            alive.append(sum(one() is not None for one in held))

    found = together(blocks(), rows=5)
    assert [len(WORDS) + len(NUMBERS)] * 5 == alive, "the newest block alone"
    assert ["0", "1", "2", "3", "4"] == found.texts("case")


def test_a_vocabulary_may_outgrow_its_type():
    columns = {**dict.fromkeys(WORDS, ["a"] * 200), "value": [1.0] * 200}
    numbers = {"clock": [0] * 200, "samples": [1] * 200, "throttled": [0] * 200}
    cases = [[f"{number}" for number in range(first, first + 200)] for first in (0, 100, 32_700)]
    found = together(block("", "", None, {**columns, **numbers, "case": own}) for own in cases)
    assert [name for own in cases for name in own] == found.texts("case")
    assert "i2" == found.columns["case"].dtype.str[1:] and "i1" == found.columns["metric"].dtype.str[1:]


def test_words_of_all_files_share_one_vocabulary():
    columns = {"case": ["a", "b"], "metric": ["m", "m"], "subject": ["k", "k"], "code": ["", ""], "build": ["", ""],
               "doubt": ["", ""], "board": ["", ""],
               "value": [1.0, 2.0], "clock": [0, 0], "samples": [1, 1], "throttled": [0, 0]}  # fmt: skip
    blocks = [block("1", "", None, columns), block("2", "", None, columns | {"case": ["b", "c"]})]
    found = together(blocks)
    assert ["a", "b", "b", "c"] == found.texts("case")
    assert [0, 0, 1, 1] == found.columns["record"].tolist()

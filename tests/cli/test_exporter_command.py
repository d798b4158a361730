"""`prism-bench monitor --serve` next to records that are damaged, missing or still being written."""

from dataclasses import replace

import pytest

from prism_bench.record import store
from prism_bench.workflows.exported import exported
from tests.report.synthetic import case_result, record_of


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "runs"


def kept(runs, day, seconds):
    record = record_of(case_result("k", times={"cold_time": seconds}), created=f"2026-01-0{day}T00:00:00")
    return store.RecordPlace(runs).save(record)


def seconds(told):
    return [value for _, _, value in told.seconds]


def test_the_newest_readable_record_is_served_and_damaged_ones_are_named(runs, toys, capsys):
    kept(runs, 1, 1e-3)
    names = [kept(runs, day, 2e-3) for day in (2, 3)]
    for path, damage in zip(names, (b"{", b"\x1f\x8b" + b"x" * 20), strict=True):
        path.write_bytes(damage)
    told = exported(runs, toys[1])
    assert [1e-3] == pytest.approx(seconds(told))
    assert [f"nvidia-h200/{path.name}" for path in reversed(names)] == list(told.unreadable)
    assert str(names[1]) in capsys.readouterr().err


def test_only_damaged_records_serve_nothing_but_their_names(runs, toys):
    path = kept(runs, 1, 1e-3)
    path.write_bytes(b"")
    told = exported(runs, toys[1])
    assert ([], [f"nvidia-h200/{path.name}"]) == (seconds(told), list(told.unreadable))


def test_without_records_nothing_is_served(runs, toys):
    assert ([], []) == (seconds(exported(runs, toys[1])), list(exported(runs, toys[1]).unreadable))


def test_a_record_that_is_written_again_is_read_again(runs, toys):
    path = kept(runs, 1, 1e-3)
    assert [1e-3] == pytest.approx(seconds(exported(runs, toys[1])))
    store.save(record_of(case_result("k", times={"cold_time": 2e-3, "hot_time": 1e-3})), path)
    assert [2e-3, 1e-3] == pytest.approx(seconds(exported(runs, toys[1])))


def test_times_that_cannot_be_believed_are_not_served(runs, toys):
    path = kept(runs, 1, 1e-3)
    record = store.read(path)
    zero = replace(record.cases[0].measurements[0], processes=((0.0, 1e-3),))
    store.save(replace(record, cases=(replace(record.cases[0], measurements=(zero,)),)), path)
    assert [] == seconds(exported(runs, toys[1]))

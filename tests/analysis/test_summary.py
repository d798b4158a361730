"""Planted times and sizes give the expected derived values."""

import math

import pytest

from prism_bench.analysis.summary import COLUMNS, cache_bytes, limits_of, number, rows_of, summary, summary_rows
from prism_bench.record.measurement import Measurement
from tests.report.synthetic import case_result, cpu_record, gpu_record, measurement, record_of

MACHINE = (
    case_result("null", times={"cold_time": 4e-6, "hot_time": 5e-7}, bytes=0, ceiling="launch"),
    case_result("copy", times={"cold_time": 2e-3}, bytes=8_000_000_000, ceiling="bandwidth"),
    case_result("fma", times={"cold_time": 1e-3}, bytes=8, flops=60_000_000_000, ceiling="fp32"),
)
TIMES = {
    "cold_time": 1e-3, "hot_time": 8e-4, "end_to_end_time": 1e-2, "cold_time@peer:torch": 1.5e-3,
    "cold_time@peer:cupy": 1.2e-3, "wall_time@cpu": 0.05,
}  # fmt: skip


def row_of(case):
    return summary(record_of(*MACHINE, case)).iloc[-1]


def test_planted_numbers_give_the_derived_values():
    row = row_of(case_result("softmax", times=TIMES, bytes=3_000_000_000, flops=6_000_000_000))
    assert row["bandwidth"] == pytest.approx(3e12)
    assert row["bandwidth_share"] == pytest.approx(0.75)
    assert row["flop_rate"] == pytest.approx(6e12)
    assert row["flop_share"] == pytest.approx(0.1)
    assert row["intensity"] == pytest.approx(2)
    assert (row["bound"], row["bound_share"]) == ("memory", pytest.approx(0.75))
    assert (row["best_peer"], row["peer_ratio"]) == ("cupy", pytest.approx(1.2))
    assert row["cpu_ratio"] == pytest.approx(50)
    assert row["cpu_ratio_end_to_end"] == pytest.approx(5)


@pytest.mark.parametrize(
    ("bytes", "flops", "bound"),
    [
        (4_000_000_000, 1000, "memory"),
        (4000, 60_000_000_000, "compute"),
        (4000, 1000, "launch"),
        (4000, None, "launch"),
    ],
)
def test_the_largest_least_time_binds(bytes, flops, bound):
    row = row_of(case_result("k", times={"cold_time": 2e-3}, bytes=bytes, flops=flops))
    assert row["bound"] == bound


def test_no_bound_is_named_where_a_limit_was_not_measured():
    without_peak = record_of(*MACHINE[:2], case_result("k", times={"cold_time": 1e-3}, flops=10))
    assert summary(without_peak).iloc[-1]["bound"] is None


def test_the_spread_lies_between_processes():
    one = Measurement("cold_time", "kernel", ((1.0, 1.0), (1.1, 1.1), (1.2, 1.2)))
    row = row_of(case_result("k", measurements=(one,)))
    assert row["cold_time"] == pytest.approx(1.1)
    assert row["cold_time_spread"] == pytest.approx(0.1 / 1.1)


def test_an_invalid_time_enters_no_derived_value_and_is_told():
    bad = measurement("cold_time", 1e-9, valid=False, reason="below the floor")
    row = row_of(case_result("k", measurements=(bad,)))
    assert math.isnan(row["cold_time"]) and math.isnan(row["bandwidth"])
    assert row["invalid"] == "kernel cold_time: below the floor"


def test_an_invalid_peer_is_no_rival():
    peer = measurement("cold_time", 1e-9, "peer:torch", valid=False, reason="wrong")
    row = row_of(case_result("k", measurements=(measurement("cold_time", 1e-3), peer)))
    assert row["best_peer"] is None and math.isnan(row["peer_ratio"])


def test_every_case_has_one_row_with_every_column():
    for record in (gpu_record(), cpu_record(), record_of()):
        frame = summary(record)
        assert list(frame.columns) == list(COLUMNS)
        assert list(frame["case"]) == [case.name for case in record.cases]


def test_a_cpu_record_has_wall_times_and_nothing_made_up():
    frame = summary(cpu_record())
    assert frame["wall_time"].notna().all()
    assert frame[["cold_time", "bandwidth", "bandwidth_share", "peer_ratio", "cpu_ratio"]].isna().all(axis=None)


def test_the_cache_is_found_among_the_machines_facts():
    assert cache_bytes({"l2_bytes": 5}) == 5
    assert cache_bytes({"host": {"cores": 2}, "device": {"l2_bytes": 7}}) == 7
    assert cache_bytes({"id": "x", "device": "some CPU"}) == 0


def test_a_copy_within_the_cache_gives_no_share():
    small = case_result("copy", times={"cold_time": 1e-6}, bytes=1000, ceiling="bandwidth")
    assert limits_of(record_of(small)).ceilings == {}


def test_numbers_that_are_none_stay_unknown():
    assert number("inf") == math.inf
    assert [number(value) for value in (None, "x", float("nan"))] == [None, None, None]


@pytest.mark.parametrize("record", [gpu_record(), cpu_record()])
def test_rows_are_those_of_the_table(record):
    assert str(rows_of(summary(record))) == str(summary_rows(record)), "as text: NaN does not equal NaN"

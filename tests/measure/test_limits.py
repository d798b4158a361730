"""The machine's floor and ceilings from planted machine kernels."""

from dataclasses import replace

import pytest

from prism_bench.measure.plausibility import Limits, measured_limits, peaks_of
from tests.report.synthetic import case_result, measurement

COPY = case_result("copy", times={"cold_time": 2e-3}, bytes=8_000_000_000, ceiling="bandwidth")
FMA = case_result("fma", times={"cold_time": 2e-3, "hot_time": 1e-3}, bytes=8, flops=60_000_000_000, ceiling="fp32")
NULL = case_result("null", times={"cold_time": 4e-6, "hot_time": 5e-7}, bytes=0, ceiling="launch")


def test_each_machine_kernel_gives_its_limit():
    limits = measured_limits([COPY, FMA, NULL])
    assert limits.ceilings == pytest.approx({"bandwidth": 4e12, "fp32": 60e12})
    assert limits.floors == pytest.approx({"cold_time": 4e-6, "hot_time": 5e-7})
    assert limits.sources == {"bandwidth": COPY.name, "fp32": FMA.name, "launch": NULL.name}


def test_the_best_copy_is_the_ceiling():
    slow = case_result("copy", times={"cold_time": 4e-3}, bytes=8_000_000_000, ceiling="bandwidth", name="slow")
    assert measured_limits([slow, COPY]).sources["bandwidth"] == COPY.name


def test_what_one_of_several_boards_measured_alone_is_no_ceiling_where_all_measured_another():
    alone = case_result("copy", times={"cold_time": 1e-3}, bytes=8_000_000_000, ceiling="bandwidth", name="alone")
    alone = replace(alone, board="GPU-1")
    assert {"bandwidth": COPY.name} == measured_limits([alone, COPY]).sources
    assert {"bandwidth": "alone", "launch": NULL.name} == measured_limits([alone, NULL]).sources


def test_a_copy_that_fits_in_the_cache_is_no_ceiling():
    assert "bandwidth" not in measured_limits([COPY], cache_bytes=COPY.bytes).ceilings


def test_invalid_and_missing_measurements_make_no_limit():
    refused = case_result("copy", ceiling="bandwidth", measurements=(measurement("cold_time", 1e-3, valid=False),))
    empty = case_result("null", ceiling="launch")
    assert measured_limits([refused, empty, case_result("softmax", times={"cold_time": 1e-6})]) == Limits()


def test_the_lowest_believable_time_is_the_floor_less_its_spread():
    limits = Limits(floors={"cold_time": 4e-6, "hot_time": 1e-6}, spreads={"cold_time": 0.05})
    assert limits.lowest == pytest.approx({"cold_time": 3.8e-6, "hot_time": 1e-6})


def test_reads_have_a_ceiling_of_their_own_in_bytes():
    read = case_result("read", times={"cold_time": 2e-3}, bytes=9_000_000_000, flops=1, ceiling="read_bandwidth")
    assert measured_limits([COPY, read]).ceilings == pytest.approx({"bandwidth": 4e12, "read_bandwidth": 4.5e12})


H200 = {"memory_clock": 3_201_000_000, "memory_bus_bits": 6016, "sm_count": 132, "fp32_lanes": 128,
        "highest_sm_clock": 1_980_000_000}  # fmt: skip


def test_peaks_follow_from_clocks_and_widths():
    assert peaks_of(H200) == pytest.approx({"bandwidth": 4.814e12, "fp32": 66.91e12}, rel=1e-3)


@pytest.mark.parametrize("absent", ["memory_clock", "memory_bus_bits", "sm_count", "fp32_lanes", "highest_sm_clock"])
@pytest.mark.parametrize("value", [None, 0, "?", True, []])
def test_a_fact_that_is_missing_or_odd_gives_no_peak(absent, value):
    peak = "bandwidth" if absent.startswith("memory") else "fp32"
    facts = {**H200, absent: value}
    assert peak not in peaks_of(facts)
    assert 1 == len(peaks_of({key: value for key, value in facts.items() if key != absent}))


def test_older_facts_have_no_peaks():
    assert {} == peaks_of({"device": "NVIDIA H200", "sm_count": 132, "l2_bytes": 50 << 20})
    assert {} == dict(measured_limits([COPY]).peaks)


def test_a_rate_beyond_the_peak_is_no_ceiling():
    fast = case_result("read", times={"cold_time": 1e-3}, bytes=9_000_000_000, ceiling="read_bandwidth")
    limits = measured_limits([COPY, FMA, fast], 50, {"bandwidth": 4.8e12, "fp32": 50e12})
    assert limits.ceilings == pytest.approx({"bandwidth": 4e12})
    assert (50, 4.8e12) == (limits.cache_bytes, limits.peaks["bandwidth"])

"""The machine's floor and ceilings from planted machine kernels."""

import pytest

from prism_bench.measure.limits import Limits, measured_limits
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

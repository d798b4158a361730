"""Ratios with intervals, and where the saved time went."""

import pytest

from prism_bench.extensions.fusion.benefit.saving import Prices, StageCost, Timed, saving, speedup, timed
from tests.extensions.fusion.benefit.toy_chain import AFTER_TIMES, BEFORE_TIMES, result
from tests.report.synthetic import measurement

PRICES = Prices(launch=1e-6, bandwidth=1e12, cache_bytes=1 << 20)


def of(seconds, **facts):
    return Timed(measurement("cold_time", seconds, **facts))


def told(model, emulator=None, counters=None):
    return {"model": model, "emulator": emulator, "counters": counters}


def cost(seconds, launches, **told_by):
    return StageCost(of(seconds, noise=0), launches, told(**told_by))


def test_the_ratio_has_an_interval_from_several_processes():
    found = speedup(of(1e-4), of(5e-5, seed=1))
    assert found.low < found.ratio < found.high
    assert 2 == pytest.approx(found.ratio, rel=0.02)


def test_one_process_has_a_ratio_and_says_why_it_has_no_interval():
    found = speedup(of(1e-4, processes=1, noise=0), of(5e-5, processes=1, noise=0))
    assert 2 == pytest.approx(found.ratio)
    assert (None, None, "one process a side: no interval") == (found.low, found.high, found.reason)


def test_without_a_time_there_is_a_reason():
    assert "not run" == speedup(of(1e-4), Timed(reason="not run")).reason
    assert "not run" == speedup(Timed(reason="not run"), of(1e-4)).reason


def test_the_saving_is_divided_into_launches_traffic_and_the_rest():
    found = saving(cost(30e-6, 12, model=6_000_000), cost(10e-6, 2, model=1_000_000), PRICES)
    assert 20e-6 == pytest.approx(found.seconds)
    assert 10e-6 == pytest.approx(found.launches)
    assert 5e-6 == pytest.approx(found.traffic)
    assert 5e-6 == pytest.approx(found.rest)
    assert (10, 5_000_000, "model", False) == (found.removed_launches, found.removed_bytes, found.basis, found.cached)


def test_the_parts_add_up_where_the_fused_form_is_slower():
    found = saving(cost(10e-6, 3, model=9000), cost(30e-6, 1, model=1000), PRICES)
    assert found.seconds < 0
    assert found.seconds == pytest.approx(found.launches + found.traffic + found.rest)


@pytest.mark.parametrize(
    ("before", "after", "basis"),
    [
        (told(100, 200, 300), told(1, 2, 3), "counters"),
        (told(100, 200, 300), told(1, 2), "emulator"),
        (told(100, 200), told(1, None, 3), "model"),
    ],
)
def test_bytes_are_those_of_the_best_witness_of_both_stages(before, after, basis):
    found = saving(cost(3e-6, 2, **before), cost(1e-6, 1, **after), PRICES)
    assert (basis, before[basis] - after[basis]) == (found.basis, found.removed_bytes)


def test_bytes_that_fit_in_the_last_cache_are_marked():
    assert saving(cost(3e-6, 2, model=2 << 20), cost(1e-6, 1, model=1 << 20), PRICES).cached
    assert not saving(cost(3e-6, 2, model=3 << 20), cost(1e-6, 1, model=1 << 20), PRICES).cached


def test_without_floor_and_ceiling_nothing_is_divided():
    found = saving(cost(3e-6, 2, model=2), cost(1e-6, 1, model=1), Prices(None, None, 0))
    assert (2e-6, None, None, None) == (pytest.approx(found.seconds), found.launches, found.traffic, found.rest)


def test_issued_is_the_longer_of_host_and_device():
    host, device = result(times=BEFORE_TIMES), result("full", times=AFTER_TIMES)
    host, device = timed(host, "issued", "").figure, timed(device, "issued", "").figure
    assert ("kernel launch_time", pytest.approx(20e-6)) == (host.source, host.value)
    assert ("kernel hot_time", pytest.approx(3e-6)) == (device.source, device.value)


def test_issued_needs_both():
    found = timed(result(times={"hot_time": 1e-6}), "issued", "")
    assert (None, "toy_chain[n=1000]: the record holds no launch time") == (found.measurement, found.reason)


def test_what_is_invalid_is_no_time():
    invalid = result(measurements=(measurement("cold_time", 1e-6, valid=False, reason="throttled throughout"),))
    assert "throttled throughout" == timed(invalid, "cold_time", "").reason


def test_a_wrong_kernel_has_no_time_and_its_reason():
    wrong = result(status="wrong", reason="y[0] is 3, reference 4")
    assert "y[0] is 3, reference 4" == timed(wrong, "cold_time", "").reason
    assert "never run" == timed(None, "cold_time", "never run").reason

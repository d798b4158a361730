"""Medians and spreads between processes, merging, and how a measurement prints."""

import pytest

from prism_bench.errors import ResultsError
from prism_bench.record.measurement import Measurement, merged


def cold(*processes, **facts):
    return Measurement("cold_time", "kernel", processes, **facts)


def test_the_median_is_that_of_the_processes():
    assert cold((1.0, 1.0, 1.0, 1.0), (2.0,), (3.0,)).median == 2.0
    assert cold((1.0, 5.0, 3.0)).median == 3.0
    assert cold().median is None and cold(()).median is None


def test_the_spread_is_half_the_range_over_the_median():
    assert cold((9.0,), (10.0,), (12.0,)).spread == pytest.approx(0.15)
    assert cold((9.0, 20.0)).spread is None


def test_the_clock_is_the_median_of_what_was_read():
    assert cold((1.0,), clocks=((1.9e9, 2.0e9), (2.1e9,))).clock == 2.0e9
    assert cold((1.0,)).clock is None


def test_merging_keeps_processes_apart():
    one = merged([cold((1.0, 2.0), throttled=1, notes=("a",)), cold((3.0,), throttled=2, notes=("a", "b"))])
    assert one.processes == ((1.0, 2.0), (3.0,))
    assert (one.throttled, one.notes, one.valid, one.reason) == (3, ("a", "b"), True, None)


def test_one_invalid_part_makes_the_whole_invalid():
    one = merged([cold((1.0,)), cold((2.0,), valid=False, reason="too fast")])
    assert (one.valid, one.reason) == (False, "too fast")


def test_an_empty_part_does_not_spoil_the_filled_ones():
    one = merged([cold(reason="crashed"), cold((1.0,))])
    assert (one.processes, one.valid, one.reason) == (((1.0,),), True, None)
    assert merged([cold(reason="no graphs"), cold(reason="no graphs")]).reason == "no graphs"


def test_different_metrics_are_never_merged():
    with pytest.raises(ResultsError):
        merged([cold((1.0,)), Measurement("hot_time", "kernel", ((1.0,),))])


def test_a_measurement_prints_what_it_knows():
    assert str(cold((1e-6,), (1.1e-6,), (1.2e-6,), clocks=((2e9,),))) == (
        "kernel cold_time: 1.10 us (n=3, processes within 9.1 %, 2.00 GHz)"
    )
    assert str(cold(reason="no device")) == "kernel cold_time: not measured (no device)"
    assert str(cold((1e-6,), valid=False, reason="too fast")).endswith("INVALID: too fast")

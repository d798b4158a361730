"""What samples say against a callable's time, and that honest ones say nothing."""

import numpy as np
import pytest

from prism_bench.measure.call_checks import (
    at_overhead,
    has_odd_sample,
    less_work_when_cold,
    less_work_when_hot,
    levels,
    too_many_bytes,
    too_many_operations,
)

FLOORS = {"nothing": 2.0e-6, "launch": 3.0e-6}


def test_one_in_ten_makes_two_levels_of_other_work():
    found = levels([2.9e-6] * 22 + [323e-6] * 2)
    assert (22, 2, True) == (found.fast, found.slow, found.is_other_work)
    assert "two levels: 22 samples near 2.90 us, 2 near 323 us" == str(found)


def test_levels_that_the_same_work_may_have_are_told_apart():
    found = levels([100e-6] * 5 + [150e-6] * 7)
    assert (5, 7, False) == (found.fast, found.slow, found.is_other_work)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("noise", [0.002, 0.05])
def test_noise_has_one_level(seed, noise):
    rng = np.random.default_rng(seed)
    assert levels((320e-6 * np.exp(noise * rng.standard_normal(24))).tolist()) is None


def test_steps_of_the_timer_and_a_late_block_are_no_levels():
    assert levels([1.0e-6] * 12 + [2.0e-6] * 12) is None


@pytest.mark.parametrize("samples", [[], [1e-3], [1e-3, 9e-3], [1e-3] * 23 + [9e-3]])
def test_a_single_sample_is_no_level(samples):
    assert levels(samples) is None


def test_a_single_odd_sample_asks_for_more():
    assert has_odd_sample([1e-3] * 23 + [9e-3])
    assert has_odd_sample([1e-4] + [1e-3] * 23)
    assert not has_odd_sample([1e-3, 1.1e-3, 1.2e-3])
    assert not has_odd_sample([])


def test_what_takes_no_longer_than_nothing_has_no_time():
    assert "at launch overhead: nothing to time (2.10 us; no work" in at_overhead(2.1e-6, **FLOORS)
    assert at_overhead(3.0e-6, **FLOORS) is None
    assert at_overhead(320e-6, **FLOORS) is None


def test_a_replay_that_does_nothing_is_not_the_call():
    """323 us cold and 1.47 us hot; memory fills an H200's cache in 13 us."""
    assert "does not do the work of the call" in less_work_when_hot(323e-6, 1.47e-6, 3e-6, 13e-6)


@pytest.mark.parametrize(
    ("cold", "hot"), [(3.0e-6, 1.1e-6), (18.5e-6, 9e-6), (60e-6, 15e-6), (323e-6, 320e-6), (2e-3, 1.2e-3)]
)
def test_caches_and_graphs_may_save_what_they_can(cold, hot):
    assert less_work_when_hot(cold, hot, 3e-6, 13e-6) is None


def test_a_call_that_is_quick_only_when_caches_were_cleared_is_found():
    assert "does less when timed" in less_work_when_cold(20e-6, 320e-6, 13e-6)
    assert less_work_when_cold(320e-6, 300e-6, 13e-6) is None
    assert less_work_when_cold(3e-6, 9e-6, 13e-6) is None
    assert less_work_when_cold(9e-6, 24e-6, 13e-6) is None  # dirty lines were written back


@pytest.mark.parametrize(
    ("moved", "seconds", "cache", "words"),
    [
        (805e6, 150e-6, 0, "memory moves 4.80 TB/s at most"),
        (805e6, 100e-6, 50_000_000, "memory moves 4.80 TB/s at most in addition to the 50.0 MB that L2 holds"),
        (805e6, 1.47e-6, 50_000_000, "548 TB/s"),
        (40e6, 1.0e-6, 50_000_000, "L2 gives 33.0 TB/s at most"),
    ],
)
def test_more_bytes_than_memory_or_cache_can_move_are_refused(moved, seconds, cache, words):
    assert words in too_many_bytes(moved, seconds, 4.8e12, cache, 33e12)


@pytest.mark.parametrize(
    ("moved", "seconds", "cache"),
    [(805e6, 175e-6, 0), (40e6, 5e-6, 50_000_000), (None, 1e-9, 0), (1e9, 0.0, 0), (100e6, 15e-6, 50_000_000)],
)
def test_what_can_be_is_left_alone(moved, seconds, cache):
    assert too_many_bytes(moved, seconds, 4.8e12, cache, 33e12) is None


def test_an_unknown_bus_leaves_the_caches_bound():
    assert too_many_bytes(805e6, 100e-6, None, 0, 33e12) is None
    assert "at most" in too_many_bytes(805e6, 1e-6, None, 0, 33e12)


def test_more_operations_than_the_device_does_are_refused():
    assert "3096 PFLOP/s; this device does 4.30 PFLOP/s at most" in too_many_operations(10**15, 323e-6, 4.3e15)
    assert too_many_operations(10**12, 323e-6, 4.3e15) is None
    assert too_many_operations(None, 323e-6, 4.3e15) is None

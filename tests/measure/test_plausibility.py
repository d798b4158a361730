"""What is impossible is refused with both numbers; what is merely good is not."""

import pytest

from prism_bench.measure.limits import Limits
from prism_bench.measure.plausibility import implausible, is_fp32, judged
from tests.report.synthetic import case_result

FLOORS = {"cold_time": 4e-6, "hot_time": 5e-7}
CEILINGS = {"bandwidth": 4e12, "fp32": 60e12}
LIMITS = Limits(floors=FLOORS, ceilings=CEILINGS)


def reason(metric="cold_time", seconds=1e-3, bytes=None, flops=None):
    return implausible(metric, seconds, bytes, flops, floors=FLOORS, ceilings=CEILINGS)


@pytest.mark.parametrize(
    ("metric", "seconds", "possible"),
    [
        ("cold_time", 3.9e-6, False),
        ("cold_time", 4.0e-6, True),
        ("hot_time", 4.9e-7, False),
        ("hot_time", 5.1e-7, True),
        ("launch_time", 1e-7, True),
        ("wall_time", 1e-7, True),
        ("wall_time", 0.0, False),
    ],
)
def test_a_time_below_the_floor_of_its_clock_is_refused(metric, seconds, possible):
    assert (reason(metric, seconds) is None) == possible


@pytest.mark.parametrize(("share", "possible"), [(1.00, True), (1.029, True), (1.031, False)])
def test_cold_bandwidth_may_pass_the_copy_ceiling_by_three_percent(share, possible):
    assert (reason(bytes=4e9 * share) is None) == possible


@pytest.mark.parametrize(("share", "possible"), [(1.00, True), (1.049, True), (1.051, False)])
def test_arithmetic_may_pass_its_ceiling_by_five_percent(share, possible):
    assert (reason(flops=60e9 * share) is None) == possible
    assert (reason("hot_time", flops=60e9 * share) is None) == possible


def test_what_only_reads_may_pass_the_copy_ceiling_up_to_that_of_reads():
    ceilings = {**CEILINGS, "read_bandwidth": 4.4e12}
    assert implausible("cold_time", 1e-3, int(4.4e9), None, floors={}, ceilings=ceilings) is None
    assert "read ceiling" in implausible("cold_time", 1e-3, int(4.6e9), None, floors={}, ceilings=ceilings)


def test_hot_times_say_nothing_about_memory():
    assert reason("hot_time", bytes=9e9) is None


def test_without_bytes_operations_or_limits_nothing_is_refused():
    assert reason() is None
    assert implausible("cold_time", 1e-9, 10**12, 10**15, floors={}, ceilings={}) is None


def test_the_reason_states_both_numbers():
    assert "3.00 us" in reason(seconds=3e-6) and "4.00 us" in reason(seconds=3e-6)
    assert "6.00 TB/s" in reason(bytes=6e9) and "4.00 TB/s" in reason(bytes=6e9)
    assert "90.0 TFLOP/s" in reason(flops=90e9) and "60.0 TFLOP/s" in reason(flops=90e9)


def test_judging_marks_the_impossible_and_keeps_its_samples():
    times = {"cold_time": 1e-3, "hot_time": 1e-3, "cold_time@peer:torch": 2e-3}
    (case,) = judged([case_result("copyish", times=times, bytes=int(6e9))], LIMITS)
    cold, hot, peer = case.measurements
    assert not cold.valid and cold.samples and "above the copy ceiling" in cold.reason
    assert hot.valid and peer.valid


def test_a_measurement_that_is_already_invalid_keeps_its_reason():
    (case,) = judged([case_result("k", times={"cold_time": 1e-9})], LIMITS)
    (again,) = judged([case], Limits(floors={"cold_time": 1.0}))
    assert again.measurements[0].reason == case.measurements[0].reason


def test_peers_are_not_held_to_the_declared_operations():
    times = {"cold_time@peer:torch": 1e-3}
    (case,) = judged([case_result("matmul", times=times, flops=int(300e9))], LIMITS)
    assert case.measurements[0].valid


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({}, True),
        ({"arithmetic": "tensor"}, False),
        ({"arithmetic": "fp64"}, False),
    ],
)
def test_other_arithmetic_is_not_held_to_the_fp32_ceiling(changes, answer):
    assert is_fp32(case_result("matmul", **changes)) == answer

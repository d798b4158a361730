"""What is impossible is refused with both numbers; what is merely faster than a ceiling is noted."""

import pytest

from prism_bench.measure.plausibility import LaunchWork, Limits, Plausibility, is_fp32, judge, judged
from tests.report.synthetic import case_result

FLOORS = {"cold_time": 4e-6, "hot_time": 5e-7}
CEILINGS = {"bandwidth": 4e12, "fp32": 60e12}
LIMITS = Limits(floors=FLOORS, ceilings=CEILINGS)
# An H200: 4.8 TB/s, of which this run copied 4 and read 4.4, a cache of 50 MB; 66.9 TFLOP/s, of which it did 60.
PEAKS = {"bandwidth": 4.8e12, "fp32": 66.9e12}
CACHE = 50_000_000
H200 = Limits(floors=FLOORS, ceilings={**CEILINGS, "read_bandwidth": 4.4e12}, peaks=PEAKS, cache_bytes=CACHE)


def reason(metric="cold_time", seconds=1e-3, bytes=None, flops=None, limits=LIMITS):
    return judge(metric, seconds, LaunchWork(bytes and int(bytes), flops and int(flops)), limits).refusal


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
def test_without_the_buss_facts_cold_bandwidth_may_pass_the_copy_ceiling_by_three_percent(share, possible):
    assert (reason(bytes=4e9 * share) is None) == possible


@pytest.mark.parametrize(("share", "possible"), [(1.00, True), (1.049, True), (1.051, False)])
def test_without_the_clocks_facts_arithmetic_may_pass_its_ceiling_by_five_percent(share, possible):
    assert (reason(flops=60e9 * share) is None) == possible
    assert (reason("hot_time", flops=60e9 * share) is None) == possible


def test_what_only_reads_may_pass_the_copy_ceiling_up_to_that_of_reads():
    limits = Limits(ceilings={**CEILINGS, "read_bandwidth": 4.4e12})
    assert reason(bytes=4.4e9, limits=limits) is None
    assert "read ceiling" in reason(bytes=4.6e9, limits=limits)


def test_hot_times_say_nothing_about_memory_whose_bus_is_unknown():
    assert reason("hot_time", bytes=9e9) is None


def test_without_bytes_operations_or_limits_nothing_is_refused():
    assert reason() is None
    assert Plausibility() == judge("cold_time", 1e-9, LaunchWork(10**12, 10**15), Limits())


def test_the_reason_states_both_numbers():
    assert "3.00 us" in reason(seconds=3e-6) and "4.00 us" in reason(seconds=3e-6)
    assert "6.00 TB/s" in reason(bytes=6e9) and "4.00 TB/s" in reason(bytes=6e9)
    assert "90.0 TFLOP/s" in reason(flops=90e9) and "60.0 TFLOP/s" in reason(flops=90e9)


@pytest.mark.parametrize(
    ("rate", "ceiling", "peak"), [(4.61e12, 4.47e12, 4.81e12), (3.21e12, 3.11e12, 3.35e12), (3.28e12, 3.11e12, 3.35e12)]
)
def test_faster_than_the_read_ceiling_and_within_the_bus_is_a_remark(rate, ceiling, peak):
    """One case of an H200 and two of an H100 that were refused."""
    limits = Limits(ceilings={"bandwidth": 0.96 * ceiling, "read_bandwidth": ceiling}, peaks={"bandwidth": peak})
    found = judge("cold_time", 1e-3, LaunchWork(int(rate * 1e-3), None, 4), limits)
    assert found.refusal is None
    for number in (rate, ceiling, peak):
        assert f"{number / 1e12:.2f} TB/s" in found.remark
    assert "above the read ceiling of this run" in found.remark


@pytest.mark.parametrize("share", [0.9, 1.0, 1.029])
def test_near_a_ceiling_there_is_nothing_to_remark(share):
    assert Plausibility() == judge("cold_time", 1e-3, LaunchWork(int(share * 4.4e9), None, 4), H200)


@pytest.mark.parametrize(("bytes", "possible"), [(4.80e9, True), (4.84e9, True), (4.86e9, False)])
def test_what_the_bus_cannot_carry_is_refused(bytes, possible):
    found = judge("cold_time", 1e-3, LaunchWork(int(bytes), None, 4), H200)
    assert (found.refusal is None) == possible
    if not possible:
        assert "4.86 TB/s; the memory bus carries 4.80 TB/s" in found.refusal


@pytest.mark.parametrize(
    ("work", "seconds", "possible"),
    [
        (LaunchWork(40_000_000, None, 20_000_000), 5e-6, True),  # half of it is written, and may still be in the cache
        (LaunchWork(40_000_000, None, 20_000_000), 4.0e-6, False),  # the other half cannot have been there
        (LaunchWork(40_000_000, None, 4), 5e-6, False),
        (LaunchWork(40_000_000, None, 4), 9e-6, True),
        (LaunchWork(200_000_000, None, 200_000_000), 32e-6, True),  # a fill leaves no more than a cache behind
        (LaunchWork(200_000_000, None, 200_000_000), 30e-6, False),
        (LaunchWork(40_000_000), 4.1e-6, True),  # nobody knows what is written
    ],
)
def test_cold_caches_exclude_that_what_is_read_was_there(work, seconds, possible):
    assert (judge("cold_time", seconds, work, H200).refusal is None) == possible


@pytest.mark.parametrize(
    ("bytes", "seconds", "possible"),
    [(90e6, 1e-6, True), (300e6, 45e-6, True), (300e6, 40e-6, False), (9e9, 1e-3, False)],
)
def test_a_hot_time_moves_what_cannot_be_in_the_cache(bytes, seconds, possible):
    assert (reason("hot_time", seconds, bytes, limits=H200) is None) == possible


def test_beyond_the_fp32_lanes_is_refused_and_beyond_the_ceiling_is_a_remark():
    assert Plausibility() == judge("hot_time", 1e-3, LaunchWork(None, int(62e9)), H200)
    assert judge("hot_time", 1e-3, LaunchWork(None, int(66e9)), H200).remark == (
        "66.0 TFLOP/s is more than 5 % above the FP32 ceiling of this run, 60.0 TFLOP/s; the device can do 66.9 TFLOP/s"
    )
    assert "68.0 TFLOP/s" in reason("hot_time", flops=68e9, limits=H200)
    assert "66.9 TFLOP/s" in reason("cold_time", flops=68e9, limits=H200)


def test_judging_marks_the_impossible_and_keeps_its_samples():
    times = {"cold_time": 1e-3, "hot_time": 1e-3, "cold_time@peer:torch": 2e-3}
    (case,) = judged([case_result("copyish", times=times, bytes=int(6e9))], LIMITS)
    cold, hot, peer = case.measurements
    assert not cold.valid and cold.samples and "above the copy ceiling" in cold.reason
    assert hot.valid and peer.valid


def test_judging_notes_what_is_fast_and_possible():
    times = {"cold_time": 1e-3, "hot_time": 1e-3, "cold_time@peer:torch": 1e-3}
    (case,) = judged([case_result("readish", times=times, bytes=int(4.61e9), name="readish[n=1]")], H200)
    cold, hot, peer = case.measurements
    assert cold.valid and hot.valid and peer.valid
    assert cold.notes[0].startswith("readish[n=1]: cold_time: 4.61 TB/s is more than 3 % above the read ceiling")
    assert peer.notes[0].startswith("readish[n=1]: peer torch, cold_time: 4.61 TB/s is more than")
    assert () == hot.notes


def test_judging_knows_what_a_case_writes():
    case = case_result("fill", times={"cold_time": 5e-6}, bytes=40_000_000, name="fill[n=1]")
    assert judged([case], H200, {"fill[n=1]": 4})[0].measurements[0].valid is False
    assert judged([case], H200, {"fill[n=1]": 40_000_000})[0].measurements[0].valid


def test_a_measurement_that_is_already_invalid_keeps_its_reason():
    (case,) = judged([case_result("k", times={"cold_time": 1e-9})], LIMITS)
    (again,) = judged([case], Limits(floors={"cold_time": 1.0}))
    assert again.measurements[0].reason == case.measurements[0].reason


def test_peers_are_not_held_to_the_declared_operations():
    times = {"cold_time@peer:torch": 1e-3}
    (case,) = judged([case_result("matmul", times=times, flops=int(300e9))], LIMITS)
    assert case.measurements[0].valid


@pytest.mark.parametrize(
    ("changes", "answer"), [({}, True), ({"arithmetic": "tensor"}, False), ({"arithmetic": "fp64"}, False)]
)
def test_other_arithmetic_is_not_held_to_the_fp32_ceiling(changes, answer):
    assert is_fp32(case_result("matmul", **changes)) == answer

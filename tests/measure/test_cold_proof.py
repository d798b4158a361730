"""The proof that caches were cold, from planted reads that fit in them."""

import pytest

from prism_bench.measure.plausibility import COLD_PROOF_BYTES, judged, measured_limits
from tests.report.synthetic import case_result, measurement

CACHE = 50 << 20
BYTES = 16 << 20
COPY = case_result("copy", times={"cold_time": 2e-3}, bytes=8_000_000_000, ceiling="bandwidth")  # 4 TB/s
NULL = case_result("null", times={"cold_time": 4e-6, "hot_time": 1e-6}, bytes=0, ceiling="launch")
KERNEL = case_result("softmax", times={"cold_time": 1e-4, "hot_time": 9e-5}, bytes=300_000_000)


def read(kernel, cold, hot, bytes=BYTES, **changes):
    """A read that takes `cold` and `hot` microseconds more than an empty launch."""
    times = {"cold_time": 4e-6 + cold * 1e-6, "hot_time": 1e-6 + hot * 1e-6}
    return case_result(kernel, times=times, bytes=bytes, ceiling="read_bandwidth", **changes)


FAST = read("fast", cold=6, hot=3)  # 5.6 TB/s from the cache
WARM = read("warm", cold=3.1, hot=3)
SLOW = read("slow", cold=17.8, hot=17.3)  # 1 TB/s: it waits for something else
SLOW_PROOF = read("slow_proof", cold=12.2, hot=9.7)


def doubt(*reads, others=(COPY, NULL), cache_bytes=CACHE):
    return measured_limits([*reads, *others], cache_bytes).cold_doubt


@pytest.mark.parametrize("reads", [[FAST], [SLOW_PROOF], [FAST, SLOW], [SLOW, FAST], [SLOW_PROOF, SLOW]])
def test_a_read_that_gains_from_the_cache_is_enough(reads):
    assert doubt(*reads) is None


@pytest.mark.parametrize("reads", [[WARM], [FAST, WARM], [WARM, SLOW_PROOF], [SLOW, WARM, FAST]])
def test_a_fast_read_without_a_gain_contradicts_every_proof(reads):
    reason = doubt(*reads)
    assert reason.startswith(
        f"the caches were warm: {WARM.name} read 16.8 MB in 7.10 us after clearing, in 4.00 us without"
    )


def test_a_slow_read_without_a_gain_shows_nothing_and_the_reason_is_that():
    reason = doubt(SLOW)
    assert reason.startswith("no proof that the caches were cold: ")
    assert f"{SLOW.name} read 16.8 MB in 21.8 us after clearing, in 18.3 us without; 970 GB/s from the cache" in reason
    assert reason.endswith("are too slow for a proof where memory delivers 4.00 TB/s")
    assert "were warm" not in reason


def test_the_fastest_of_reads_and_copies_is_what_memory_delivers():
    """A read of 6 TB/s: its 5.6 TB/s from the cache show nothing then."""
    memory = case_result("big", times={"cold_time": 1e-3}, bytes=6_000_000_000, ceiling="read_bandwidth")
    assert doubt(WARM).startswith("the caches were warm")
    assert "memory delivers 6.00 TB/s" in doubt(WARM, memory)


def test_a_read_barely_faster_than_memory_contradicts_nothing():
    """4.2 TB/s from the cache: at the 4 TB/s of memory it would not gain enough either."""
    barely = read("barely", cold=4.1, hot=4)
    assert doubt(barely).startswith("no proof")
    assert doubt(barely, FAST) is None


def test_without_a_ceiling_of_memory_a_flat_read_shows_nothing():
    assert "no ceiling of memory was measured" in doubt(WARM, others=(NULL,))
    assert doubt(FAST, others=(NULL,)) is None


def test_a_failed_measurement_is_named_as_the_reason():
    spoilt = measurement("cold_time", 1e-5, valid=False, reason="another process used the GPU")
    invalid = case_result("read", bytes=BYTES, ceiling="read_bandwidth", measurements=(spoilt,))
    crashed = case_result("crashed", bytes=BYTES, ceiling="read_bandwidth", status="crashed")
    assert doubt(invalid) == (
        f"no proof that the caches were cold: {invalid.name} has no valid cold_time: another process used the GPU"
    )
    assert f"{crashed.name} has no valid cold_time: it was not measured" in doubt(crashed)
    assert f"{SLOW.name} read" in doubt(invalid, SLOW) and invalid.name in doubt(invalid, SLOW)
    assert doubt(invalid, crashed, FAST) is None


def test_reads_cannot_be_compared_without_launch_overheads():
    assert doubt(FAST, others=(COPY,)).endswith("the launch overhead was not measured")


def test_nothing_is_doubted_where_no_read_fits_or_nothing_was_timed():
    small, large = (read("warm", 3.1, 3, size) for size in (COLD_PROOF_BYTES - 1, CACHE // 2 + 1))
    assert doubt(small, large) is None
    assert doubt(WARM, cache_bytes=0) is None
    assert doubt() is None
    assert doubt(case_result("read", bytes=BYTES, ceiling="read_bandwidth"), others=()) is None


@pytest.mark.parametrize("one", [WARM, SLOW])
def test_doubted_cold_times_are_invalid_for_that_reason_and_hot_ones_are_not(one):
    limits = measured_limits([one, COPY, NULL, KERNEL], CACHE)
    (kernel,) = judged([KERNEL], limits)
    cold, hot = kernel.measurement("cold_time"), kernel.measurement("hot_time")
    assert (cold.valid, cold.reason) == (False, limits.cold_doubt)
    assert hot.valid and hot.reason is None


@pytest.mark.parametrize("one", [WARM, SLOW])
def test_a_record_that_was_judged_gives_the_same_reason_again(one):
    cases = [one, COPY, NULL, KERNEL]
    before = measured_limits(cases, CACHE)
    assert measured_limits(judged(cases, before), CACHE).cold_doubt == before.cold_doubt

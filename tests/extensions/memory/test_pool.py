"""The pool on a device that only counts: classes, order of streams, limits."""

import pytest

from prism_bench.errors import UsageError
from prism_bench.extensions.memory import PoolLimits
from prism_bench.extensions.memory.pool import class_of
from tests.extensions.memory.fake_device import pool_on


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (1, 1), (100, 128), (1024, 1024), (1025, 2048)])
def test_classes_are_the_published_ones(size, expected):
    assert expected == class_of(size)


def test_the_published_waste():
    assert 524_288 == class_of(400_000)
    assert 23.7 == round(100 * (1 - 400_000 / 524_288), 1)


def test_a_freed_block_is_used_again():
    device, pool = pool_on()
    first = pool.allocate(5000)
    pool.free(first)
    second = pool.allocate(8192)
    assert first.address == second.address
    state = pool.state()
    assert (2, 1, 1, 1) == (state.requests, state.hits, state.misses, state.releases)
    assert 0.5 == state.hit_rate
    assert 8192 == device.held


def test_the_block_freed_last_comes_first():
    _, pool = pool_on(slack=1.0)
    older, younger = pool.allocate(1000), pool.allocate(1000)
    pool.free(older)
    pool.free(younger)
    assert [younger.address, older.address] == [pool.allocate(1000).address for _ in range(2)]


def test_small_requests_share_the_least_class():
    device, pool = pool_on(least=512)
    pool.free(pool.allocate(1))
    pool.allocate(512)
    assert 512 == device.held


def test_zero_bytes_need_no_memory():
    device, pool = pool_on()
    lease = pool.allocate(0)
    pool.free(lease)
    pool.free(lease)
    assert (0, 0, 0) == (lease.address, device.held, pool.state().requests)
    with pytest.raises(UsageError, match="a size is 0 or more"):
        pool.allocate(-1)


def test_another_stream_waits_until_the_device_is_done():
    device, pool = pool_on(slack=1.0)
    lease = pool.allocate(1000)
    device.work()
    pool.free(lease)
    device.current = 1
    busy = pool.allocate(1000)
    assert lease.address != busy.address
    device.finish(0)
    assert lease.address == pool.allocate(1000).address


def test_work_after_the_mark_does_not_delay_a_block():
    device, pool = pool_on(slack=2.0)
    lease = pool.allocate(1000)
    device.work()
    pool.free(lease)
    device.current = 1
    pool.allocate(1000)
    device.finish(0)
    device.work(0)
    assert lease.address == pool.allocate(1000).address


def test_mark_is_renewed_after_each_use():
    device, pool = pool_on(slack=3.0)
    lease = pool.allocate(1000)
    pool.free(lease)
    device.current = 1
    pool.free(pool.allocate(1000))  # asks about it, and gets it
    device.current = 0
    again = pool.allocate(1000)
    device.work(0)
    pool.free(again)
    device.current = 1
    assert lease.address == again.address != pool.allocate(1000).address


def test_own_stream_waits_for_the_stream_of_the_release():
    device, pool = pool_on()
    lease = pool.allocate(1000)
    device.current = 1
    device.work()
    pool.free(lease)
    device.current = 0
    assert lease.address == pool.allocate(1000).address
    assert [(0, (1, 1))] == device.waits
    assert 1 == pool.state().waits


def test_third_stream_needs_both_earlier_streams():
    device, pool = pool_on(slack=3.0)
    lease = pool.allocate(1000)
    device.work()
    device.current = 1
    device.work()
    pool.free(lease)
    device.current = 2
    device.finish(0)
    assert lease.address != pool.allocate(1000).address
    device.finish(1)
    assert lease.address == pool.allocate(1000).address


def test_sweep_releases_old_blocks():
    device, pool = pool_on(seconds=60)
    pool.free(pool.allocate(1000))
    device.time = 60.0
    assert 0 == pool.sweep()
    device.time = 60.1
    assert 1 == pool.sweep()
    assert (0, {"age": 1}) == (device.held, pool.state().evictions)


def test_request_releases_old_blocks():
    device, pool = pool_on(seconds=60)
    pool.free(pool.allocate(1000))
    device.time = 61.0
    pool.allocate(5000)
    assert {"age": 1} == pool.state().evictions


def test_cap_evicts_the_oldest_blocks():
    device, pool = pool_on(cap=3072, slack=9.0)
    leases = [pool.allocate(1024), pool.allocate(1024), pool.allocate(2048)]
    for lease in leases:
        pool.free(lease)
    assert {"cap": 1} == pool.state().evictions
    assert leases[0].address not in device.blocks
    assert {leases[1].address, leases[2].address} == set(device.blocks)


def test_class_limit_evicts_the_oldest_block():
    device, pool = pool_on(per_class=2, slack=9.0)
    leases = [pool.allocate(1000) for _ in range(3)]
    for lease in leases:
        pool.free(lease)
    assert {"class": 1} == pool.state().evictions
    assert leases[0].address not in device.blocks


def test_slack_limits_the_memory_held():
    device, pool = pool_on(slack=0.25)
    pool.free(pool.allocate(1 << 20))
    pool.free(pool.allocate(1 << 21))
    assert 1 << 21 == pool.state().peak_held
    assert {"slack": 1} == pool.state().evictions


def test_zero_option_clears_blocks():
    device, pool = pool_on(zero=True)
    device.current = 7
    lease = pool.allocate(1000)
    assert [(lease.address, 1000, 7)] == device.cleared


@pytest.mark.parametrize(
    ("limits", "reason"),
    [({"cap": -1}, "cap is -1"), ({"least": 500}, "power of two"), ({"seconds": -0.5}, "seconds is -0.5")],
)
def test_impossible_limits_are_refused(limits, reason):
    with pytest.raises(UsageError, match=reason):
        PoolLimits(**limits)


def test_the_state_as_json_has_the_published_keys():
    _, pool = pool_on()
    pool.free(pool.allocate(400_000))
    pool.allocate(100)
    plain = pool.state().plain()
    assert (2, 1) == (plain["allocate_requests"], plain["deallocate_requests"])
    assert (0, 2, 0.0) == (plain["pool_hits"], plain["pool_misses"], plain["hit_rate_percent"])
    assert (1, 524_288) == (plain["buffers_in_pool"], plain["pooled_bytes"])
    assert (1 - 100 / 512, 0.0) == (plain["internal_fragmentation"], plain["external_fragmentation"])

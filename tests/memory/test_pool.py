"""The pool on a device that keeps the books: classes, order of streams, limits, and every misuse."""

import gc
import os
import threading

import pytest

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.memory import Limits, SizeClassPool
from prism_bench.memory.limits import class_of
from tests.memory.fake_device import FakeDevice


def pool_on(device=None, **limits):
    device = device or FakeDevice()
    return device, SizeClassPool(device, Limits(**limits))


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


def test_nothing_takes_nothing():
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


def test_work_after_the_first_question_does_not_hold_a_block_back():
    device, pool = pool_on(slack=2.0)
    lease = pool.allocate(1000)
    device.work()
    pool.free(lease)
    device.current = 1
    pool.allocate(1000)
    device.finish(0)
    device.work(0)
    assert lease.address == pool.allocate(1000).address


def test_a_block_is_asked_about_anew_after_each_use():
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


def test_freed_on_another_stream_its_own_stream_waits_for_that_one():
    device, pool = pool_on()
    lease = pool.allocate(1000)
    device.current = 1
    device.work()
    pool.free(lease)
    device.current = 0
    assert lease.address == pool.allocate(1000).address
    assert [(0, (1, 1))] == device.waits
    assert 1 == pool.state().waits


def test_freed_on_another_stream_a_third_one_needs_both():
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


def test_what_is_free_for_too_long_goes():
    device, pool = pool_on(seconds=60)
    pool.free(pool.allocate(1000))
    device.time = 60.0
    assert 0 == pool.sweep()
    device.time = 60.1
    assert 1 == pool.sweep()
    assert (0, {"age": 1}) == (device.held, pool.state().evictions)


def test_the_sweep_comes_with_the_next_request():
    device, pool = pool_on(seconds=60)
    pool.free(pool.allocate(1000))
    device.time = 61.0
    pool.allocate(5000)
    assert {"age": 1} == pool.state().evictions


def test_the_cap_evicts_what_was_used_least_recently():
    device, pool = pool_on(cap=3072, slack=9.0)
    leases = [pool.allocate(1024), pool.allocate(1024), pool.allocate(2048)]
    for lease in leases:
        pool.free(lease)
    assert {"cap": 1} == pool.state().evictions
    assert leases[0].address not in device.blocks
    assert {leases[1].address, leases[2].address} == set(device.blocks)


def test_so_many_of_a_class_and_no_more():
    device, pool = pool_on(per_class=2, slack=9.0)
    leases = [pool.allocate(1000) for _ in range(3)]
    for lease in leases:
        pool.free(lease)
    assert {"class": 1} == pool.state().evictions
    assert leases[0].address not in device.blocks


def test_what_is_held_stays_near_what_was_in_use():
    device, pool = pool_on(slack=0.25)
    pool.free(pool.allocate(1 << 20))
    pool.free(pool.allocate(1 << 21))
    assert 1 << 21 == pool.state().peak_held
    assert {"slack": 1} == pool.state().evictions


def test_blocks_are_cleared_where_that_is_asked_for():
    device, pool = pool_on(zero=True)
    device.current = 7
    lease = pool.allocate(1000)
    assert [(lease.address, 1000, 7)] == device.cleared


def test_out_of_memory_gives_everything_back_and_tries_once_more():
    device, pool = pool_on(FakeDevice(capacity=5 << 20), slack=9.0)
    pool.free(pool.allocate(2 << 20))
    pool.allocate(4 << 20)
    assert {"memory": 1} == pool.state().evictions
    assert 1 == device.failures


def test_out_of_memory_for_good_is_the_devices_own_error_with_the_pools_state():
    device, pool = pool_on(FakeDevice(capacity=1 << 20))
    pool.allocate(1000)
    with pytest.raises(MemoryError, match="out of memory allocating 2097152 bytes") as caught:
        pool.allocate(2 << 20)
    assert "1.00 kB in use in blocks of 1.02 kB, 0 blocks of 0 B free" in caught.value.__notes__[0]
    assert (2, 1) == (device.failures, pool.state().requests)


def test_freed_twice_is_refused_and_changes_nothing():
    _, pool = pool_on()
    lease = pool.allocate(1000)
    pool.free(lease)
    before = pool.state()
    with pytest.raises(UsageError, match="1000 bytes at 0x[0-9a-f]+ were freed twice"):
        pool.free(lease)
    assert before == pool.state()


def test_an_old_lease_does_not_free_who_came_after_it():
    _, pool = pool_on()
    old = pool.allocate(1000)
    pool.free(old)
    new = pool.allocate(1000)
    assert old.address == new.address
    with pytest.raises(UsageError):
        pool.free(old)
    assert 1024 == pool.state().live


class _Collected(FakeDevice):
    """Python collects an array in the middle of an allocation."""

    def allocate(self, size):
        if self.victims:
            self.pool.free(self.victims.pop())
        return super().allocate(size)


def test_an_array_collected_in_the_middle_of_an_allocation():
    device = _Collected()
    device.victims = []
    pool = device.pool = SizeClassPool(device)
    victim = pool.allocate(1000)
    device.victims.append(victim)
    pool.allocate(5000)
    state = pool.state()
    assert (1, 1024, 8192) == (state.releases, state.free, state.live)


def test_two_releases_of_one_lease_that_nobody_can_be_told_of():
    device, pool = pool_on()
    lease = pool.allocate(1000)
    pool._lock.acquire()  # so that both are put aside, as when another thread is in the pool
    pool.free(lease)
    pool.free(lease)
    pool._lock.release()
    state = pool.state()
    assert (1, 1, 0, 1024) == (state.releases, state.refused, state.live, device.held)


def test_many_threads_keep_the_books():
    device, pool = pool_on(slack=0.5)
    failures = []

    def churn(stream):
        try:
            for step in range(300):
                lease = pool.allocate(1 + 997 * (step * stream % 13))
                pool.free(lease)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=churn, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = pool.state()
    assert [] == failures
    assert (1200, 1200, 0, 0) == (state.requests, state.releases, state.live, state.asked)
    assert device.held == state.free


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_leaves_the_parents_memory_alone():
    device, pool = pool_on()
    lease = pool.allocate(1000)
    pool._lock.acquire()  # another thread of the parent may be in the middle of something
    child = os.fork()
    if child == 0:
        os._exit(_in_the_child(device, pool, lease))
    pool._lock.release()
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _in_the_child(device, pool, lease):
    try:
        pool.allocate(1000)
    except BackendUnavailable as error:
        refused = "does not survive a fork" in str(error)
    else:
        refused = False
    pool.free(lease)
    return 0 if refused and device.held == 1024 else 1


def test_a_pool_that_nobody_holds_is_forgotten():
    from prism_bench.memory.pool import _POOLS

    _, pool = pool_on()
    assert pool in _POOLS
    count = len(_POOLS)
    del pool
    gc.collect()
    assert count > len(_POOLS)


@pytest.mark.parametrize(
    ("limits", "words"),
    [({"cap": -1}, "cap is -1"), ({"least": 500}, "power of two"), ({"seconds": -0.5}, "seconds is -0.5")],
)
def test_impossible_limits_are_refused(limits, words):
    with pytest.raises(UsageError, match=words):
        Limits(**limits)


def test_the_state_as_json_has_the_published_keys():
    _, pool = pool_on()
    pool.free(pool.allocate(400_000))
    pool.allocate(100)
    plain = pool.state().plain()
    assert (2, 1, 0, 2, 0.0, 1, 524_288) == tuple(
        plain[key]
        for key in ("allocate_requests", "deallocate_requests", "pool_hits", "pool_misses", "hit_rate_percent",
                    "buffers_in_pool", "pooled_bytes")
    )  # fmt: skip
    assert (1 - 100 / 512, 0.0) == (plain["internal_fragmentation"], plain["external_fragmentation"])

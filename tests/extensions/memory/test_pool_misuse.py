"""The pool under faults: out of memory, second and late releases, threads, forks."""

import gc
import os
import threading

import pytest

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.extensions.memory import SizeClassPool
from tests.extensions.memory.fake_device import FakeDevice, pool_on


def test_out_of_memory_gives_everything_back_and_tries_once_more():
    device, pool = pool_on(FakeDevice(capacity=5 << 20), slack=9.0)
    pool.free(pool.allocate(2 << 20))
    pool.allocate(4 << 20)
    assert {"memory": 1} == pool.state().evictions
    assert 1 == device.failures


def test_exact_size_is_allocated_when_its_class_does_not_fit():
    device, pool = pool_on(FakeDevice(capacity=3 << 20))
    lease = pool.allocate((2 << 20) + 1)
    assert ((2 << 20) + 512, (2 << 20) + 512) == (lease.held, device.held)
    pool.free(lease)
    assert (0, 0, {"class": 1}) == (device.held, pool.state().live, pool.state().evictions)


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


def test_old_lease_does_not_free_the_next_lease():
    _, pool = pool_on()
    old = pool.allocate(1000)
    pool.free(old)
    new = pool.allocate(1000)
    assert old.address == new.address
    with pytest.raises(UsageError):
        pool.free(old)
    assert 1024 == pool.state().live


class _Collected(FakeDevice):
    """A device on which Python collects an array in the middle of an allocation."""

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


def test_second_late_release_is_counted_as_refused():
    device, pool = pool_on()
    lease = pool.allocate(1000)
    pool._lock.acquire()  # so that both are put aside, as when another thread is in the pool
    pool.free(lease)
    pool.free(lease)
    pool._lock.release()
    state = pool.state()
    assert (1, 1, 0, 1024) == (state.releases, state.refused, state.live, device.held)


def test_counts_agree_with_many_threads():
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


def test_unreferenced_pool_is_collected():
    from prism_bench.extensions.memory.pool import _POOLS

    _, pool = pool_on()
    assert pool in _POOLS
    count = len(_POOLS)
    del pool
    gc.collect()
    assert count > len(_POOLS)

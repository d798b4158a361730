"""The pool under CuPy on a device: streams keep their data, no leaks, recovery from out of memory."""

import gc
from random import Random

import pytest

from prism_bench.extensions.memory import PoolLimits
from prism_bench.extensions.memory.pool import class_of

pytestmark = pytest.mark.gpu


@pytest.fixture
def cupy():
    import cupy

    return cupy


@pytest.fixture
def allocator(cupy):
    """CuPy's allocator during a test."""
    from prism_bench.extensions.memory.cupy_pool import PoolAllocator

    allocator, before = PoolAllocator(PoolLimits(slack=1.0)), cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(allocator)
    yield allocator
    cupy.cuda.set_allocator(before)
    gc.collect()
    allocator.pool.clear()


def test_arrays_come_from_the_pool_and_go_back(cupy, allocator):
    array = cupy.arange(100_000, dtype=cupy.float32)
    assert 400_000 == allocator.pool.state().asked
    assert float(100_000 * 99_999 / 2) == float(array.astype(cupy.float64).sum())
    del array
    gc.collect()
    assert 0 == allocator.pool.state().live


def test_a_million_random_allocations_leak_nothing(allocator):
    random, live = Random(7), []
    limits = allocator.pool.limits
    for _ in range(1_000_000):
        if live and (len(live) > 100 or random.random() < 0.5):
            place = random.randrange(len(live))
            live[place], live[-1] = live[-1], live[place]
            live.pop()
        else:
            live.append(allocator(random.randrange(1, 1 << 20)))
    state = allocator.pool.state()
    assert sum(class_of(pointer.mem.asked, limits.least) for pointer in live) == state.live
    assert state.peak_held <= (1 + limits.slack) * state.peak_live
    live.clear()
    assert (0, 0) == (allocator.pool.state().live, allocator.pool.state().asked)
    allocator.pool.clear()
    assert 0 == allocator.pool.state().held


def test_memory_in_use_by_a_stream_is_not_reused_by_others(cupy, allocator):
    """Each stream drops arrays while it still writes them; an array must hold the last data of its own stream."""
    streams, wrong = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)], []
    for step in range(200):
        with streams[step % 3]:
            array = cupy.full(1 << 18, step, dtype=cupy.float32)
            for _ in range(3):
                array += 1
            if float(array.min()) != step + 3 or float(array.max()) != step + 3:
                wrong.append(step)
            dropped = cupy.full(1 << 18, -1, dtype=cupy.float32)
            for _ in range(20):
                dropped *= 1.0001
            del dropped
    assert [] == wrong
    assert allocator.pool.state().hits > 0


def test_out_of_memory_is_cupys_own_error_and_the_pool_goes_on(cupy, allocator):
    free, total = cupy.cuda.runtime.memGetInfo()
    kept = cupy.zeros(1000)
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError, match="Out of memory allocating") as caught:
        allocator(2 * total)
    assert "size-class pool:" in caught.value.__notes__[0]
    assert 0.0 == float((cupy.zeros(1000) + kept).sum())


def test_zero_option_clears_blocks_on_the_device(cupy):
    from prism_bench.extensions.memory.cupy_pool import PoolAllocator

    allocator, before = PoolAllocator(PoolLimits(zero=True)), cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(allocator)
    try:
        dirty = cupy.full(5000, 3.0)
        del dirty
        assert 0.0 == float(cupy.empty(5000).sum())
        assert allocator.pool.state().hits > 0
    finally:
        cupy.cuda.set_allocator(before)


def test_every_allocator_serves_a_trace(cupy):
    from prism_bench.errors import BackendUnavailable
    from prism_bench.extensions.memory.cupy_pool import device_used, open_allocator
    from prism_bench.extensions.memory.pool import ALLOCATORS
    from prism_bench.extensions.memory.replay import footprint, replay
    from prism_bench.extensions.memory.trace import random_trace

    trace, served = random_trace(300), 0
    for name in ALLOCATORS:
        try:
            opened = open_allocator(name)
        except BackendUnavailable:
            continue
        replayed = replay(trace, opened.allocate)
        with opened.watched() as external:
            counts = {"used": opened.used, "held": opened.held, "device": device_used, "external": external}
            peaks = footprint(trace, opened.allocate, **counts)
        assert 300 == len(replayed.allocations) == len(replayed.releases)
        assert trace.tracked().peak == peaks.asked
        served += 1
        opened.close()
    assert served >= 3


def test_recorder_keeps_cupys_requests(cupy):
    from prism_bench.extensions.memory.cupy_pool import recording

    with recording("toy") as recorder:
        array = cupy.zeros(5000, dtype=cupy.float32)
        del array
        gc.collect()
        kept = cupy.zeros(3, dtype=cupy.float64)
    trace = recorder.trace()
    assert [20_000, 24] == [event.size for event in trace.events if event.size]
    assert 0 == trace.tracked().current
    assert 0 < recorder.tracker.tracked().internal < 0.5
    assert 0.0 == float(kept.sum())


def test_one_size_misses_once(allocator):
    for _ in range(2000):
        pointer = allocator(100_000)
        del pointer
    assert (1, 1999) == (allocator.pool.state().misses, allocator.pool.state().hits)

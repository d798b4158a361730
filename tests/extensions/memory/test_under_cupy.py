"""The pool as CuPy's allocator, without a device: CuPy's memory objects are made of numbers."""

import gc
from types import SimpleNamespace

import pytest

from prism_bench.errors import UsageError
from tests.extensions.memory.fake_device import FakeDevice

cupy = pytest.importorskip("cupy")

from prism_bench.extensions.memory import (  # noqa: E402
    PoolLimits,
    cupy_pool,
)
from prism_bench.extensions.memory.cupy_pool import Addresses  # noqa: E402
from prism_bench.extensions.memory.pool import SizeClassPool  # noqa: E402


class Runtime(SimpleNamespace):
    """A runtime of 5000 bytes, which fails with the error `fails`."""

    CUDARuntimeError = cupy.cuda.runtime.CUDARuntimeError

    def __init__(self):
        super().__init__(device=0, calls=[], fails=None)

    def getDevice(self):  # noqa: N802 - CuPy's name
        return self.device

    def malloc(self, size):
        if self.fails:
            raise self.CUDARuntimeError(self.fails)
        self.calls.append(size)
        return 4096 * len(self.calls)

    def memGetInfo(self):  # noqa: N802 - CuPy's name
        return 1000, 5000


@pytest.fixture
def allocator(monkeypatch):
    """An allocator on a device that only counts."""
    monkeypatch.setattr(cupy_pool, "_runtime", Runtime())
    pool_allocator = cupy_pool.PoolAllocator()
    device = FakeDevice()
    pool_allocator.pool._source = device
    return pool_allocator, device


def test_cupy_gets_its_own_kind_of_pointer(allocator):
    pointer = allocator[0](5000)
    assert isinstance(pointer, cupy.cuda.MemoryPointer)
    assert isinstance(pointer.mem, cupy.cuda.memory.BaseMemory)
    assert (5000, 8192, pointer.ptr) == (pointer.mem.asked, pointer.mem.size, pointer.mem.address)


def test_memory_that_cupy_forgets_comes_back(allocator):
    pool_allocator, device = allocator
    pointer = pool_allocator(5000)
    view = pointer + 100
    del pointer
    gc.collect()
    assert 1 == len(device.blocks) and 0 == pool_allocator.pool.state().free
    del view
    gc.collect()
    assert (8192, 1) == (pool_allocator.pool.state().free, pool_allocator.pool.state().releases)


def test_no_bytes_are_no_memory(allocator):
    pointer = allocator[0](0)
    assert (0, {}) == (pointer.ptr, allocator[1].blocks)


def test_another_device_is_refused(allocator):
    cupy_pool._runtime.device = 1
    with pytest.raises(UsageError, match="serves device 0, the current one is 1"):
        allocator[0](5000)


def test_out_of_memory_is_cupys_error(monkeypatch):
    monkeypatch.setattr(cupy_pool, "_runtime", Runtime())
    cupy_pool._runtime.fails = 2
    pool = SizeClassPool(cupy_pool.CudaSource())
    monkeypatch.setattr(cupy_pool.CudaSource, "stream", lambda self: 0)
    with pytest.raises(
        cupy.cuda.memory.OutOfMemoryError, match="allocating 5,120 bytes .allocated so far: 4,000"
    ) as caught:
        pool.allocate(5000)
    assert "size-class pool:" in caught.value.__notes__[0]


def test_other_device_errors_are_not_out_of_memory(monkeypatch):
    monkeypatch.setattr(cupy_pool, "_runtime", Runtime())
    cupy_pool._runtime.fails = 700
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="illegal"):
        cupy_pool.CudaSource().allocate(5000)


class Stream:
    """A stream that can be captured; `calls` are the calls of it, and of the events on it."""

    def __init__(self, ptr):
        self.ptr, self.captured, self.calls = ptr, False, []

    def wait_event(self, event):
        assert not self.captured, "a graph cannot wait for what is outside of it"
        self.calls.append("wait")


class Event:
    """An event that cannot be recorded on a captured stream."""

    def __init__(self, disable_timing):
        assert disable_timing
        self.done = False

    def record(self, stream):
        assert not stream.captured, "what is recorded into a graph never comes to pass"
        self._stream = stream

    def synchronize(self):
        self._stream.calls.append("synchronize")
        self.done = True


@pytest.fixture
def streams(monkeypatch):
    """A pool on two streams of a device, and a function that makes one of them current."""
    streams = {handle: Stream(handle) for handle in (0, 7, 9)}
    runtime = Runtime()
    runtime.streamIsCapturing = lambda handle: streams[handle].captured
    monkeypatch.setattr(cupy_pool, "_runtime", runtime)
    monkeypatch.setattr(cupy.cuda, "Event", Event)

    def use(handle):
        monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: streams[handle])
        return streams[handle]

    use(7)
    return SizeClassPool(cupy_pool.CudaSource(), PoolLimits(slack=1.0)), use


def test_block_freed_during_capture_stays_with_its_stream(streams):
    pool, use = streams
    lease = pool.allocate(5000)
    use(9).captured = True
    pool.free(lease)
    use(9).captured = False
    assert lease.address != pool.allocate(5000).address
    use(7)
    assert lease.address == pool.allocate(5000).address
    assert [] == use(7).calls


def test_captured_stream_is_not_queried(streams):
    pool, use = streams
    pool.free(pool.allocate(5000))
    use(7).captured = True
    use(9)
    pool.allocate(5000)
    assert (0, 2) == (pool.state().hits, pool.state().misses)


def test_host_waits_for_memory_of_a_captured_stream(streams):
    pool, use = streams
    lease = pool.allocate(5000)
    stranger = use(0)
    pool.free(lease)
    use(7).captured = True
    assert lease.address == pool.allocate(5000).address
    assert (["synchronize"], []) == (stranger.calls, use(7).calls)


def test_recorder_keeps_requests_and_releases(allocator, monkeypatch):
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: SimpleNamespace(ptr=allocator[1].current))
    recorder = cupy_pool.Recorder(allocator[0], "toy")
    first = recorder(5000)
    allocator[1].current = 77
    second = recorder(600)
    del first
    gc.collect()
    trace = recorder.trace(device="none")
    assert [(1, 5000, 0), (2, 600, 1), (1, 0, 1), (2, 0, 1)] == [tuple(event) for event in trace.events]
    assert (1 - 5600 / (8192 + 1024), 600) == (recorder.tracker.tracked().internal, recorder.tracker.tracked().current)
    assert second.ptr in allocator[1].blocks


def test_hook_reports_cupys_pool_to_extents():
    from prism_bench.extensions.memory.pool import Extents

    extents = Extents()
    hook = Addresses(extents)
    hook.alloc_postprocess(device_id=0, mem_size=1024, mem_ptr=4096)
    hook.malloc_postprocess(device_id=0, size=100, mem_size=512, mem_ptr=4096, pmem_id=1)
    assert [512] == extents.gaps()
    hook.free_postprocess(device_id=0, mem_size=512, mem_ptr=4096, pmem_id=1)
    hook.alloc_postprocess(device_id=0, mem_size=1024, mem_ptr=0)
    assert [1024] == extents.gaps()

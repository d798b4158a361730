"""What CuPy is handed, without a device: its own memory objects are made of numbers, and need none."""

import gc
from types import SimpleNamespace

import pytest

from prism_bench.errors import UsageError
from tests.memory.fake_device import FakeDevice

cupy = pytest.importorskip("cupy")

from prism_bench.memory import cupy_pool, recorder  # noqa: E402
from prism_bench.memory.cupy_extents import Addresses  # noqa: E402
from prism_bench.memory.pool import SizeClassPool  # noqa: E402


class Runtime(SimpleNamespace):
    """A runtime with so many bytes, which can be made to fail."""

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
    """An allocator on a device that keeps the books."""
    monkeypatch.setattr(cupy_pool, "_runtime", Runtime())
    found = cupy_pool.PoolAllocator()
    device = FakeDevice()
    found.pool._source = device
    return found, device


def test_cupy_gets_its_own_kind_of_pointer(allocator):
    pointer = allocator[0](5000)
    assert isinstance(pointer, cupy.cuda.MemoryPointer)
    assert isinstance(pointer.mem, cupy.cuda.memory.BaseMemory)
    assert (5000, 8192, pointer.ptr) == (pointer.mem.asked, pointer.mem.size, pointer.mem.address)


def test_memory_that_cupy_forgets_comes_back(allocator):
    found, device = allocator
    pointer = found(5000)
    view = pointer + 100
    del pointer
    gc.collect()
    assert 1 == len(device.blocks) and 0 == found.pool.state().free
    del view
    gc.collect()
    assert (8192, 1) == (found.pool.state().free, found.pool.state().releases)


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


def test_another_error_of_the_device_is_not_taken_for_it(monkeypatch):
    monkeypatch.setattr(cupy_pool, "_runtime", Runtime())
    cupy_pool._runtime.fails = 700
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="illegal"):
        cupy_pool.CudaSource().allocate(5000)


def test_a_recorder_writes_down_what_goes_through_it(allocator, monkeypatch):
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: SimpleNamespace(ptr=allocator[1].current))
    found = recorder.Recorder(allocator[0], "toy")
    first = found(5000)
    allocator[1].current = 77
    second = found(600)
    del first
    gc.collect()
    trace = found.trace(device="none")
    assert [(1, 5000, 0), (2, 600, 1), (1, 0, 1), (2, 0, 1)] == [tuple(event) for event in trace.events]
    assert (1 - 5600 / (8192 + 1024), 600) == (found.tracker.tracked().internal, found.tracker.tracked().current)
    assert second.ptr in allocator[1].blocks


def test_the_hook_tells_extents_what_cupys_pool_does():
    from prism_bench.memory.extents import Extents

    extents = Extents()
    hook = Addresses(extents)
    hook.alloc_postprocess(device_id=0, mem_size=1024, mem_ptr=4096)
    hook.malloc_postprocess(device_id=0, size=100, mem_size=512, mem_ptr=4096, pmem_id=1)
    assert [512] == extents.gaps()
    hook.free_postprocess(device_id=0, mem_size=512, mem_ptr=4096, pmem_id=1)
    hook.alloc_postprocess(device_id=0, mem_size=1024, mem_ptr=0)
    assert [1024] == extents.gaps()

"""The size-class pool as a CuPy allocator.

    import cupy
    from prism_bench.extensions.memory.cupy_pool import PoolAllocator

    allocator = PoolAllocator()
    cupy.cuda.set_allocator(allocator)
    ...
    print(allocator.pool.state())

A stream that arrays were made or dropped on is kept alive by the pool. Memory that a captured CUDA graph uses must stay
allocated as long as the graph is replayed, as with every allocator. While a stream is captured the pool asks nothing of
it, which would invalidate the graph: what was freed meanwhile stays with its stream.
"""

import time
from collections.abc import Hashable
from functools import partial
from typing import Any

import cupy

from prism_bench.errors import UsageError
from prism_bench.extensions.memory.free_blocks import Block
from prism_bench.extensions.memory.limits import PoolLimits
from prism_bench.extensions.memory.pool import SizeClassPool

_runtime, _Pointer = cupy.cuda.runtime, cupy.cuda.MemoryPointer
_NO_MEMORY = 2  # cudaErrorMemoryAllocation, which CuPy keeps to itself
_NULL_STREAM = (0, 1)  # by its two handles: it cannot be captured
_IN_A_GRAPH = object()  # a mark on a stream that is captured: no time of the device belongs to it


def _is_captured(stream: Hashable) -> bool:
    return stream not in _NULL_STREAM and _runtime.streamIsCapturing(stream)


class CudaSource:
    """The current device by way of CuPy; streams are known by their handles."""

    def __init__(self) -> None:
        self._streams: dict[Hashable, Any] = {}

    def allocate(self, size: int) -> int:
        """Call cudaMalloc; raise CuPy's OutOfMemoryError, a MemoryError, if the device has no more."""
        try:
            return _runtime.malloc(size)
        except _runtime.CUDARuntimeError as error:
            if error.status != _NO_MEMORY:
                raise
        free, total = _runtime.memGetInfo()
        raise cupy.cuda.memory.OutOfMemoryError(size, total - free, 0)

    def release(self, address: int) -> None:
        """Call cudaFree, which waits for the device."""
        _runtime.free(address)

    def stream(self) -> Hashable:
        current = cupy.cuda.get_current_stream()
        handle = current.ptr
        if handle not in self._streams:
            self._streams[handle] = current
        return handle

    def mark(self, stream: Hashable) -> object:
        if _is_captured(stream):
            return _IN_A_GRAPH
        event = cupy.cuda.Event(disable_timing=True)
        event.record(self._streams[stream])
        return event

    def passed(self, mark: Any) -> bool:
        return mark is not _IN_A_GRAPH and mark.done

    def wait(self, stream: Hashable, mark: Any) -> None:
        """Wait for the mark; while the stream is captured the host waits, since a graph cannot wait for other work."""
        if mark is _IN_A_GRAPH:
            return
        if _is_captured(stream):
            mark.synchronize()
        else:
            self._streams[stream].wait_event(mark)

    def clear(self, address: int, size: int, stream: Hashable) -> None:
        _runtime.memsetAsync(address, 0, size, stream)

    def now(self) -> float:
        return time.monotonic()


class PooledBlock(cupy.cuda.memory.BaseMemory):
    """A lease that ends when CuPy forgets the memory; `size` is that of its class, as in CuPy's own pool."""

    __slots__ = ("_block", "_pool", "asked")

    def __init__(self, pool: SizeClassPool, device: int, block: Block | None, asked: int) -> None:
        self._pool, self._block, self.asked = pool, block, asked
        self.device_id = device
        self.ptr, self.size = (block.address, block.size) if block else (0, 0)

    @property
    def address(self) -> int:
        """The address, by the pool's name for it."""
        return self.ptr

    def __del__(self) -> None:
        self._pool.free(self)


class PoolAllocator:
    """For `cupy.cuda.set_allocator`; serves the device that was current when it was made."""

    def __init__(self, limits: PoolLimits | None = None) -> None:
        self.pool = SizeClassPool(CudaSource(), limits)
        self._device = _runtime.getDevice()
        self._lease = partial(PooledBlock, self.pool, self._device)

    def __call__(self, size: int) -> Any:
        """Return a pointer to `size` bytes on the current stream. UsageError on another device; else as the pool's."""
        if _runtime.getDevice() != self._device:
            raise UsageError(f"this pool serves device {self._device}, the current one is {_runtime.getDevice()}: "
                             "make a pool for each device")  # fmt: skip
        return _Pointer(self.pool.allocate(size, self._lease), 0)

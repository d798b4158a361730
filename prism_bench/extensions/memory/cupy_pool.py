"""The pool as a CuPy allocator, next to the allocators that it is compared with, and a recorder of requests."""

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import cupy

from prism_bench.errors import BackendUnavailable, UsageError, unknown
from prism_bench.extensions.memory.pool import ALLOCATORS, Block, Extents, PoolLimits, SizeClassPool
from prism_bench.extensions.memory.trace import Event, Trace, Tracker

# The size-class pool as a CuPy allocator.
#
#     allocator = PoolAllocator()
#     cupy.cuda.set_allocator(allocator)
#     ...
#     print(allocator.pool.state())
#
# The pool keeps each stream alive on which arrays were made or dropped. Memory that a captured CUDA graph uses must
# stay allocated as long as the graph is replayed, as with every allocator. While a stream is captured the pool does not
# query it, which would invalidate the graph: blocks that are freed meanwhile stay with their stream.

_runtime, _Pointer = cupy.cuda.runtime, cupy.cuda.MemoryPointer
_NO_MEMORY = 2  # cudaErrorMemoryAllocation, which CuPy does not export
_NULL_STREAM = (0, 1)  # its two handles; it cannot be captured
_IN_A_GRAPH = object()  # a mark on a captured stream, which the device never reaches


def _is_captured(stream: Hashable) -> bool:
    return stream not in _NULL_STREAM and _runtime.streamIsCapturing(stream)


class CudaSource:
    """The current device through CuPy; streams are identified by their handles."""

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
        """Make the stream wait for the mark; the host waits instead while it is captured into a graph."""
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


class _PooledBlock(cupy.cuda.memory.BaseMemory):
    """A lease that ends when CuPy drops the memory; `size` is that of its class, as in CuPy's own pool."""

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
    """Function for `cupy.cuda.set_allocator` that serves the device that was current when it was made."""

    def __init__(self, limits: PoolLimits | None = None) -> None:
        self.pool = SizeClassPool(CudaSource(), limits)
        self._device = _runtime.getDevice()
        self._lease = partial(_PooledBlock, self.pool, self._device)

    def __call__(self, size: int) -> Any:
        """Return a pointer to `size` bytes on the current stream. UsageError on another device; else as the pool's."""
        if _runtime.getDevice() != self._device:
            raise UsageError(
                f"this pool serves device {self._device}, the current one is {_runtime.getDevice()}: "
                "make a pool for each device"
            )
        return _Pointer(self.pool.allocate(size, self._lease), 0)


# Free memory of CuPy's own pool, observed through its hooks.


class Addresses(cupy.cuda.MemoryHook):
    """Hook that reports the operations of CuPy's own pool to extents; other allocators do not call hooks."""

    name = "prism-bench extents"

    def __init__(self, extents: Extents) -> None:
        self._extents = extents

    def alloc_postprocess(self, **facts: Any) -> None:
        if facts["mem_ptr"]:  # else the device had no more
            self._extents.add_chunk(facts["mem_ptr"], facts["mem_size"])

    def malloc_postprocess(self, **facts: Any) -> None:
        if facts["mem_ptr"]:
            self._extents.use(facts["mem_ptr"], facts["mem_size"])

    def free_postprocess(self, **facts: Any) -> None:
        self._extents.release(facts["mem_ptr"])


# The allocators that are compared, by name, as CuPy takes them, with their own counts.
#
# cupy          CuPy's own pool, its default: best fit in chunks that are cut and joined again
# size_class    this package's pool
# async         cudaMallocAsync, the driver's stream-ordered pool, by CuPy's MemoryAsyncPool
# none          cudaMalloc and cudaFree for every request
# rmm           RAPIDS' pool, if installed


@dataclass(frozen=True)
class Allocator:
    """An open allocator.

    `allocate` is for `cupy.cuda.set_allocator`; `used` returns the bytes in use and `held` those it has of the device,
    None if it does not report them; `close` releases the free memory. `watched` yields a function that returns the
    share of the free memory outside its largest piece.
    """

    allocate: Callable[[int], Any]
    used: Callable[[], int | None] = lambda: None
    held: Callable[[], int | None] = lambda: None
    close: Callable[[], object] = lambda: None
    facts: Callable[[], dict[str, Any]] = dict
    watched: Callable[[], AbstractContextManager[Callable[[], float | None]]] = lambda: nullcontext(lambda: None)


def open_allocator(name: str) -> Allocator:
    """Return a new allocator. UsageError for an unknown name, BackendUnavailable if it is not available here."""
    if name not in ALLOCATORS:
        raise unknown("allocator", name, ALLOCATORS)
    return {"cupy": _cupy, "size_class": _size_class, "async": _async, "none": _none, "rmm": _rmm}[name]()


def install(name: str) -> Allocator:
    """Open the allocator, make it CuPy's, and return it."""
    allocator = open_allocator(name)
    cupy.cuda.set_allocator(allocator.allocate)
    return allocator


def _cupy() -> Allocator:
    pool = cupy.cuda.MemoryPool()

    @contextmanager
    def watched() -> Iterator[Callable[[], float | None]]:
        extents = Extents()
        with Addresses(extents):
            yield extents.fragmentation

    return Allocator(pool.malloc, pool.used_bytes, pool.total_bytes, pool.free_all_blocks, watched=watched)


def _size_class() -> Allocator:
    allocator = PoolAllocator()
    state = allocator.pool.state
    return Allocator(
        allocator,
        lambda: state().live,
        lambda: state().held,
        allocator.pool.clear,
        lambda: state().plain(),
        lambda: nullcontext(lambda: state().external_fragmentation),
    )


def _async() -> Allocator:
    try:
        pool = cupy.cuda.MemoryAsyncPool()
    except (RuntimeError, cupy.cuda.runtime.CUDARuntimeError) as error:
        raise BackendUnavailable(f"cudaMallocAsync is not available here ({error})") from None
    return Allocator(pool.malloc, pool.used_bytes, pool.total_bytes, pool.free_all_blocks)


def _none() -> Allocator:
    def allocate(size: int) -> Any:
        return cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)

    return Allocator(allocate)


def _rmm() -> Allocator:
    if find_spec("rmm") is None:
        raise BackendUnavailable("RMM is not installed here; 'pip install rmm-cu13' (RAPIDS) brings it")
    import rmm
    from rmm.allocators.cupy import rmm_cupy_allocator

    rmm.reinitialize(pool_allocator=True)
    return Allocator(rmm_cupy_allocator, facts=lambda: {"rmm": rmm.__version__})


def device_used() -> int:
    """Return the bytes of the current device that are in use by any process, as the driver reports."""
    free, total = cupy.cuda.runtime.memGetInfo()
    return total - free


# Recorder of CuPy's allocations: it passes requests to any allocator, and keeps a trace and a tracker.
#
# with recording("my run") as recorder:
#     ...
# recorder.trace(), recorder.tracker.tracked()


class Recorder:
    """Allocator that calls `inner` and records it. Events of several threads are in the order of their ends."""

    def __init__(self, inner: Callable[[int], Any], name: str, extents: Extents | None = None, least: int = 1) -> None:
        self._inner, self._name, self._extents = inner, name, extents
        self._events: list[Event] = []
        self._streams: dict[int, int] = {}
        self._count = 0
        self.tracker = Tracker(least)

    def __call__(self, size: int) -> Any:
        """Return the pointer of `inner`."""
        pointer = self._inner(size)
        if not size:
            return pointer
        self._count += 1
        held = pointer.mem.size
        self._events.append(Event(self._count, size, self._stream()))
        self.tracker.allocated(size, held)
        share = self._extents.fragmentation() if self._extents else None
        if share is not None:
            self.tracker.saw_fragmentation(share)
        return cupy.cuda.MemoryPointer(_Watched(pointer, self, (self._count, size, held)), 0)

    def forget(self, id: int, size: int, held: int) -> None:
        """Note that the memory of the id is no longer in use."""
        self._events.append(Event(id, 0, self._stream()))
        self.tracker.freed(size, held)

    def trace(self, **facts: Any) -> Trace:
        """Return the trace so far, with a release at the end of all memory that is still in use."""
        return Trace(self._name, tuple(self._events), facts).balanced()

    def _stream(self) -> int:
        return self._streams.setdefault(cupy.cuda.get_current_stream().ptr, len(self._streams))


class _Watched(cupy.cuda.memory.BaseMemory):
    """Memory of another allocator that reports its end to the recorder."""

    def __init__(self, pointer: Any, recorder: Recorder, identity: tuple[int, int, int]) -> None:
        self._pointer, self._recorder, self._identity = pointer, recorder, identity
        self.ptr, self.size, self.device_id = pointer.ptr, pointer.mem.size, pointer.device_id

    def __del__(self) -> None:
        self._pointer = None
        self._recorder.forget(*self._identity)


@contextmanager
def recording(name: str, inner: Callable[[int], Any] | None = None) -> Iterator[Recorder]:
    """Make a Recorder CuPy's allocator in the block, on a fresh pool of CuPy unless `inner` is another allocator."""
    extents = Extents() if inner is None else None
    before = cupy.cuda.get_allocator()
    recorder = Recorder(inner or cupy.cuda.MemoryPool().malloc, name, extents)
    cupy.cuda.set_allocator(recorder)
    try:
        with Addresses(extents) if extents else nullcontext():
            yield recorder
    finally:
        cupy.cuda.set_allocator(before)

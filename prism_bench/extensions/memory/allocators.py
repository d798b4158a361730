"""The allocators that are compared, by name, as CuPy takes them, with their own counts.

cupy          CuPy's own pool, its default: best fit in chunks that are cut and joined again
size_class    ours
async         cudaMallocAsync, the driver's stream-ordered pool, by CuPy's MemoryAsyncPool
none          cudaMalloc and cudaFree every time
rmm           RAPIDS' pool, where it is installed
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import cupy

from prism_bench.errors import BackendUnavailable, unknown
from prism_bench.extensions.memory.cupy_extents import watched_extents
from prism_bench.extensions.memory.cupy_pool import PoolAllocator
from prism_bench.extensions.memory.names import ALLOCATORS


@dataclass(frozen=True)
class Opened:
    """An allocator that is open.

    `allocate` is for `cupy.cuda.set_allocator`; `used` returns the bytes in use and `held` those it has of the device,
    None if it does not report them; `close` releases what is free. `watched` yields a function that returns the share
    of the free memory outside its largest piece.
    """

    allocate: Callable[[int], Any]
    used: Callable[[], int | None] = lambda: None
    held: Callable[[], int | None] = lambda: None
    close: Callable[[], object] = lambda: None
    facts: Callable[[], dict[str, Any]] = dict
    watched: Callable[[], AbstractContextManager[Callable[[], float | None]]] = lambda: nullcontext(lambda: None)


def open_allocator(name: str) -> Opened:
    """Return the allocator, fresh. UsageError for an unknown name, BackendUnavailable where it cannot be had here."""
    if name not in ALLOCATORS:
        raise unknown("allocator", name, ALLOCATORS)
    return {"cupy": _cupy, "size_class": _size_class, "async": _async, "none": _none, "rmm": _rmm}[name]()


def install(name: str) -> Opened:
    """Return the allocator, as `open_allocator` gives it; everything that CuPy allocates from now on comes from it."""
    opened = open_allocator(name)
    cupy.cuda.set_allocator(opened.allocate)
    return opened


def _cupy() -> Opened:
    pool = cupy.cuda.MemoryPool()
    return Opened(pool.malloc, pool.used_bytes, pool.total_bytes, pool.free_all_blocks, watched=watched_extents)


def _size_class() -> Opened:
    allocator = PoolAllocator()
    state = allocator.pool.state
    return Opened(
        allocator, lambda: state().live, lambda: state().held, allocator.pool.clear, lambda: state().plain(),
        lambda: nullcontext(lambda: state().external_fragmentation),
    )  # fmt: skip


def _async() -> Opened:
    try:
        pool = cupy.cuda.MemoryAsyncPool()
    except (RuntimeError, cupy.cuda.runtime.CUDARuntimeError) as error:
        raise BackendUnavailable(f"cudaMallocAsync is not available here ({error})") from None
    return Opened(pool.malloc, pool.used_bytes, pool.total_bytes, pool.free_all_blocks)


def _none() -> Opened:
    def allocate(size: int) -> Any:
        return cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)

    return Opened(allocate)


def _rmm() -> Opened:
    if find_spec("rmm") is None:
        raise BackendUnavailable("RMM is not installed here; 'pip install rmm-cu13' (RAPIDS) brings it")
    import rmm
    from rmm.allocators.cupy import rmm_cupy_allocator

    rmm.reinitialize(pool_allocator=True)
    return Opened(rmm_cupy_allocator, facts=lambda: {"rmm": rmm.__version__})


def device_used() -> int:
    """Return the bytes of the current device that are in use by any process, as the driver reports."""
    free, total = cupy.cuda.runtime.memGetInfo()
    return total - free

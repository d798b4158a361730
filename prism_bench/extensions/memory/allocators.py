"""The allocators that are compared, by name, as CuPy takes them; what each says of itself.

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

import cupy

from prism_bench.errors import BackendUnavailable, unknown
from prism_bench.extensions.memory.cupy_extents import watched_extents
from prism_bench.extensions.memory.cupy_pool import PoolAllocator
from prism_bench.extensions.memory.names import ALLOCATORS


@dataclass(frozen=True)
class Opened:
    """`allocate` for `cupy.cuda.set_allocator`; `used` the bytes that it holds for what is in use, and `held` those it
    has of the device, None where it does not tell; `close` gives back what is free. `watched` gives a function that
    says meanwhile what share of the free memory lies outside its largest piece.
    """

    allocate: Callable
    used: Callable[[], int | None] = lambda: None
    held: Callable[[], int | None] = lambda: None
    close: Callable[[], object] = lambda: None
    facts: Callable[[], dict] = dict
    watched: Callable[[], AbstractContextManager] = lambda: nullcontext(lambda: None)


def open_allocator(name: str) -> Opened:
    """The allocator, fresh. UsageError for an unknown name, BackendUnavailable where it cannot be had here."""
    if name not in ALLOCATORS:
        raise unknown("allocator", name, ALLOCATORS)
    return {"cupy": _cupy, "size_class": _size_class, "async": _async, "none": _none, "rmm": _rmm}[name]()


def install(name: str) -> Opened:
    """The allocator, as `open_allocator` gives it; everything that CuPy allocates from now on comes from it."""
    opened = open_allocator(name)
    cupy.cuda.set_allocator(opened.allocate)
    return opened


def _cupy():
    pool = cupy.cuda.MemoryPool()
    return Opened(pool.malloc, pool.used_bytes, pool.total_bytes, pool.free_all_blocks, watched=watched_extents)


def _size_class():
    allocator = PoolAllocator()
    state = allocator.pool.state
    return Opened(
        allocator, lambda: state().live, lambda: state().held, allocator.pool.clear, lambda: state().plain(),
        lambda: nullcontext(lambda: state().external_fragmentation),
    )  # fmt: skip


def _async():
    try:
        pool = cupy.cuda.MemoryAsyncPool()
    except (RuntimeError, cupy.cuda.runtime.CUDARuntimeError) as error:
        raise BackendUnavailable(f"cudaMallocAsync is not to be had here ({error})") from None
    return Opened(pool.malloc, pool.used_bytes, pool.total_bytes, pool.free_all_blocks)


def _none():
    def allocate(size):
        return cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)

    return Opened(allocate)


def _rmm():
    if find_spec("rmm") is None:
        raise BackendUnavailable("RMM is not installed here; 'pip install rmm-cu13' (RAPIDS) brings it")
    import rmm
    from rmm.allocators.cupy import rmm_cupy_allocator

    rmm.reinitialize(pool_allocator=True)
    return Opened(rmm_cupy_allocator, facts=lambda: {"rmm": rmm.__version__})


def device_used() -> int:
    """Bytes of the current device that are in use by anybody, as the driver says."""
    free, total = cupy.cuda.runtime.memGetInfo()
    return total - free

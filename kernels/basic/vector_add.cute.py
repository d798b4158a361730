"""c = a + b in the CuTe DSL: one thread adds an element."""

from typing import Any

import cutlass
import cutlass.cute as cute

from prism_bench import Launch, Tune, Variant, Workload


@cute.kernel
def add(a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, n: cutlass.Int64):
    """Add an element; the index has 64 bits, because arrays may have more elements than 32 bits count."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    at = cutlass.Int64(block) * threads + thread
    if at < n:
        left = cute.make_tensor(a, cute.make_layout(n))
        right = cute.make_tensor(b, cute.make_layout(n))
        result = cute.make_tensor(c, cute.make_layout(n))
        result[at] = left[at] + right[at]


@cute.jit
def vector_add(a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, n: cutlass.Int64, threads: cutlass.Constexpr):
    """Launch `add`."""
    kernel: Any = add(a, b, c, n)
    kernel.launch(grid=(1, 1, 1), block=(threads, 1, 1))


def launch(n: int, block: int) -> Launch:
    return Launch(-(-n // block), block, constants={"threads": block})


variant = Variant(
    "in the CuTe DSL: one thread adds an element",
    entry="vector_add",
    launch=launch,
    tune=Tune(block=(256, 512, 1024)),
    edges=tuple(Workload(n=n) for n in (0, 1, 3, 1023, 4096, 4099, (1 << 21) + 4099)),
)

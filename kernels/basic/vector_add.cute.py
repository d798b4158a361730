"""c = a + b in the CuTe DSL: a thread adds groups of four elements, 16 bytes an access."""

from typing import Any

import cutlass
import cutlass.cute as cute

from prism_bench import Launch, Variant, Workload

from ..include.arrays.vector_load import map_tune, spread
from ..include.languages.cute_rows import load_group, store_group


@cute.kernel
def add(a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, n: cutlass.Int64, groups: cutlass.Constexpr):
    """Add the thread's groups; the index has 64 bits, because arrays may have more elements than 32 bits count."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    left, right = (cute.make_rmem_tensor((4, groups), cutlass.Float32) for _ in range(2))
    first = cutlass.Int64(block) * (threads * groups) + thread
    for group in cutlass.range_constexpr(groups):
        place = 4 * (first + group * threads)
        if place + 4 <= n:
            load_group(a, place, left[None, group])
            load_group(b, place, right[None, group])
    for group in cutlass.range_constexpr(groups):
        place = 4 * (first + group * threads)
        if place + 4 <= n:
            for each in cutlass.range_constexpr(4):
                left[each, group] = left[each, group] + right[each, group]
            store_group(left[None, group], c, place)
        else:
            for at in cutlass.range(place, n, unroll=1):
                c[at] = a[at] + b[at]


@cute.jit
def vector_add(
    a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, n: cutlass.Int64, threads: cutlass.Constexpr,
    groups: cutlass.Constexpr,
):  # fmt: skip
    """Launch `add`."""
    kernel: Any = add(a, b, c, n, groups)
    kernel.launch(grid=(1, 1, 1), block=(threads, 1, 1))


def launch(n: int, block: int, groups: int) -> Launch:
    step = spread(n, block, groups)
    return Launch(step.grid, block, constants={"threads": block, "groups": groups})


variant = Variant(
    "in the CuTe DSL: 16 bytes an access",
    entry="vector_add",
    launch=launch,
    tune=map_tune(),
    more_edges=(Workload(n=4096),),
)

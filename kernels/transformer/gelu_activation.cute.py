"""GELU in the CuTe DSL, by the polynomial of the CUDA form: 16 bytes an access."""

from typing import Any

import cutlass
import cutlass.cute as cute

from prism_bench import Launch, Variant, Workload

from ..include.arrays.vector_load import map_tune, spread
from ..include.languages.cute_norms import gelu_of
from ..include.languages.cute_rows import load_group, store_group


@cute.kernel
def apply(x: cute.Pointer, y: cute.Pointer, n: cutlass.Int64, constants: cutlass.Constexpr):
    """Apply GELU to the thread's groups; what is behind the last whole group is one thread's."""
    groups, tanh = constants
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    first = cutlass.Int64(block) * (threads * groups) + thread
    held = cute.make_rmem_tensor((4, groups), cutlass.Float32)
    for group in cutlass.range_constexpr(groups):
        place = 4 * (first + group * threads)
        if place + 4 <= n:
            load_group(x, place, held[None, group])
    for group in cutlass.range_constexpr(groups):
        place = 4 * (first + group * threads)
        if place + 4 <= n:
            for each in cutlass.range_constexpr(4):
                held[each, group] = gelu_of(held[each, group], tanh)
            store_group(held[None, group], y, place)
        else:
            for at in cutlass.range(place, n, unroll=1):
                y[at] = gelu_of(x[at], tanh)


@cute.jit
def gelu(
    x: cute.Pointer, y: cute.Pointer, n: cutlass.Int64, threads: cutlass.Constexpr, groups: cutlass.Constexpr,
    tanh: cutlass.Constexpr,
):  # fmt: skip
    """Launch `apply`."""
    kernel: Any = apply(x, y, n, (groups, tanh))
    kernel.launch(grid=(1, 1, 1), block=(threads, 1, 1))


def launch(n: int, approximate: str, block: int, groups: int) -> Launch:
    step = spread(n, block, groups)
    return Launch(step.grid, block, constants={"threads": block, "groups": groups, "tanh": approximate == "tanh"})


variant = Variant(
    "in the CuTe DSL: 16 bytes an access",
    entry="gelu",
    launch=launch,
    tune=map_tune(128),
    more_edges=(Workload(n=4096),),
)

"""Sum of an array in the CuTe DSL: blocks add in double precision, the last to finish adds their sums in order."""

from typing import Any

import cutlass
import cutlass.cute as cute

from prism_bench import In, Launch, Out, Scratch, Size, Tune, Variant, Workload
from prism_bench.spec import Device

from ..include.languages.cute_rows import added, block_reduced, load_group

MOST = 4096  # blocks


@cute.jit
def own_sum(x: cute.Pointer, n: cutlass.Int64, blocks: cutlass.Int32, constants: cutlass.Constexpr):
    """Return the sum of what the thread reads: groups of four, a grid apart; single elements behind the last group."""
    threads, each = constants
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    whole, total = n // 4, cutlass.Float64(0)
    held = cute.make_rmem_tensor((4, each), cutlass.Float32)
    begin = cutlass.Int64(block) * (each * threads)
    while begin < whole:
        held.fill(0.0)
        for part in cutlass.range_constexpr(each):
            group = begin + part * threads + thread
            if group < whole:
                load_group(x, 4 * group, held[None, part])
        for at in cutlass.range_constexpr(4 * each):
            total += cutlass.Float64(held[at])
        begin += cutlass.Int64(blocks) * (each * threads)
    rest = 4 * whole + thread
    if block == 0:
        if rest < n:
            total += cutlass.Float64(x[rest])
    return total


@cute.kernel
def add_up(
    x: cute.Pointer, result: cute.Pointer, by_block: cute.Pointer, done: cute.Pointer, n: cutlass.Int64,
    constants: cutlass.Constexpr,
):  # fmt: skip
    """Add the block's share; the last block adds all shares and leaves the counter as it was."""
    threads, _ = constants
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    shares = cute.make_tensor(by_block, cute.make_layout(blocks))
    last = cute.make_tensor(cute.arch.alloc_smem(cutlass.Int32, 1), cute.make_layout(1))
    total = block_reduced(own_sum(x, n, blocks, constants), added, 0.0, threads)
    if thread == 0:
        shares[block] = total
        last[0] = cute.arch.atomic_add(done, cutlass.Int32(1), sem="acq_rel", scope="gpu")
    cute.arch.sync_threads()
    if last[0] == blocks - 1:
        cute.arch.fence_acq_rel_gpu()
        rest = cutlass.Float64(0)
        for at in cutlass.range(thread, blocks, threads, unroll=1):
            rest += shares[at]
        rest = block_reduced(rest, added, 0.0, threads)
        if thread == 0:
            cute.make_tensor(result, cute.make_layout(1))[0] = cutlass.Float32(rest)
            cute.make_tensor(done, cute.make_layout(1))[0] = cutlass.Int32(0)


@cute.jit
def reduce_sum(
    x: cute.Pointer, result: cute.Pointer, by_block: cute.Pointer, done: cute.Pointer, n: cutlass.Int64,
    threads: cutlass.Constexpr, each: cutlass.Constexpr,
):  # fmt: skip
    """Launch `add_up`."""
    kernel: Any = add_up(x, result, by_block, done, n, (threads, each))
    kernel.launch(grid=(1, 1, 1), block=(threads, 1, 1))


def launch(n: int, device: Device, block: int, each: int, fill: int) -> Launch:
    blocks = max(1, min(-(-n // (4 * block * each)), fill * device.sm_count, MOST))
    return Launch(blocks, block, constants={"threads": block, "each": each})


variant = Variant(
    "in the CuTe DSL: one launch",
    entry="reduce_sum",
    arguments=(
        In("x", "n"), Out("result", "1"), Scratch("by_block", str(MOST), "float64"), Scratch("done", "1", "int32"),
        Size("n", "int64"),
    ),
    launch=launch,
    more_edges=(Workload(n=1056 * 4096),),  # fills 132 processors
    tune=Tune(block=(512, 256), each=(4, 8, 2), fill=(4, 8, 16)),
)  # fmt: skip

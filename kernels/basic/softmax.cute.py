"""Softmax of every row in the CuTe DSL: a warp for each row, which reads it three times."""

from typing import Any

import cutlass
import cutlass.cute as cute

from prism_bench import In, Launch, Out, Scalar, Size, Variant, Workload

WARP = 32


@cute.kernel
def normalise(x: cute.Pointer, y: cute.Pointer, rows: cutlass.Int32, cols: cutlass.Int32, temperature: cutlass.Float32):
    """Normalise a row: its maximum, its sum, its weights."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    row, lane = block * (threads // WARP) + thread // WARP, thread % WARP
    if row < rows:
        shape = cute.make_layout((rows, cols), stride=(cutlass.Int64(cols), 1))
        source, target = cute.make_tensor(x, shape), cute.make_tensor(y, shape)
        top = -cutlass.Float32.inf
        for at in cutlass.range(lane, cols, WARP):
            top = cute.arch.fmax(top, source[row, at])
        for step in cutlass.range_constexpr(5):
            top = cute.arch.fmax(top, cute.arch.shuffle_sync_bfly(top, offset=1 << step))
        total = cutlass.Float32(0)
        for at in cutlass.range(lane, cols, WARP):
            total += cute.math.exp((source[row, at] - top) / temperature)
        for step in cutlass.range_constexpr(5):
            total += cute.arch.shuffle_sync_bfly(total, offset=1 << step)
        for at in cutlass.range(lane, cols, WARP):
            target[row, at] = cute.math.exp((source[row, at] - top) / temperature) / total


@cute.jit
def softmax(
    x: cute.Pointer,
    y: cute.Pointer,
    rows: cutlass.Int32,
    cols: cutlass.Int32,
    temperature: cutlass.Float32,
    threads: cutlass.Constexpr,
):
    """Launch `normalise`."""
    kernel: Any = normalise(x, y, rows, cols, temperature)
    kernel.launch(grid=(1, 1, 1), block=(threads, 1, 1))


def launch(rows: int) -> Launch:
    return Launch(-(-rows // 4), 4 * WARP, constants={"threads": 4 * WARP})


variant = Variant(
    "in the CuTe DSL: a warp for each row, which reads it three times",
    entry="softmax",
    arguments=(In("x", "rows cols"), Out("y", "rows cols"), Size("rows"), Size("cols"), Scalar("temperature")),
    launch=launch,
    derived={},
    edges=(
        *(Workload(rows=rows, cols=cols) for rows, cols in ((0, 5), (3, 1), (5, 2), (7, 257), (16, 1000), (16, 2048))),
        *(Workload(rows=rows, cols=cols) for rows, cols in ((2, 3000), (3, 8196), (2, 24_577), (16, 40_960))),
        Workload(rows=2, cols=4099, temperature=4.0),
    ),
)

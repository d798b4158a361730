"""Softmax of every row in Warp: a block for each row, which reads it twice; a thread keeps a maximum and a sum."""

import warp as wp

from prism_bench import In, Launch, Out, Scalar, Size, Tune, Variant, Workload

THREADS = 256


@wp.kernel(grid_stride=False)
def softmax(x: wp.array2d[wp.float32], y: wp.array2d[wp.float32], cols: wp.int32, temperature: wp.float32):
    """Normalise a row: the threads' maxima and sums become those of the row, then its weights are written."""
    row, thread = wp.tid()
    scale = 1.0 / temperature
    top = wp.float32(-wp.inf)
    total = wp.float32(0)
    for at in range(thread, cols, THREADS):
        value = x[row, at]
        if value > top:
            total = total * wp.exp((top - value) * scale) + wp.exp((value - value) * scale)  # of an infinity NaN
            top = value
        elif value != -wp.inf:
            total += wp.exp((value - top) * scale)
    highest = wp.tile_max(wp.tile(top))[0]
    part = wp.float32(0)
    if top != -wp.inf or wp.isnan(total):
        part = total * wp.exp((top - highest) * scale)
    whole = wp.tile_sum(wp.tile(part))[0]
    for at in range(thread, cols, THREADS):
        y[row, at] = wp.exp((x[row, at] - highest) * scale) / whole


def launch(rows: int, threads: int) -> Launch:
    return Launch(rows, threads, constants={"THREADS": threads, "block_dim": threads})


variant = Variant(
    "in Warp: a block for each row, which reads it twice",
    entry="softmax",
    arguments=(In("x", "rows cols"), Out("y", "rows cols"), Size("cols"), Scalar("temperature")),
    launch=launch,
    derived={},
    tune=Tune(threads=(256, 512, 1024)),
    more_edges=tuple(Workload(rows=16, cols=cols) for cols in (1000, 2048, 40_960)),
)

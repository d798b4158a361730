"""Softmax of every row in Warp: a block for each row, whose threads hold it where it has at most 32 columns a thread.

A longer row is read twice; a thread keeps a maximum and a sum.
"""

import warp as wp

from prism_bench import In, Launch, Out, Scalar, Size, Tune, Variant, Workload

THREADS = 256
ITEMS = 32
LONGEST = 32_768  # columns of a row that 1024 threads hold
Items = wp.types.vector(length=32, dtype=wp.float32)


@wp.kernel(grid_stride=False)
def softmax(x: wp.array2d[wp.float32], y: wp.array2d[wp.float32], cols: wp.int32, temperature: wp.float32):
    """Normalise a row that the threads hold; -inf beyond its end adds nothing."""
    row, thread = wp.tid()
    scale = 1.0 / temperature
    source, target = x[row], y[row]
    held = Items()
    top = wp.float32(-wp.inf)
    for item in range(ITEMS):
        at = thread + item * THREADS
        value = wp.float32(-wp.inf)
        if at < cols:
            value = source[at]
        held[item] = value
        top = wp.max(top, value)
    highest = wp.tile_max(wp.tile(top))[0]
    total = wp.float32(0)
    for item in range(ITEMS):
        weight = wp.exp((held[item] - highest) * scale)
        held[item] = weight
        total += weight
    factor = 1.0 / wp.tile_sum(wp.tile(total))[0]
    if thread + (ITEMS - 1) * THREADS < cols:  # no test for each item, which would calculate its address anew
        for item in range(ITEMS):
            target[thread + item * THREADS] = held[item] * factor
    else:
        for item in range(ITEMS):
            at = thread + item * THREADS
            if at < cols:
                target[at] = held[item] * factor


@wp.kernel(grid_stride=False)
def softmax_two_reads(x: wp.array2d[wp.float32], y: wp.array2d[wp.float32], cols: wp.int32, temperature: wp.float32):
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
    factor = 1.0 / wp.tile_sum(wp.tile(part))[0]
    for at in range(thread, cols, THREADS):
        y[row, at] = wp.exp((x[row, at] - highest) * scale) * factor


def launch(rows: int, cols: int, threads: int) -> Launch:
    if cols > LONGEST:
        return Launch(rows, threads, entry="softmax_two_reads", constants={"THREADS": threads, "block_dim": threads})
    block = max(32, -(-cols // (32 * ITEMS)) * 32)
    constants = {"THREADS": block, "ITEMS": ITEMS, "block_dim": block, "max_unroll": ITEMS}
    return Launch(rows, block, constants=constants)


variant = Variant(
    "in Warp: a block for each row, read once where its threads hold it",
    entry="softmax",
    arguments=(In("x", "rows cols"), Out("y", "rows cols"), Size("cols"), Scalar("temperature")),
    launch=launch,
    derived={},
    tune=Tune(threads=(256, 512, 1024)),
    more_edges=tuple(Workload(rows=16, cols=cols) for cols in (1000, 2048, LONGEST - 1, LONGEST, 40_960)),
)

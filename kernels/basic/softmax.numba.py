"""Softmax of every row in Numba: a block for each row, whose threads hold it where it has at most 32 columns a thread.

A longer row is read twice; a thread keeps a maximum and a sum.
"""

import math

from numba import cuda, float32

from prism_bench import In, Launch, Out, Scalar, Size, Tune, Variant, Workload

THREADS = 512
ITEMS = 32
LONGEST = 32_768  # columns of a row that 1024 threads hold
LOWEST = float("-inf")


@cuda.jit
def softmax(x, y, cols, temperature):
    """Normalise a row that the threads hold; -inf beyond its end adds nothing, and NaN spreads by the sum."""
    parts = cuda.shared.array(THREADS, float32)
    held = cuda.local.array(ITEMS, float32)
    row, thread = cuda.blockIdx.x, cuda.threadIdx.x
    scale = float32(1) / temperature
    source, target, left = x[row, thread:], y[row, thread:], cols - thread
    top = float32(LOWEST)
    for item in range(ITEMS):
        held[item] = source[item * THREADS] if item * THREADS < left else float32(LOWEST)
    for item in range(ITEMS):
        top = max(top, held[item])
    parts[thread] = top
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            parts[thread] = max(parts[thread], parts[thread + half])
        cuda.syncthreads()
        half //= 2
    top = parts[0]
    cuda.syncthreads()
    total = float32(0)
    for item in range(ITEMS):
        held[item] = math.exp((held[item] - top) * scale)
        total += held[item]
    parts[thread] = total
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            parts[thread] += parts[thread + half]
        cuda.syncthreads()
        half //= 2
    factor = float32(1) / parts[0]
    if (ITEMS - 1) * THREADS < left:  # no test for each item, which would calculate its address anew
        for item in range(ITEMS):
            target[item * THREADS] = held[item] * factor
    else:
        for item in range(ITEMS):
            if item * THREADS < left:
                target[item * THREADS] = held[item] * factor


@cuda.jit
def softmax_two_reads(x, y, cols, temperature):
    """Normalise a row: the threads' maxima and sums become those of the row; NaN spreads by the sum."""
    tops = cuda.shared.array(THREADS, float32)
    totals = cuda.shared.array(THREADS, float32)
    row, thread = cuda.blockIdx.x, cuda.threadIdx.x
    scale = float32(1) / temperature
    top, total = float32(LOWEST), float32(0)
    for at in range(thread, cols, THREADS):
        value = x[row, at]
        if value > top:
            total = total * math.exp((top - value) * scale) + math.exp((value - value) * scale)  # of an infinity NaN
            top = value
        elif value != float32(LOWEST):
            total += math.exp((value - top) * scale)
    tops[thread] = top
    totals[thread] = total
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            own, other = tops[thread], tops[thread + half]
            higher = max(own, other)
            shift = higher if higher != float32(LOWEST) else float32(0)
            mine = totals[thread] * math.exp((own - shift) * scale)
            totals[thread] = mine + totals[thread + half] * math.exp((other - shift) * scale)
            tops[thread] = higher
        cuda.syncthreads()
        half //= 2
    top, factor = tops[0], float32(1) / totals[0]
    for at in range(thread, cols, THREADS):
        y[row, at] = math.exp((x[row, at] - top) * scale) * factor


def launch(rows: int, cols: int, threads: int) -> Launch:
    if cols > LONGEST:
        return Launch(rows, threads, entry="softmax_two_reads", constants={"THREADS": threads, "fastmath": False})
    block = max(32, 1 << max(-(-cols // ITEMS) - 1, 0).bit_length())
    constants = {"THREADS": block, "ITEMS": ITEMS, "fastmath": False, "launch_bounds": block}
    return Launch(rows, block, constants=constants)


variant = Variant(
    "in Numba: a block for each row, read once where its threads hold it",
    entry="softmax",
    arguments=(In("x", "rows cols"), Out("y", "rows cols"), Size("cols"), Scalar("temperature")),
    launch=launch,
    derived={},
    tune=Tune(threads=(256, 512, 1024)),
    more_edges=(
        *(Workload(rows=16, cols=cols) for cols in (1000, 2048, 40_960)),
        *(Workload(rows=2, cols=cols) for cols in (LONGEST - 1, LONGEST)),
    ),
)

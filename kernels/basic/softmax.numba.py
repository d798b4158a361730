"""Softmax of every row in Numba: a block for each row, which reads it twice; a thread keeps a maximum and a sum."""

import math

from numba import cuda, float32

from prism_bench import In, Launch, Out, Scalar, Size, Tune, Variant, Workload

THREADS = 512
LOWEST = float("-inf")


@cuda.jit
def softmax(x, y, cols, temperature):
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
    top, total = tops[0], totals[0]
    for at in range(thread, cols, THREADS):
        y[row, at] = math.exp((x[row, at] - top) * scale) / total


def launch(rows: int, threads: int) -> Launch:
    return Launch(rows, threads, constants={"THREADS": threads, "fastmath": False})


variant = Variant(
    "in Numba: a block for each row, which reads it twice",
    entry="softmax",
    arguments=(In("x", "rows cols"), Out("y", "rows cols"), Size("cols"), Scalar("temperature")),
    launch=launch,
    derived={},
    tune=Tune(threads=(512, 256, 1024)),
    more_edges=tuple(Workload(rows=16, cols=cols) for cols in (1000, 2048, 40_960)),
)

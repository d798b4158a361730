"""Softmax of every row in Numba: a block for each row, which reads it three times."""

import numpy as np
from numba import cuda, float32

from prism_bench import In, Launch, Out, Scalar, Size, Variant, Workload

THREADS = 256


@cuda.jit
def softmax(x, y, cols, temperature):
    """Normalise a row: its maximum, its sum, its weights; NaN counts as a maximum's equal and spreads by the sum."""
    shared = cuda.shared.array(THREADS, float32)
    row, thread = cuda.blockIdx.x, cuda.threadIdx.x
    top = float32(-np.inf)
    for at in range(thread, cols, THREADS):
        top = max(top, x[row, at])
    shared[thread] = top
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            shared[thread] = max(shared[thread], shared[thread + half])
        cuda.syncthreads()
        half //= 2
    top = shared[0]
    cuda.syncthreads()
    total = float32(0)
    for at in range(thread, cols, THREADS):
        total += cuda.libdevice.expf((x[row, at] - top) / temperature)
    shared[thread] = total
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            shared[thread] += shared[thread + half]
        cuda.syncthreads()
        half //= 2
    total = shared[0]
    for at in range(thread, cols, THREADS):
        y[row, at] = cuda.libdevice.expf((x[row, at] - top) / temperature) / total


def launch(rows: int) -> Launch:
    return Launch(rows, THREADS, constants={"THREADS": THREADS})


variant = Variant(
    "in Numba: a block for each row, which reads it three times",
    entry="softmax",
    arguments=(In("x", "rows cols"), Out("y", "rows cols"), Size("cols"), Scalar("temperature")),
    launch=launch,
    derived={},
    edges=(
        *(Workload(rows=rows, cols=cols) for rows, cols in ((0, 5), (3, 1), (5, 2), (7, 257), (16, 1000), (16, 2048))),
        *(Workload(rows=rows, cols=cols) for rows, cols in ((2, 3000), (3, 8196), (2, 24_577), (16, 40_960))),
        Workload(rows=2, cols=4099, temperature=4.0),
    ),
)

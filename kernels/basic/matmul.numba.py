"""C = A B of floats in Numba: a block of 16 x 16 threads shares tiles of A and B."""

from numba import cuda, float32

from prism_bench import Launch, Variant, Workload

SIDE = 16


@cuda.jit
def matmul(a, b, c, m, n, k):
    """Sum the products of an element tile by tile, which rounds less; zeros beyond the ends add nothing."""
    lefts = cuda.shared.array((SIDE, SIDE), float32)
    rights = cuda.shared.array((SIDE, SIDE), float32)
    y, x = cuda.threadIdx.y, cuda.threadIdx.x
    row, col = cuda.blockIdx.y * SIDE + y, cuda.blockIdx.x * SIDE + x
    total = float32(0)
    for first in range(0, k, SIDE):
        lefts[y, x] = a[row, first + x] if row < m and first + x < k else float32(0)
        rights[y, x] = b[first + y, col] if first + y < k and col < n else float32(0)
        cuda.syncthreads()
        of_tile = float32(0)
        for at in range(SIDE):
            of_tile += lefts[y, at] * rights[at, x]
        total += of_tile
        cuda.syncthreads()
    if row < m and col < n:
        c[row, col] = total


def launch(m: int, n: int) -> Launch:
    return Launch((-(-n // SIDE), -(-m // SIDE)), (SIDE, SIDE), constants={"SIDE": SIDE})


variant = Variant(
    "in Numba: a block of 16 x 16 threads shares tiles of A and B",
    entry="matmul",
    launch=launch,
    rules=(),
    edges=tuple(
        Workload(m=m, n=n, k=k)
        for m, n, k in (
            (1, 1, 1),
            (3, 5, 0),
            (0, 4, 4),
            (4, 0, 4),
            (16, 16, 16),
            (64, 128, 96),
            (1000, 3, 17),
            (17, 33, 193),
            (1, 1, 4097),
        )
    ),
)

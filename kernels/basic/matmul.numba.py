"""C = A B of floats in Numba: a thread sums EACH x EACH products from tiles of A and B that its block shares."""

from numba import cuda, float32

from prism_bench import Launch, Tune, Variant, Workload

TILE, EACH, DEPTH = 64, 4, 16
PITCH = 65  # of a line of A, so that lines begin in different banks


@cuda.jit
def matmul(a, b, c, m, n, k):
    """Sum products depth by depth; zeros beyond the ends add nothing, and nothing is stored there."""
    lefts = cuda.shared.array((DEPTH, PITCH), float32)
    rights = cuda.shared.array((DEPTH, TILE), float32)
    totals = cuda.local.array((EACH, EACH), float32)
    left = cuda.local.array(EACH, float32)
    right = cuda.local.array(EACH, float32)
    wide = TILE // EACH
    thread = cuda.threadIdx.x
    y, x = thread // wide, thread % wide
    top, side = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    for i in range(EACH):
        for j in range(EACH):
            totals[i, j] = float32(0)
    for first in range(0, k, DEPTH):
        for at in range(TILE * DEPTH // (wide * wide)):
            item = thread + at * wide * wide
            row, deep = item // DEPTH, item % DEPTH
            lefts[deep, row] = a[top + row, first + deep] if top + row < m and first + deep < k else float32(0)
            lower, col = item // TILE, item % TILE
            rights[lower, col] = b[first + lower, side + col] if first + lower < k and side + col < n else float32(0)
        cuda.syncthreads()
        for deep in range(DEPTH):
            for i in range(EACH):
                left[i] = lefts[deep, y * EACH + i]
                right[i] = rights[deep, x + wide * i]
            for i in range(EACH):
                for j in range(EACH):
                    totals[i, j] += left[i] * right[j]
        cuda.syncthreads()
    for i in range(EACH):
        for j in range(EACH):
            if top + y * EACH + i < m and side + x + wide * j < n:
                c[top + y * EACH + i, side + x + wide * j] = totals[i, j]


def launch(m: int, n: int, tile: str) -> Launch:
    side, each, depth = map(int, tile.split("x"))
    constants = {"TILE": side, "EACH": each, "DEPTH": depth, "PITCH": side + 1}
    return Launch((-(-n // side), -(-m // side)), (side // each) ** 2, constants=constants)


variant = Variant(
    "in Numba: a block shares tiles of A and B, of which a thread multiplies parts in registers",
    entry="matmul",
    launch=launch,
    rules=(),
    tune=Tune(tile=("64x4x16", "128x8x16", "128x8x8", "64x8x16", "64x8x8", "32x2x32")),
    more_edges=(Workload(m=64, n=128, k=96),),
)

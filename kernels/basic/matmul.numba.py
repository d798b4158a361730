"""C = A B of floats in Numba: a thread sums EACH x EACH products from tiles of A and B that its block shares.

The next tiles are loaded before the ones in shared memory are multiplied. Indices without a sign and neighbours of
four floats at a multiple of 16 bytes make a load of shared memory one instruction of 128 bits.
"""

import os

from numba import cuda, float32, uint32, uint64

from prism_bench import Launch, Tune, Variant, Workload

# Rows and columns of a block's tile, of a thread's, and depth.
TILES = ("128x8x8", "64x4x16", "128x8x16", "64x8x8", "64x8x16", "32x4x32")
TILE, EACH, DEPTH = 64, 4, 16
HELD = TILE * DEPTH // (TILE // EACH) ** 2  # numbers of a tile that each thread loads
SPAN = TILE // (EACH // 4)  # from a thread's four neighbours to its next four
ALIGNMENT = None if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else 16  # bytes; the simulator has none
PITCH = TILE + 4  # of a line of A, so that a warp's stores meet few banks twice


@cuda.jit(device=True)
def fetch(held, source, first, extents, shape):
    """Load a thread's part of a tile, zeros beyond the matrix; a tile inside it needs no test for each number.

    `shape` has the tile's rows and columns. A load behind its test would be waited for before the next.
    """
    thread, threads, wide = cuda.threadIdx.x, cuda.blockDim.x, shape[1]
    row, col = first[0] + thread // wide, first[1] + thread % wide
    if first[0] + shape[0] <= extents[0] and first[1] + wide <= extents[1]:
        for at in range(len(held)):
            held[at] = source[uint32(row + at * (threads // wide)), uint32(col)]
    else:
        for at in range(len(held)):
            lower = row + at * (threads // wide)
            held[at] = source[uint32(lower), uint32(col)] if lower < extents[0] and col < extents[1] else float32(0)


@cuda.jit
def matmul(a, b, c, m, n, k):
    """Sum products depth by depth; zeros beyond the ends add nothing, and nothing is stored there."""
    lefts = cuda.shared.array((2, DEPTH, PITCH), float32, alignment=ALIGNMENT)
    rights = cuda.shared.array((2, DEPTH, TILE), float32, alignment=ALIGNMENT)
    totals = cuda.local.array((EACH, EACH), float32)
    left, right = cuda.local.array(EACH, float32), cuda.local.array(EACH, float32)
    next_left, next_right = cuda.local.array(HELD, float32), cuda.local.array(HELD, float32)
    wide = TILE // EACH
    threads, thread = wide * wide, cuda.threadIdx.x
    y, x = uint64(thread // wide * 4), uint64(thread % wide * 4)
    top, side = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    for i in range(EACH):
        for j in range(EACH):
            totals[i, j] = float32(0)
    fetch(next_left, a, (top, 0), (m, k), (TILE, DEPTH))
    fetch(next_right, b, (0, side), (k, n), (DEPTH, TILE))
    slot = uint64(0)
    for first in range(0, k, DEPTH):
        for at in range(HELD):
            lefts[slot, uint64(thread % DEPTH), uint64(thread // DEPTH + at * (threads // DEPTH))] = next_left[at]
            rights[slot, uint64(thread // TILE + at * (threads // TILE)), uint64(thread % TILE)] = next_right[at]
        cuda.syncthreads()
        if first + DEPTH < k:
            fetch(next_left, a, (top, first + DEPTH), (m, k), (TILE, DEPTH))
            fetch(next_right, b, (first + DEPTH, side), (k, n), (DEPTH, TILE))
        for deep in range(DEPTH):
            for i in range(EACH):
                left[i] = lefts[slot, uint64(deep), y + uint64(i // 4 * SPAN + i % 4)]
                right[i] = rights[slot, uint64(deep), x + uint64(i // 4 * SPAN + i % 4)]
            for i in range(EACH):
                for j in range(EACH):
                    totals[i, j] += left[i] * right[j]
        slot = uint64(1) - slot
    for i in range(EACH):
        for j in range(EACH):
            row, col = top + int(y) + i // 4 * SPAN + i % 4, side + int(x) + j // 4 * SPAN + j % 4
            if row < m and col < n:
                c[uint32(row), uint32(col)] = totals[i, j]


def chosen(m: int, n: int) -> str:
    """Large tiles, of which a thread multiplies more from registers, for products that fill the device with them."""
    return TILES[0] if m * n >= 2048**2 else TILES[1]


def launch(m: int, n: int, tile: str) -> Launch:
    side, each, depth = map(int, (chosen(m, n) if tile == "auto" else tile).split("x"))
    threads = (side // each) ** 2
    sizes = {"TILE": side, "EACH": each, "DEPTH": depth, "HELD": side * depth // threads, "SPAN": side * 4 // each}
    bounds = {"launch_bounds": threads, "min_blocks": -(-384 // threads)}  # 168 registers a thread; 128 of 256 threads
    return Launch((-(-n // side), -(-m // side)), threads, constants={**sizes, "PITCH": side + 4, **bounds})


variant = Variant(
    "in Numba: a block shares tiles of A and B, of which a thread multiplies parts in registers",
    entry="matmul",
    launch=launch,
    rules=(),
    tune=Tune(tile=("auto", *TILES)),
    more_edges=(
        Workload(m=64, n=128, k=96), Workload(m=144, n=272, k=80, tile=TILES[0]),
        *(Workload(m=137, n=264, k=72, tile=tile) for tile in TILES),
    ),
)  # fmt: skip

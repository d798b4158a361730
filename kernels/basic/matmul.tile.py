"""C = A B of floats in cuTile: a block for each tile of C, those of eight rows of tiles one after another.

Products of floats that are not rounded to TF32 run on no tensor core. Tiles that the tensor memory accelerator copies
keep their order in shared memory, where eight threads of a warp read rows from the same banks, and the compiler has one
buffer of them. Large tiles are loaded to registers a step ahead instead, and stored to shared memory with their pieces
swapped.
"""

import cuda.tile as ct

from prism_bench import Launch, Tune, Variant, Workload

# Rows, columns, depth, warps that multiply.
TILES = ("128x128x8x8", "128x64x16x8", "64x64x16x4", "128x128x16x8", "64x32x16x4", "32x32x32x4")
GROUP = 8  # rows of tiles whose blocks run together and share what they load of B


@ct.kernel
def matmul(
    a, b, c, m, n, k, ROWS: ct.Constant[int], COLS: ct.Constant[int], DEPTH: ct.Constant[int],
    AHEAD: ct.Constant[bool],
):  # fmt: skip
    """Sum products of tiles along k; zeros beyond the ends add nothing."""
    block, across = ct.bid(0), ct.cdiv(n, COLS)
    first = block // (GROUP * across) * GROUP
    tall = min(ct.cdiv(m, ROWS) - first, GROUP)
    within = block % (GROUP * across)
    row, col = first + within % tall, within // tall
    total = ct.full((ROWS, COLS), 0.0, dtype=ct.float32)
    zero = ct.PaddingMode.ZERO
    if AHEAD:
        left = ct.load(a, index=(row, 0), shape=(ROWS, DEPTH), padding_mode=zero, allow_tma=False)
        right = ct.load(b, index=(0, col), shape=(DEPTH, COLS), padding_mode=zero, allow_tma=False)
        for at in range(1, ct.cdiv(k, DEPTH)):
            next_left = ct.load(a, index=(row, at), shape=(ROWS, DEPTH), padding_mode=zero, allow_tma=False)
            next_right = ct.load(b, index=(at, col), shape=(DEPTH, COLS), padding_mode=zero, allow_tma=False)
            total = ct.mma(left, right, total)
            left, right = next_left, next_right
        total = ct.mma(left, right, total)
    else:
        for at in range(ct.cdiv(k, DEPTH)):
            left = ct.load(a, index=(row, at), shape=(ROWS, DEPTH), padding_mode=zero)
            right = ct.load(b, index=(at, col), shape=(DEPTH, COLS), padding_mode=zero)
            total = ct.mma(left, right, total)
    ct.store(c, index=(row, col), tile=total)


def chosen(m: int, n: int) -> str:
    """Large tiles, of which a thread multiplies more from registers, for products that fill the device with them."""
    return TILES[0] if m * n >= 2048**2 else TILES[2]


def launch(m: int, n: int, k: int, tile: str, occupancy: int) -> Launch:
    sizes = chosen(m, n) if tile == "auto" else tile
    rows, cols, depth, warps = map(int, sizes.split("x"))
    ahead = sizes == TILES[0] and k > 0  # registers hold no two steps of deeper tiles
    constants = {"ROWS": rows, "COLS": cols, "DEPTH": depth, "AHEAD": ahead}
    constants |= {"divisible": 1 if n % 16 or k % 16 else 16}
    hints = {"num_worker_warps": warps, **({"occupancy": occupancy} if occupancy else {})}
    return Launch(ct.cdiv(m, rows) * ct.cdiv(n, cols), constants={**constants, **hints})


variant = Variant(
    "in cuTile: a block for each tile of C",
    entry="matmul",
    launch=launch,
    rules=(),
    tune=Tune(tile=("auto", *TILES), occupancy=(0, 2)),
    more_edges=(
        Workload(m=64, n=128, k=96),
        Workload(m=144, n=272, k=80, tile=TILES[0]),
        *(Workload(m=137, n=264, k=72, tile=tile) for tile in TILES),
    ),  # fmt: skip
)

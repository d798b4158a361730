"""C = A B of floats in Warp: a block for each tile of C sums products of tiles with `wp.tile_matmul`.

Warp's own product of tiles was faster than cuBLASDx's, which also takes a minute to compile.
"""

import warp as wp

from prism_bench import Launch, Tune, Variant, Workload

SIDE, DEPTH = 64, 16


@wp.kernel(grid_stride=False)
def matmul(
    a: wp.array2d[wp.float32],
    b: wp.array2d[wp.float32],
    c: wp.array2d[wp.float32],
    m: wp.int32,
    n: wp.int32,
    k: wp.int32,
):
    """Sum products of tiles along k; zeros beyond the ends add nothing, and nothing is stored there."""
    row, col = wp.tid()
    total = wp.tile_zeros(shape=(SIDE, SIDE), dtype=wp.float32)
    for at in range(0, k, DEPTH):
        left = wp.tile_load(a, shape=(SIDE, DEPTH), offset=(row * SIDE, at))
        right = wp.tile_load(b, shape=(DEPTH, SIDE), offset=(at, col * SIDE))
        wp.tile_matmul(left, right, total)
    wp.tile_store(c, total, offset=(row * SIDE, col * SIDE))


def launch(m: int, n: int, tile: int, depth: int) -> Launch:
    own = {"SIDE": tile, "DEPTH": depth, "enable_mathdx_gemm": False}
    threads = 256 if tile > 64 else 128
    return Launch((-(-m // tile), -(-n // tile)), threads, constants={**own, "tiled": True, "block_dim": threads})


variant = Variant(
    "in Warp: a block for each tile of C, whose products Warp makes",
    entry="matmul",
    launch=launch,
    rules=(),
    tune=Tune(tile=(128, 64, 32), depth=(32, 16, 64)),
    more_edges=(Workload(m=64, n=128, k=96),),
)

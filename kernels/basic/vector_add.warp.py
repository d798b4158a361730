"""c = a + b in Warp: a block adds a tile."""

import warp as wp

from prism_bench import Launch, Tune, Variant, Workload

TILE = 1024


@wp.kernel(grid_stride=False)
def vector_add(a: wp.array[wp.float32], b: wp.array[wp.float32], c: wp.array[wp.float32], n: wp.int64):
    """Add a tile; nothing is stored beyond the arrays' end."""
    first = wp.tid() * TILE
    left = wp.tile_load(a, shape=TILE, offset=first)
    right = wp.tile_load(b, shape=TILE, offset=first)
    wp.tile_store(c, left + right, offset=first)


def launch(n: int, block: int, each: int) -> Launch:
    constants = {"TILE": block * each, "tiled": True, "block_dim": block}
    return Launch(-(-n // (block * each)), block, constants=constants)


variant = Variant(
    "in Warp: a block adds a tile",
    entry="vector_add",
    launch=launch,
    tune=Tune(block=(256, 512, 128), each=(4, 8)),
    more_edges=(Workload(n=4096), *(Workload(n=n, each=8) for n in (2047, 2048, 2049))),
)

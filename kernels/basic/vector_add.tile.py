"""c = a + b in cuTile: one block adds a tile of elements."""

import cuda.tile as ct

from prism_bench import Launch, Tune, Variant, Workload


@ct.kernel
def vector_add(a, b, c, n, TILE: ct.Constant[int]):
    """Add TILE elements; what a tile has beyond the end is neither loaded nor stored."""
    at = ct.bid(0)
    left = ct.load(a, index=(at,), shape=(TILE,), padding_mode=ct.PaddingMode.ZERO)
    right = ct.load(b, index=(at,), shape=(TILE,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(c, index=(at,), tile=left + right)


def launch(n: int, tile: int) -> Launch:
    return Launch(ct.cdiv(n, tile), constants={"TILE": tile, "divisible": 1 if n % 16 else 16})


variant = Variant(
    "in cuTile: one block adds a tile of elements",
    entry="vector_add",
    launch=launch,
    tune=Tune(tile=(1024, 2048, 512)),
    more_edges=(Workload(n=4096),),
)

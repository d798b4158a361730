"""The same in cuTile."""

import cuda.tile as ct

from prism_bench import Launch, Variant


@ct.kernel
def scaled(x, y, n, factor, TILE: ct.Constant[int]):
    """Multiply a tile."""
    at = ct.bid(0)
    tile = ct.load(x, index=(at,), shape=(TILE,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(y, index=(at,), tile=tile * factor)


def launch(n: int) -> Launch:
    return Launch(ct.cdiv(n, 256), constants={"TILE": 256})


variant = Variant("in cuTile", entry="scaled", launch=launch)

"""Softmax of every row in cuTile: a row of up to 8192 columns is one tile, a longer one several, read three times."""

import cuda.tile as ct

from prism_bench import In, Launch, Out, Scalar, Size, Variant, Workload

LONGEST = 8192


@ct.kernel
def softmax(x, y, cols, temperature, TILE: ct.Constant[int]):
    """Normalise a row that is one tile; -inf beyond its end adds nothing."""
    row = ct.bid(0)
    tile = ct.load(x, index=(row, 0), shape=(1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
    weights = ct.exp((tile - ct.max(tile, 1, keepdims=True)) / temperature)
    ct.store(y, index=(row, 0), tile=weights / ct.sum(weights, 1, keepdims=True))


@ct.kernel
def softmax_long(x, y, cols, temperature, TILE: ct.Constant[int]):
    """Normalise a row of several tiles: its maximum, its sum, its weights."""
    row, tiles = ct.bid(0), ct.cdiv(cols, TILE)
    highest = ct.full((1, TILE), float("-inf"), dtype=ct.float32)
    for at in range(tiles):
        tile = ct.load(x, index=(row, at), shape=(1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
        highest = ct.maximum(highest, tile)
    top = ct.max(highest, 1, keepdims=True)
    partial = ct.full((1, TILE), 0.0, dtype=ct.float32)
    for at in range(tiles):
        tile = ct.load(x, index=(row, at), shape=(1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
        partial = partial + ct.exp((tile - top) / temperature)
    total = ct.sum(partial, 1, keepdims=True)
    for at in range(tiles):
        tile = ct.load(x, index=(row, at), shape=(1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
        ct.store(y, index=(row, at), tile=ct.exp((tile - top) / temperature) / total)


def launch(rows: int, cols: int) -> Launch:
    tile = min(1 << max(cols - 1, 0).bit_length(), LONGEST)
    entry = "softmax" if cols <= tile else "softmax_long"
    return Launch(rows, entry=entry, constants={"TILE": tile, "divisible": 1 if cols % 16 else 16})


variant = Variant(
    "in cuTile: a block for each row",
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

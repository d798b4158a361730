"""Softmax of every row in cuTile: a short row is one tile; a longer one is several tiles, and read twice."""

import cuda.tile as ct

from prism_bench import In, Launch, Out, Scalar, Size, Tune, Variant, Workload


@ct.kernel
def softmax(x, y, cols, temperature, TILE: ct.Constant[int]):
    """Normalise a row that is one tile; -inf beyond its end adds nothing."""
    row, scale = ct.bid(0), 1.0 / temperature
    tile = ct.load(x, index=(row, 0), shape=(1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
    weights = ct.exp((tile - ct.max(tile, 1, keepdims=True)) * scale)
    ct.store(y, index=(row, 0), tile=weights * (1.0 / ct.sum(weights, 1, keepdims=True)))


@ct.kernel
def softmax_long(x, y, cols, temperature, TILE: ct.Constant[int]):
    """Normalise a row of several tiles: every lane has its running maximum and sum, merged at the end."""
    row, tiles, scale = ct.bid(0), ct.cdiv(cols, TILE), 1.0 / temperature
    lowest = ct.full((1, TILE), float("-inf"), dtype=ct.float32)
    top, total = lowest, ct.full((1, TILE), 0.0, dtype=ct.float32)
    for at in range(tiles):
        tile = ct.load(x, index=(row, at), shape=(1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
        change = ct.exp(ct.where(tile == top, 0.0, 0.0 - abs(tile - top)) * scale)  # of an infinity and itself: 1
        total = ct.where(tile > top, total * change + 1.0, total + change)
        top = ct.maximum(top, tile)
    highest = ct.max(top, 1, keepdims=True)
    factor = 1.0 / ct.sum(total * ct.exp((top - highest) * scale), 1, keepdims=True)
    for at in range(tiles):
        tile = ct.load(x, index=(row, at), shape=(1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
        ct.store(y, index=(row, at), tile=ct.exp((tile - highest) * scale) * factor)


def launch(rows: int, cols: int, longest: int, part: int, warps: int) -> Launch:
    whole = 1 << max(cols - 1, 0).bit_length()
    tile = whole if whole <= longest else min(part, whole)
    entry = "softmax" if whole <= longest else "softmax_long"
    hints = {"num_worker_warps": warps} if warps else {}
    return Launch(rows, entry=entry, constants={"TILE": tile, "divisible": 1 if cols % 16 else 16, **hints})


variant = Variant(
    "in cuTile: a block for each row",
    entry="softmax",
    arguments=(In("x", "rows cols"), Out("y", "rows cols"), Size("cols"), Scalar("temperature")),
    launch=launch,
    derived={},
    tune=Tune(
        longest=(32_768, 16_384, 8192, 4096),
        part=(8192, 4096, 2048),
        warps=(0, 8),
        default={"warps": lambda cols: 8 if cols > 4096 else 0},
    ),
    more_edges=(
        *(Workload(rows=16, cols=cols) for cols in (1000, 2048, 40_960)),
        *(Workload(rows=16, cols=cols, longest=8192) for cols in (30_000, 32_768)),
        Workload(rows=16, cols=32_768),
    ),
)

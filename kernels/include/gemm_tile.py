"""The tiles of gemm_tile.cuh and the rule by which a product gets one."""

from prism_bench import Launch, Rule
from prism_bench.case import Device

# Rows, columns, threads, and the share of the FMA rate that each keeps busy.
TILES = {
    "Large": (128, 256, 256, 1.0),
    "Medium": (128, 128, 256, 0.9),
    "Narrow": (64, 64, 128, 0.7),
    "Small": (16, 32, 256, 0.35),
}
TILE_RULE = Rule("tile is auto, Large, Medium, Narrow or Small", lambda tile: tile == "auto" or tile in TILES)


def blocks(name: str, rows: int, cols: int) -> int:
    """Tiles of that name in a product of that many rows and columns."""
    tile_rows, tile_cols, *_ = TILES[name]
    return -(-rows // tile_rows) * -(-cols // tile_cols)


def fastest(rows: int, cols: int, device: Device) -> str:
    """The tile whose rounds over the multiprocessors take the least time."""

    def time(name: str) -> float:
        tile_rows, tile_cols, _, busy = TILES[name]
        return -(-blocks(name, rows, cols) // device.sm_count) * tile_rows * tile_cols / busy

    return min(TILES, key=time)


def on_tiles(entry: str, rows: int, cols: int, tile: str, device: Device) -> Launch:
    """The launch of `entry`, in which {} is the tile, a block per tile; `tile` names one or is auto."""
    name = fastest(rows, cols, device) if tile == "auto" else tile
    return Launch(grid=blocks(name, rows, cols), block=TILES[name][2], entry=entry.format(name))

"""The tiles of gemm_tile.cuh and gemm.cuh, and the rule by which a product gets one."""

from dataclasses import dataclass

from prism_bench import Launch, Rule
from prism_bench.errors import SpecError
from prism_bench.spec import Device

# Rows, columns, threads, and the share of the FMA rate that each keeps busy.
TILES = {
    "Large": (128, 256, 256, 1.0),
    "Medium": (128, 128, 256, 0.9),
    "Narrow": (64, 64, 128, 0.7),
    "Small": (16, 32, 256, 0.35),
}
# Large tiles of products that have no ragged one: what the depth is a multiple of, and the shared memory of the launch.
FULL = (16, 3 * 16 * (132 + 260) * 4)
WHOLE_TILES = {"Full": FULL, "FullRows": FULL, "Split": (32, 0)}
# Of Split, the share of the FMA rate, the small tiles in the place of a large one, and the share that they keep busy.
SPLIT, PARTS, SPLIT_PARTS = 0.985, 32, 0.35


@dataclass(frozen=True)
class Whole:
    """Depth of a product, and the names of the whole tiles that its kernel has."""

    depth: int
    names: tuple[str, ...] = ("Full", "Split")

    def take(self, name: str, rows: int, cols: int) -> bool:
        """Whether no tile of that name reaches outside the matrices."""
        return rows % 128 == 0 and cols % 256 == 0 and self.depth % WHOLE_TILES[name][0] == 0


NO_WHOLE = Whole(0, ())


def tile_rule(*whole: str) -> Rule:
    """The rule for the tiles that any product has, and these."""
    names = ("auto", *whole, *TILES)
    return Rule(f"tile is {', '.join(names[:-1])} or {names[-1]}", lambda tile: tile in names)


TILE_RULE, PRODUCT_RULE = tile_rule(), tile_rule(*Whole(0).names)


def blocks(name: str, rows: int, cols: int) -> int:
    """Tiles of that name in a product of that many rows and columns."""
    tile_rows, tile_cols, *_ = TILES["Large" if name in WHOLE_TILES else name]
    return -(-rows // tile_rows) * -(-cols // tile_cols)


def fastest(rows: int, cols: int, device: Device, whole: Whole = NO_WHOLE) -> str:
    """The tile whose rounds over the multiprocessors take the least time."""

    def time(name: str) -> float:
        tiles, sms = blocks(name, rows, cols), device.sm_count
        tile_rows, tile_cols, _, busy = TILES["Large" if name in WHOLE_TILES else name]
        if name == "Split":
            parts = -(-PARTS * (tiles % sms) // sms)
            return (tiles // sms / SPLIT + parts / PARTS / SPLIT_PARTS) * tile_rows * tile_cols
        return -(-tiles // sms) * tile_rows * tile_cols / busy

    def suits(name: str) -> bool:
        several = name != "Split" or blocks(name, rows, cols) > device.sm_count
        return several and whole.take(name, rows, cols) and WHOLE_TILES[name][1] <= device.max_shared_bytes

    return min((*filter(suits, whole.names), *TILES), key=time)


def on_tiles(entry: str, rows: int, cols: int, tile: str, device: Device, whole: Whole = NO_WHOLE) -> Launch:
    """The launch of `entry`, in which {} is the tile, a block per tile; `tile` names one or is auto.

    Of Split the tiles of the last round have PARTS blocks each.
    """
    name = fastest(rows, cols, device, whole) if tile == "auto" else tile
    if name in TILES:
        return Launch(grid=blocks(name, rows, cols), block=TILES[name][2], entry=entry.format(name))
    depth, shared = WHOLE_TILES[name]
    if not whole.take(name, rows, cols):
        size = f"{rows} rows, {cols} columns and a depth of {whole.depth}"
        raise SpecError(f"tile {name} needs rows by 128, columns by 256 and a depth by {depth}, not {size}")
    tiles = blocks(name, rows, cols)
    grid = tiles + (PARTS - 1) * (tiles % device.sm_count) if name == "Split" else tiles
    return Launch(grid, 256, shared, entry.format(name))

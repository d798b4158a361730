"""The tiles of tensor_tile.cuh and warpgroup_tile.cuh, and the rule by which a product gets one."""

from dataclasses import dataclass

from prism_bench import Launch, Requirement, Rule, Variant
from prism_bench.errors import SpecError

# Rows, columns, bytes of depth, threads, stages at most, and the rate that each reaches, Wide's being 1.
TILES = {
    "Warpgroups": (128, 256, 128, 256, 4, 1.8),
    "Wide": (128, 256, 128, 256, 3, 1.0),
    "Square": (128, 128, 128, 128, 3, 0.9),
    "Compact": (64, 64, 64, 128, 3, 0.5),
}
TENSOR_RULE = Rule("tile is auto, Warpgroups, Wide, Square or Compact", lambda tile: tile == "auto" or tile in TILES)
WARP_WIDE = ("Wide", "Square", "Compact")
WARPGROUPS = Requirement("wgmma", 90)
PAIR = "Tf32Pair"
SIZES = {"Half": 2, "Bfloat": 2, "Tf32": 4, PAIR: 4, "Float8": 1}


@dataclass(frozen=True)
class Operands:
    """Elements, and in which order the matrices lie: ALONG says that a line's depth is contiguous."""

    element: str
    left_along: bool
    right_along: bool

    @property
    def size(self):
        return SIZES[self.element]

    def whole(self, m, n, k):
        """Whether the rows in memory are whole 16-byte pieces."""
        return (k if self.left_along else m) * self.size % 16 == (k if self.right_along else n) * self.size % 16 == 0


def shared_bytes(name, operands, stages):
    """Tiles in memory order, rows longer by 16 bytes or more, by 8 elements across; Warpgroups has no gaps."""
    rows, cols, depth, *_ = TILES[name]
    if name == "Warpgroups":
        return stages * (rows + cols) * depth + 1024
    return staged_bytes(rows, cols, depth, operands, stages)


def staged_bytes(rows, cols, depth, operands, stages):
    """So many stages of a tile whose `depth` is in bytes."""
    size = operands.size

    def tile(lines, along):
        return lines * (depth + 16) if along else depth // size * (lines + max(8, 16 // size)) * size

    return stages * (tile(rows, operands.left_along) + tile(cols, operands.right_along))


def stages_of(name, operands, device):
    """The most stages that the shared memory holds, at least 2 (Warpgroups: 3); 0 where it does not."""
    counts = range(TILES[name][4], 2 if name == "Warpgroups" else 1, -1)
    return next((s for s in counts if shared_bytes(name, operands, s) <= device.max_shared_bytes), 0)


def suits(name, operands, sizes, device):
    """Warpgroups takes 16-bit elements in whole pieces, on compute capability 9.0 alone; pairs would spill in Wide."""
    if name == "Wide" and operands.element == PAIR:
        return False
    on_warpgroups = operands.size == 2 and operands.whole(*sizes) and device.compute_capability == 90
    return stages_of(name, operands, device) > 0 and (name != "Warpgroups" or on_warpgroups)


def fits(name, operands, sizes, stages, device):
    """Whether the tile takes these operands in so many stages (or `auto`)."""
    if not suits(name, operands, sizes, device) or stages == "auto":
        return suits(name, operands, sizes, device)
    enough = (3 if name == "Warpgroups" else 2) <= stages <= TILES[name][4]
    return enough and shared_bytes(name, operands, stages) <= device.max_shared_bytes


def threads(name, operands):
    return TILES[name][3] * (2 if name == "Square" and operands.element == PAIR else 1)


def blocks(name, m, n):
    rows, cols, *_ = TILES[name]
    return -(-m // rows) * -(-n // cols)


def fastest(operands, sizes, device, among=TILES):
    """The tile whose rounds over the multiprocessors take the least time, among those that fit."""

    def time(name):
        rows, cols, *_, rate = TILES[name]
        return -(-blocks(name, *sizes[:2]) // device.sm_count) * rows * cols / rate

    return min((name for name in among if suits(name, operands, sizes, device)), key=time)


def on_tensor_tiles(entry, operands, sizes, device, *, tile="auto", stages="auto"):
    """The launch for (m, n, k) of `entry`, in which {} stands for tile, left along, right along, width.

    `tile` and `stages` may be auto.
    """
    name = fastest(operands, sizes, device) if tile == "auto" else tile
    whole = operands.whole(*sizes)
    if name == "Warpgroups" and not whole:
        raise SpecError(f"tile Warpgroups needs rows of whole 16 bytes, not m, n, k = {sizes}")
    count = stages if stages != "auto" else stages_of(name, operands, device) or TILES[name][4]
    grid = blocks(name, *sizes[:2])
    along = f"{operands.left_along}, {operands.right_along}".lower()
    kind = f"{name}<{operands.element}, {count}>, {along}, {16 // operands.size if whole else 1}"
    return Launch(
        grid=min(grid, device.sm_count) if name == "Warpgroups" else grid,
        block=threads(name, operands),
        shared=shared_bytes(name, operands, count),
        entry=entry.format(kind),
    )


def required(tile):
    """What a product requires that may be pinned to a tile."""
    return WARPGROUPS if tile == "Warpgroups" else None


def on_warpgroups(parameters, edges, **changes):
    """The variant that is pinned to warpgroup instructions: its edges climb from one tile to ragged ones."""
    return Variant(
        "warpgroup instructions (wgmma), compute capability 9.0 only",
        parameters={**parameters, "tile": "Warpgroups"},
        requires=WARPGROUPS,
        edges=edges,
        **changes,
    )

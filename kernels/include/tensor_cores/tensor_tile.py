"""The tiles of products on the tensor cores, and the rule by which a product gets one.

They are those of tensor_tile.cuh, warpgroup_tile.cuh, streamed_product.cuh, turned_tile.cuh, turned_bytes.cuh
and thirds_tile.cuh.
"""

from dataclasses import dataclass
from typing import Any

from prism_bench import Launch, Requirement, Rule, TensorMap, Variant, Workload
from prism_bench.errors import SpecError
from prism_bench.spec import Device

# Rows, columns, bytes of depth, threads, stages at most, and the rate that each reaches, Wide's being 1.
TILES = {
    "Streamed": (192, 128, 128, 384, 4, 2.5),
    "StreamedSquare": (128, 128, 128, 384, 6, 2.3),
    "StreamedTall": (256, 128, 128, 384, 4, 2.35),
    "Warpgroups": (128, 256, 128, 256, 4, 1.8),
    "Turned": (256, 128, 128, 384, 4, 2.5),
    "TurnedBytes": (256, 128, 128, 384, 4, 5.0),
    "Thirds": (128, 128, 128, 384, 5, 2.2),
    "Wide": (128, 256, 128, 256, 3, 1.0),
    "Square": (128, 128, 128, 128, 3, 0.9),
    "Compact": (64, 64, 64, 128, 3, 0.5),
    "Deep": (64, 32, 128, 128, 8, 0.45),
    "Tiny": (32, 32, 128, 128, 8, 0.4),
}
TENSOR_RULE = Rule(f"tile is auto or one of {', '.join(TILES)}", lambda tile: tile == "auto" or tile in TILES)
PAIR, TRIPLE = "Tf32Pair", "BfloatTriple"
BY_WARPGROUPS = {
    "Streamed": ("Half", "Bfloat", "Float8"),
    "StreamedSquare": ("Half", "Bfloat", "Float8"),
    "StreamedTall": ("Half", "Bfloat"),
    "Warpgroups": ("Half", "Bfloat"),
    "Turned": ("Tf32",),
    "TurnedBytes": ("Float8",),
    "Thirds": (TRIPLE,),
}  # and what their operands may be
BY_MAPS = tuple(name for name in BY_WARPGROUPS if name.startswith("Streamed"))
CLUSTERS = {**dict.fromkeys((*BY_MAPS, "Turned"), 2), "TurnedBytes": 1}  # blocks, of all that are copied by tensor maps
FIRST_STAGE = 4e5  # what a ring by tensor maps takes until it runs, in the unit of `fastest`
WARP_WIDE = ("Wide", "Square", "Compact", "Deep", "Tiny")
WARPGROUPS = Requirement("wgmma", 90)
SIZES = {"Half": 2, "Bfloat": 2, "Tf32": 4, PAIR: 4, TRIPLE: 4, "Float8": 1}


@dataclass(frozen=True)
class Operands:
    """Elements, and the order of the matrices in memory: ALONG means that a line's depth is contiguous."""

    element: str
    left_along: bool
    right_along: bool

    @property
    def size(self) -> int:
        return SIZES[self.element]

    def multiplied_by(self, tile: str) -> bool:
        """Whether a tile by warpgroups takes such elements in this order.

        Instructions take e4m3 along the depth; TurnedBytes takes A [m, k] and turns B [k, n] over.
        """
        right = self.right_along == (tile != "TurnedBytes")
        return self.element in BY_WARPGROUPS[tile] and (self.element != "Float8" or (self.left_along and right))

    def whole(self, m: int, n: int, k: int) -> bool:
        """Whether the rows in memory are whole 16-byte pieces."""
        return (k if self.left_along else m) * self.size % 16 == (k if self.right_along else n) * self.size % 16 == 0


def shared_bytes(name: str, operands: Operands, stages: int) -> int:
    """Tiles in memory order, rows longer by 16 bytes or more, by 8 elements across.

    By tensor maps and with Warpgroups there are no gaps. Thirds has A's floats and three bfloat16 for each of B's.
    """
    rows, cols, depth, *_ = TILES[name]
    if name == "Turned":
        return stages * ((rows + cols) * depth + 16) + 1024
    if name in CLUSTERS:  # and 64 rows of sums, of 128 bytes, twice for each of two warpgroups, two barriers a stage
        return stages * ((rows + cols) * depth + 16) + 4 * 64 * 128 + 1024
    if name == "Warpgroups":
        return stages * (rows + cols) * depth + 1024
    if name == "Thirds":
        return stages * (rows * depth + cols * depth // 4 * 6 + 16) + 1024
    return staged_bytes(rows, cols, depth, operands, stages)


def staged_bytes(rows: int, cols: int, depth: int, operands: Operands, stages: int) -> int:
    """So many stages of a tile whose `depth` is in bytes."""
    size = operands.size

    def tile(lines: int, along: bool) -> int:
        return lines * (depth + 16) if along else depth // size * (lines + max(8, 16 // size)) * size

    return stages * (tile(rows, operands.left_along) + tile(cols, operands.right_along))


def stages_of(name: str, operands: Operands, device: Device) -> int:
    """The most stages that the shared memory holds, at least 2 (by warpgroups 3); 0 where it does not."""
    counts = range(TILES[name][4], 2 if name in BY_WARPGROUPS else 1, -1)
    return next((s for s in counts if shared_bytes(name, operands, s) <= device.max_shared_bytes), 0)


def takes(name: str, operands: Operands, sizes: tuple[int, int, int]) -> bool:
    """Whether a tile by warpgroups can copy such matrices; by tensor maps rows of the result are whole pieces, too."""
    mapped = name not in CLUSTERS or (sizes[1] % 4 == 0 and 0 not in sizes)
    return operands.multiplied_by(name) and operands.whole(*sizes) and mapped


def suits(name: str, operands: Operands, sizes: tuple[int, int, int], device: Device) -> bool:
    """By warpgroups in whole pieces, on compute capability 9.0 alone, of floats only A [m, k] and B [k, n].

    Pairs would spill in Wide.
    """
    if name in BY_WARPGROUPS:
        usual = name not in ("Turned", "Thirds") or (operands.left_along and not operands.right_along)
        if device.compute_capability != 90 or not usual:
            return False
        return takes(name, operands, sizes) and stages_of(name, operands, device) > 0
    return stages_of(name, operands, device) > 0 and not (name == "Wide" and operands.element in (PAIR, TRIPLE))


def fits(name: str, operands: Operands, sizes: tuple[int, int, int], stages: Any, device: Device) -> bool:
    """Whether the tile takes these operands in so many stages (or `auto`)."""
    if not suits(name, operands, sizes, device) or stages == "auto":
        return suits(name, operands, sizes, device)
    enough = (3 if name in BY_WARPGROUPS else 2) <= stages <= TILES[name][4]
    return enough and shared_bytes(name, operands, stages) <= device.max_shared_bytes


def threads(name: str, operands: Operands) -> int:
    return TILES[name][3] * (2 if name == "Square" and operands.element in (PAIR, TRIPLE) else 1)


def blocks(name: str, m: int, n: int) -> int:
    rows, cols, *_ = TILES[name]
    return -(-m // rows) * -(-n // cols)


def fastest(operands: Operands, sizes: tuple[int, int, int], device: Device, among: Any = TILES) -> str:
    """The tile whose rounds over the multiprocessors take the least time, among those that fit."""

    def time(name: str) -> float:
        rows, cols, *_, rate = TILES[name]
        work = -(-blocks(name, *sizes[:2]) // device.sm_count) * rows * cols / rate * max(sizes[2], 1)
        return work + (FIRST_STAGE if name in CLUSTERS else 0)

    return min((name for name in among if suits(name, operands, sizes, device)), key=time)


def resident(name: str, m: int, n: int, device: Device) -> int:
    """The blocks that stay and take the tiles in turn; in clusters no more than finish in as many rounds."""
    cluster, (rows, cols, *_) = CLUSTERS.get(name, 1), TILES[name]
    if cluster == 1:
        return min(blocks(name, m, n), device.sm_count)
    clusters, most = -(-m // rows) * -(-n // (cols * cluster)), device.sm_count // cluster
    return -(-clusters // -(-clusters // most)) * cluster


def on_tensor_tiles(
    entry: str,
    operands: Operands,
    sizes: tuple[int, int, int],
    device: Device,
    *,
    tile: str = "auto",
    stages: Any = "auto",
    matrices: tuple[str, str, str] = ("a", "b", "c"),
) -> Launch:
    """The launch for (m, n, k) of `entry`, in which {} is for tile, left along, right along, width.

    `tile` and `stages` may be auto; `matrices` are the arguments that a tile may have as tensor maps.
    """
    name = fastest(operands, sizes, device) if tile == "auto" else tile
    whole = operands.whole(*sizes)
    if name in BY_WARPGROUPS and not takes(name, operands, sizes):
        needs = f"{' or '.join(BY_WARPGROUPS[name])} in rows of whole 16 bytes"
        raise SpecError(f"tile {name} needs {needs}, not {operands.element}, m, n, k = {sizes}")
    count = stages if stages != "auto" else stages_of(name, operands, device) or TILES[name][4]
    along = f"{operands.left_along}, {operands.right_along}".lower()
    kind = f"{name}<{operands.element}, {count}>, {along}, {16 // operands.size if whole else 1}"
    return Launch(
        grid=resident(name, *sizes[:2], device) if name in BY_WARPGROUPS else blocks(name, *sizes[:2]),
        block=threads(name, operands),
        shared=shared_bytes(name, operands, count),
        entry=entry.format(kind),
        maps=tensor_maps(name, matrices),
    )


def tensor_maps(name: str, matrices: tuple[str, str, str]) -> tuple[TensorMap, ...]:
    """The arguments that the tile has as tensor maps; Turned rounds its operands, and stores its result itself."""
    left, right, result = matrices
    if name == "Turned":
        return TensorMap(left, tf32=True), TensorMap(right, lines=32, tf32=True)
    if name in BY_MAPS:
        return TensorMap(left), TensorMap(right), TensorMap(result, lines=32)
    return tuple(map(TensorMap, matrices)) if name in CLUSTERS else ()


def warpgroup_tiles(element: str) -> Any:
    """The tiles by warpgroup instructions that take A [m, k] and B [k, n] of such elements."""
    operands = Operands(element, left_along=True, right_along=False)
    return [tile for tile in BY_WARPGROUPS if operands.multiplied_by(tile)]


def required(tile: str) -> Requirement | None:
    """What a product requires that may be pinned to a tile."""
    return WARPGROUPS if tile in BY_WARPGROUPS else None


def on_warpgroups(
    parameters: dict[str, str], edges: tuple[Workload, ...], tile: str = "Warpgroups", **changes: Any
) -> Variant:
    """The variant that is pinned to warpgroup instructions: its edges climb from one tile to ragged ones."""
    copied = ", copied by the tensor memory accelerator" if tile in BY_MAPS else ""
    return Variant(
        f"warpgroup instructions (wgmma){copied}, compute capability 9.0 only",
        parameters={**parameters, "tile": tile},
        requires=WARPGROUPS,
        edges=edges,
        **changes,
    )

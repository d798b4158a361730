"""Launch of the fused product: its tile, grid and shared memory, and the memory that devices write into each other."""

from dataclasses import dataclass
from pathlib import Path

from prism_bench.extensions.links.operations import Axes
from prism_bench.spec.case import Device

SOURCE = Path(__file__).with_name("matmul_all_reduce.cu")
MEET = "meet"
EVERYTHING = 7  # the parts of a launch: multiplies, reduces, waits
PARTS = (1, 2, 4)  # each of them, for a device on which launches follow one another
STAGES = 3
# Rows, columns and depth of a tile, its threads, and the blocks that a multiprocessor holds: of tensor_tile.cuh.
TILES = {"Square": (128, 128, 64, 128, 2), "Compact": (64, 64, 32, 128, 4), "Tiny": (32, 32, 64, 128, 1)}


@dataclass(frozen=True)
class FusedLaunch:
    """Launch of a kernel of all devices; `parts_bytes` and `own_tiles` are the sizes of each device's memory for it."""

    entry: str
    grid: int
    threads: int
    shared: int
    parts_bytes: int
    own_tiles: int


def fused_launch(axes: Axes, device: Device, tile: str | None = None) -> FusedLaunch:
    """Return the launch of a product on such devices: large tiles where they fill the device."""
    m, n, k, devices = (axes[one] for one in ("m", "n", "k", "devices"))
    name = tile or ("Square" if _tiles("Square", m, n) >= device.sm_count else "Compact")
    rows, cols, depth, threads, resident = TILES[name]
    tiles, width = _tiles(name, m, n), 8 if k % 8 == n % 8 == 0 else 1
    own = -(-tiles // devices)
    stage = 2 * (rows * (depth + 8) + depth * (cols + 8))
    return FusedLaunch(
        entry=f"matmul_all_reduce<{name}<Half, {STAGES}>, {width}>", grid=min(tiles, device.sm_count * resident),
        threads=threads, shared=max(STAGES * stage, 2 * rows * (cols + 8)),
        parts_bytes=2 * own * devices * rows * cols, own_tiles=own,
    )  # fmt: skip


def _tiles(name: str, m: int, n: int) -> int:
    rows, cols, *_ = TILES[name]
    return -(-m // rows) * -(-n // cols)

"""How the sums over columns of column_sums.cuh are shared among blocks."""

from collections.abc import Callable
from typing import Any

SPLIT_BLOCKS, SPLIT_ROWS = {"float32": 1024, "float64": 2048}, 8  # blocks to fill the device, rows of a split at least
LANES, FEW_LANES = 32, 8  # threads side by side in a row
FEW_ROWS, FEW_COLS = 256, 8192  # up to which narrow tiles need no split
SIZES = {"float32": 4, "float64": 8}


def derived(dtype: str) -> dict[str, Callable[..., Any]]:
    """Tiles of columns, and blocks that share the rows of each, for a matrix [m, n] of that type."""
    return {
        "tiles": lambda n: tiles_of(dtype, n, LANES),
        "splits": lambda m, n: splits_of(dtype, m, tiles_of(dtype, n, LANES)),
    }


def tiles_of(dtype: str, n: int, lanes: int) -> int:
    """A lane has a packet of 16 bytes."""
    return -(-n * SIZES[dtype] // (16 * lanes))


def splits_of(dtype: str, m: int, tiles: int) -> int:
    return max(1, min(SPLIT_BLOCKS[dtype] // max(1, tiles), -(-m // SPLIT_ROWS)))


def lanes_of(m: int, n: int) -> int:
    """Few where narrow tiles alone spread a matrix over the device: no block then waits for another's part."""
    return FEW_LANES if m <= FEW_ROWS and n <= FEW_COLS else LANES


def derived_by_lanes(dtype: str) -> dict[str, Callable[..., Any]]:
    """The same with tiles as narrow as `lanes_of` returns."""
    tiles = lambda m, n: tiles_of(dtype, n, lanes_of(m, n))  # noqa: E731
    return {
        "tiles": tiles,
        "splits": lambda m, n: splits_of(dtype, m, tiles(m, n)) if lanes_of(m, n) == LANES else 1,
    }

"""How the products of gemv.cu are launched."""

import numpy as np

from prism_bench import Launch, Zero

from ..arrays.map_arrays import NUMBERS

SHORT = 1024  # columns up to which a warp takes a row
LONG = 8192  # columns from which a block of many threads takes one row alone, else ROWS
ROWS, THREADS, MANY_THREADS = 4, 256, 512
ACROSS = 64  # of the transpose: threads along a row
SPLIT_BLOCKS = 2048  # blocks that fill the device
SPLIT_ROWS = 62  # that a split should have: few of them leave no more than the 64 that a block loads at once


def width_of(cols: int, dtype: str) -> int:
    """Elements of a 16-byte load where every row begins on such a boundary."""
    return next((w for w in (16 // np.dtype(dtype).itemsize,) if cols % w == 0), 1)


def splits(rows: int, cols: int, transpose: bool) -> int:
    """How many blocks share the rows of a column, for any device alike."""
    across = max(1, -(-cols // (4 * ACROSS)))
    return max(1, min(SPLIT_BLOCKS // across, rows // SPLIT_ROWS)) if transpose else 1


def launches(
    rows: int,
    cols: int,
    dtype: str,
    *,
    transpose: bool,
    splits: int,
    arguments: tuple[str, ...] | None = None,
) -> tuple[Launch | Zero, ...]:
    """The launches of alpha op(A) x + beta y for A [rows, cols]; `arguments` are the names to pass to each."""
    number, width = NUMBERS[dtype], width_of(cols, dtype)

    def launch(grid: int | tuple[int, int], entry: str, threads: int = THREADS, overlaps: bool = False) -> Launch:
        return Launch(grid, threads, entry=entry, arguments=arguments, overlaps=overlaps)

    if transpose:
        main = launch((-(-cols // (ACROSS * width)), splits), f"gemv_transposed<{number}, {width}>")
        return (main,) if splits == 1 else (main, launch(-(-cols // 256), f"gemv_combine<{number}>", overlaps=True))
    if cols <= SHORT:
        return (launch(-(-rows // 8), f"gemv_short<{number}, {width}>"),)
    if cols >= LONG:
        return (launch(rows, f"gemv<{number}, 1, {width}>", MANY_THREADS),)
    return (launch(-(-rows // ROWS), f"gemv<{number}, {ROWS}, {width}>"),)

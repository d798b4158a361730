"""How the products of row_products.cuh are launched."""

from typing import Any

from .gemv import LONG, MANY_THREADS, ROWS, SHORT, THREADS, width_of


def row_blocks(rows: int, cols: int) -> int:
    """A warp takes a short row, a block several long ones; a product without rows still has a reduction."""
    return max(1, -(-rows // (8 if cols <= SHORT else ROWS)))


def row_template(*arguments: Any) -> str:
    """Template arguments: those given before the last, then rows a block and elements a load for so many columns."""
    *first, cols = arguments
    return ", ".join([*first, str(0 if cols <= SHORT else ROWS), str(width_of(cols, "float32"))])


def row_threads(cols: int) -> int:
    """Threads of a block: its end is dear, so that long rows have more of them and not more blocks."""
    return MANY_THREADS if cols >= LONG else THREADS

"""How the maps of columns.cuh are launched."""

MOST_TILES = 65_535  # of a grid's second and third extent


def rows_grid(blocks: int) -> tuple[int, int]:
    """The second and third extent of a grid of so many blocks of rows, few of them more than these."""
    planes = max(1, -(-blocks // MOST_TILES))
    return -(-blocks // planes), planes


def column_grid(
    rows: int, cols: int, width: int, each: int, threads: int = 256
) -> tuple[tuple[int, int, int], tuple[int, int]]:
    """Grid and block for `width` columns of `each` rows a thread; blocks are as wide as the rows, up to `threads`.

    Tiles of columns come first, so that blocks that run together read and write neighbouring memory.
    """
    across = min(threads, 1 << max(0, cols // width - 1).bit_length())
    tiles = -(-cols // (width * across))
    return (tiles, *rows_grid(-(-rows // (each * threads // across)))), (across, threads // across)

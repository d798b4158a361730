"""How the sums over columns of column_sums.cuh are shared among blocks."""

SPLIT_BLOCKS, SPLIT_ROWS = 4096, 8  # blocks to fill the device, rows that a split should have
SIZES = {"float32": 4, "float64": 8}


def derived(dtype):
    """Tiles of columns, and blocks that share the rows of each, for a matrix [m, n] of that type."""
    across = 512 // SIZES[dtype]  # 32 packets of 16 bytes

    def splits(m, n):
        return max(1, min(SPLIT_BLOCKS // max(1, -(-n // across)), -(-m // SPLIT_ROWS)))

    return {"tiles": lambda n: -(-n // across), "splits": splits}

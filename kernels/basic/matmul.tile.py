"""C = A B of floats in cuTile: a block for each tile of C."""

import cuda.tile as ct

from prism_bench import Launch, Tune, Variant, Workload


@ct.kernel
def matmul(a, b, c, m, n, k, ROWS: ct.Constant[int], COLS: ct.Constant[int], DEPTH: ct.Constant[int]):
    """Sum products of tiles along k; zeros beyond the ends add nothing."""
    row, col = ct.bid(0), ct.bid(1)
    total = ct.full((ROWS, COLS), 0.0, dtype=ct.float32)
    for at in range(ct.cdiv(k, DEPTH)):
        left = ct.load(a, index=(row, at), shape=(ROWS, DEPTH), padding_mode=ct.PaddingMode.ZERO)
        right = ct.load(b, index=(at, col), shape=(DEPTH, COLS), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(left, right, total)
    ct.store(c, index=(row, col), tile=total)


def launch(m: int, n: int, k: int, tile: int) -> Launch:
    divisible = 1 if n % 16 or k % 16 else 16
    constants = {"ROWS": tile, "COLS": tile, "DEPTH": 16, "divisible": divisible}
    return Launch((ct.cdiv(m, tile), ct.cdiv(n, tile)), constants=constants)


variant = Variant(
    "in cuTile: a block for each tile of C",
    entry="matmul",
    launch=launch,
    rules=(),
    tune=Tune(tile=(64, 32, 128)),
    edges=tuple(
        Workload(m=m, n=n, k=k)
        for m, n, k in (
            (1, 1, 1),
            (3, 5, 0),
            (0, 4, 4),
            (4, 0, 4),
            (16, 16, 16),
            (64, 128, 96),
            (1000, 3, 17),
            (17, 33, 193),
            (1, 1, 4097),
        )
    ),
)

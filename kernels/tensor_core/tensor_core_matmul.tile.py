"""Product of half matrices in cuTile: a block for each tile of C, those of eight rows of tiles one after another.

`ct.mma` of half tiles is the tensor cores' instruction, on compute capability 9.0 that of a warpgroup; operands whose
rows are whole 16-byte pieces come by the tensor memory accelerator. Both are the compiler's choice.
"""

import cuda.tile as ct

from prism_bench import Launch, Rule, Tune, Variant, Workload

GROUP = 8  # rows of tiles whose blocks run together and share what they load of B
LAYOUTS = ("nn", "nt", "tn", "tt")
# Rows, columns, depth, warps that multiply, blocks of a cluster.
TILES = ("128x256x64x8x1", "256x128x64x8x1", "256x256x64x8x2", "128x128x64x4x1", "128x128x64x8x1", "64x64x64x4x1")


@ct.kernel
def tensor_core_matmul(
    a, b, c, m, n, k, A_TURNED: ct.Constant[bool], B_TURNED: ct.Constant[bool], ROWS: ct.Constant[int],
    COLS: ct.Constant[int], DEPTH: ct.Constant[int],
):  # fmt: skip
    """Sum products of tiles along k; zeros beyond the ends add nothing."""
    block, across = ct.bid(0), ct.cdiv(n, COLS)
    first = block // (GROUP * across) * GROUP
    tall = min(ct.cdiv(m, ROWS) - first, GROUP)
    within = block % (GROUP * across)
    row, col = first + within % tall, within // tall
    zero = ct.PaddingMode.ZERO
    total = ct.full((ROWS, COLS), 0.0, dtype=ct.float32)
    for at in range(ct.cdiv(k, DEPTH)):
        if A_TURNED:
            left = ct.load(a, index=(row, at), shape=(ROWS, DEPTH), order="F", padding_mode=zero)
        else:
            left = ct.load(a, index=(row, at), shape=(ROWS, DEPTH), padding_mode=zero)
        if B_TURNED:
            right = ct.load(b, index=(at, col), shape=(DEPTH, COLS), order="F", padding_mode=zero)
        else:
            right = ct.load(b, index=(at, col), shape=(DEPTH, COLS), padding_mode=zero)
        total = ct.mma(left, right, total)
    ct.store(c, index=(row, col), tile=total)


def chosen(m: int, n: int) -> str:
    """Large tiles for products that fill the device with them."""
    return TILES[0] if m * n >= 2048**2 else TILES[-1]


def launch(m: int, n: int, k: int, layout: str, blocks: str) -> Launch:
    sizes = chosen(m, n) if blocks == "auto" else blocks
    rows, cols, depth, warps, cluster = map(int, sizes.split("x"))
    turned = {"A_TURNED": layout[0] == "t", "B_TURNED": layout[1] == "t"}
    ends = m if turned["A_TURNED"] else k, k if turned["B_TURNED"] else n, n
    tile = {"ROWS": rows, "COLS": cols, "DEPTH": depth, "divisible": 1 if any(end % 8 for end in ends) else 8}
    hints = {"num_worker_warps": warps, "num_ctas": cluster}
    return Launch(ct.cdiv(m, rows) * ct.cdiv(n, cols), constants={**turned, **tile, **hints})


variant = Variant(
    "in cuTile: a block for each tile of C, on tensor cores",
    entry="tensor_core_matmul",
    rules=(Rule("layout is nn, nt, tn or tt", lambda layout: layout in LAYOUTS),),
    launch=launch,
    more_edges=(
        Workload(m=512, n=512, k=80),
        Workload(m=1536, n=2816, k=80),  # fills 132 processors
        *(Workload(m=264, n=n, k=136, blocks=blocks) for blocks in TILES for n in (264, 261)),
    ),
    tune=Tune(blocks=("auto", *TILES)),
)

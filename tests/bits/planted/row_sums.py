"""y = the sums of the rows of x, in six ways; three of them give a row other bits in another batch."""

from prism_bench import In, KernelSpec, Launch, Out, Scratch, Size, Tune, Variant, Workload, Zero, reduction

X, Y, ROWS, COLS, PARTS = In("x", "rows cols"), Out("y", "rows"), Size("rows"), Size("cols"), Size("parts")

spec = KernelSpec(
    entry="row_sum",
    arguments=(X, Y, ROWS, COLS),
    launch=lambda rows: Launch(rows, 128),
    reference=lambda x: x.sum(axis=1),
    tolerance=reduction(magnitude=lambda x, xp: xp.abs(x).sum(axis=1), terms=3e-6),
    workloads={"S0": Workload(rows=16, cols=500), "S1": Workload(rows=4096, cols=500)},
    batch_invariant=("rows",),
    variants={
        "warp_rows": Variant(
            "a warp a row",
            tune=Tune(warps=(4, 2, 8)),
            launch=lambda rows, warps: Launch(-(-rows // warps), 32 * warps, entry="warp_rows"),
        ),
        "single_add": Variant(
            "one atomic addition a row", launch=lambda rows: (Zero("y"), Launch(rows, 128, entry="single_add"))
        ),
        "split_rows": Variant(
            "more blocks where there are few rows",
            arguments=(X, Scratch("partial", "rows parts"), Y, ROWS, COLS, PARTS),
            derived={"parts": lambda rows: max(1, 32 // rows)},
            launch=lambda rows, parts: (
                Launch(rows * parts, 128, entry="split_rows", arguments=("x", "partial", "cols", "parts")),
                Launch(-(-rows // 32), 32, entry="join_rows", arguments=("partial", "y", "rows", "parts")),
            ),
        ),
        "tile_rows": Variant(
            "another kernel where there are few rows",
            launch=lambda rows: Launch(rows, 128) if rows < 16 else Launch(-(-rows // 32), 32, entry="row_walk"),
        ),
        "neighbour": Variant("reads the next row", launch=lambda rows: Launch(rows, 128, entry="neighbour")),
    },
)

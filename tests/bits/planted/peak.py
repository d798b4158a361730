"""y = the index of one of the largest x of each row, of which there are many."""

from prism_bench import In, KernelSpec, Launch, Out, Scratch, Size, Variant, Workload, Zero, integers, selection

X, Y, COLS = In("x", "rows cols", fill=integers(0, 8)), Out("y", "rows", "int32"), Size("cols")

spec = KernelSpec(
    entry="packed",
    arguments=(X, Scratch("best", "rows", "uint64"), Y, COLS),
    launch=lambda rows: (
        Zero("best"),
        Launch((8, rows), 128, arguments=("x", "best", "cols")),
        Launch(rows, 1, entry="unpacked", arguments=("best", "y")),
    ),
    reference=lambda x: x.argmax(axis=1),
    tolerance=selection(among=lambda x: x),
    workloads={"S0": Workload(rows=4, cols=1024), "S1": Workload(rows=1024, cols=4096)},
    variants={
        "first_come": Variant(
            "whichever comes first",
            arguments=(X, Scratch("most", "rows", "uint32"), Scratch("place", "rows", "uint32"), Y, COLS),
            launch=lambda rows: (
                Zero("most"),
                Zero("place"),
                Launch((8, rows), 128, entry="largest", arguments=("x", "most", "cols")),
                Launch((8, rows), 128, entry="first_come", arguments=("x", "most", "place", "cols")),
                Launch(rows, 1, entry="placed", arguments=("place", "y")),
            ),
        )
    },
)

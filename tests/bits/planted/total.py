"""y = the sum of x, in ten ways: variants named in DEPENDS of the test give other bits in another order or launch."""

from prism_bench import In, KernelSpec, Launch, Out, Scratch, Size, Tune, Variant, Workload, Zero, reduction

X, Y, N = In("x", "n"), Out("y", "1"), Size("n")
PARTIAL, TICKET = Scratch("partial", "count"), Scratch("ticket", "1", "uint32")
COUNT = Size("count")
FINISH = Launch(1, 1, entry="sum_parts", arguments=("partial", "y", "count"))

spec = KernelSpec(
    entry="tree",
    arguments=(X, Y, N),
    launch=lambda: Launch(1, 256),
    reference=lambda x: x.sum(keepdims=True),
    tolerance=reduction(magnitude=lambda x, xp: xp.abs(x).sum(), terms=1e-6),
    workloads={"S0": Workload(n=4096), "S1": Workload(n=1 << 20)},
    derived={"count": lambda n: max(16, n // 1024)},
    variants={
        "atomic_grid": Variant("blocks add", launch=lambda count: (Zero("y"), Launch(count, 256, entry="atomic_grid"))),
        "atomic_block": Variant(
            "threads add",
            arguments=(X, PARTIAL, Y, N, COUNT),
            launch=lambda count: (Launch(count, 256, entry="atomic_block", arguments=("x", "partial", "n")), FINISH),
        ),
        "turns": Variant("blocks add in turn", launch=lambda count: (Zero("y"), Launch(count, 256, entry="turns"))),
        "queue": Variant(
            "blocks take the next piece",
            arguments=(X, PARTIAL, TICKET, Y, N, COUNT),
            launch=lambda count: (
                Zero("ticket"),
                Launch(count, 256, entry="queue", arguments=("x", "partial", "ticket", "n")),
                FINISH,
            ),
        ),
        "tuned_block": Variant("tuned threads", launch=lambda block: Launch(1, block), tune=Tune(block=(256, 128, 64))),
        "tuned_parts": Variant(
            "tuned blocks",
            arguments=(X, PARTIAL, Y, N, COUNT),
            derived={},
            tune=Tune(count=(16, 4, 8)),
            launch=lambda count: (Launch(count, 256, entry="parts", arguments=("x", "partial", "n")), FINISH),
        ),
        "partials": Variant(
            "a partial sum a block",
            arguments=(X, PARTIAL, Y, N, COUNT),
            launch=lambda count: (Launch(count, 256, entry="parts", arguments=("x", "partial", "n")), FINISH),
        ),
        "last_block": Variant(
            "the last block adds",
            arguments=(X, PARTIAL, TICKET, Y, N),
            launch=lambda count: (Zero("ticket"), Launch(count, 256, entry="last_block")),
        ),
        "fixed_point": Variant(
            "integers",
            arguments=(X, Scratch("fixed", "1", "uint64"), Y, N),
            launch=lambda: (
                Zero("fixed"),
                Launch(16, 256, entry="fixed_point", arguments=("x", "fixed", "n")),
                Launch(1, 1, entry="from_fixed", arguments=("fixed", "y")),
            ),
        ),
        "same_lanes": Variant(
            "tuned threads, fixed order",
            launch=lambda block: Launch(1, block, entry="same_lanes"),
            tune=Tune(block=(256, 128, 64)),
        ),
    },
)

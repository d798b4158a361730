"""r = alpha A x + beta b and a reduction of r (its sum, the sum of its squares, its largest element) in one launch."""

import numpy as np
from prism_bench_catalogue.include.gemv import ROWS, SHORT, width_of

from prism_bench import (
    Budget,
    Golden,
    In,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Scalar,
    Scratch,
    Size,
    Workload,
    reduction,
)  # fmt: skip

# Bound by memory: A is read once at the rate of reading; one vector leaves nothing for tensor cores.
REDUCTIONS = {"sum": "SumOf", "squares": "SquaresOf", "max": "LargestOf"}


def blocks(rows, cols):
    """A warp takes a short row, a block several long ones; a product without rows still has a reduction."""
    return max(1, -(-rows // (8 if cols <= SHORT else ROWS)))


def launch(rows, cols, blocks, reduce):
    together = 0 if cols <= SHORT else ROWS
    entry = f"fused_gemv_operations<{REDUCTIONS[reduce]}, {together}, {width_of(cols, 'float32')}>"
    return Launch(grid=blocks, block=256, entry=entry)


def product(a, x, b, alpha, beta):
    return alpha * (a @ x) + (beta * b if beta else 0.0)


def reference(a, x, b, alpha, beta, reduce, rows, xp):
    r = product(a, x, b, alpha, beta)
    if not rows:
        return r, xp.full(1, -xp.inf if reduce == "max" else 0.0)
    return r, {"sum": r.sum, "squares": lambda: (r * r).sum(), "max": r.max}[reduce]()


def sizes(a, x, b, alpha, beta, xp):
    """The absolute terms of each element of r."""
    return abs(alpha) * (xp.abs(a) @ xp.abs(x)) + abs(beta) * xp.abs(b)


def reduced_size(a, x, b, alpha, beta, reduce, rows, xp):
    """How far the reduction moves with the terms of r."""
    terms = sizes(a, x, b, alpha, beta, xp)
    if not rows:
        return 0.0
    return {"sum": terms.sum, "squares": lambda: 2 * (terms * terms).sum(), "max": terms.max}[reduce]()


def torch_gemv_sum(torch, a, x, b, alpha, beta):
    r = torch.addmv(b, a, x, alpha=alpha, beta=beta)
    return r, r.sum()


spec = KernelSpec(
    entry="fused_gemv_operations<SumOf, 4, 4>",
    arguments=(
        In("a", "rows cols"), In("x", "cols"), In("b", "rows"), Out("r", "rows"), Out("s", "1"),
        Scratch("by_block", "blocks", "float64"), Scratch("arrived", "1", "uint32"), Scalar("alpha"), Scalar("beta"),
        Size("rows"), Size("cols"),
    ),
    parameters={"alpha": 1.0, "beta": 1.0, "reduce": "sum"},
    derived={"blocks": blocks},
    rules=(Rule("reduce to be sum, squares or max", lambda reduce: reduce in REDUCTIONS),),
    launch=launch,
    reference=reference,
    tolerance={"r": reduction(sizes), "s": reduction(reduced_size)},
    peers={"torch": torch_gemv_sum},
    flops=lambda rows, cols: 2 * rows * cols + 4 * rows,
    workloads={
        "S0": Workload(rows=1000, cols=1000),
        "S1": Workload(rows=16_384, cols=16_384),
        "S2": Workload(rows=32_768, cols=32_768),
    },
    edges=(
        *(Workload(rows=r, cols=c) for r, c in ((0, 4), (1, 1), (5, 0), (7, 3), (10, 1000), (9, 1025), (6, 2052))),
        *(Workload(rows=r, cols=36, alpha=-0.5, beta=2.0, reduce=how) for r in (9, 77) for how in ("squares", "max")),
        Workload(rows=6, cols=1500, beta=0.0, reduce="max"),
    ),
    golden=(
        Golden(
            Workload(rows=2, cols=2), {"a": [[1, 2], [3, 4]], "x": [1, 1], "b": [10, 20]}, {"r": [13, 27], "s": 40},
            source="by hand",
        ),
        Golden(
            Workload(rows=3, cols=1, reduce="max"), {"a": [[1], [np.nan], [2]], "x": 1.0, "b": 0.0},
            {"r": [1, np.nan, 2], "s": np.nan}, source="a NaN is the largest",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    replaces=("gemv", "axpby", "reduce_sum"),
)  # fmt: skip

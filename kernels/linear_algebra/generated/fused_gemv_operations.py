"""r = alpha A x + beta b and a reduction of r (its sum, the sum of its squares, its largest) in one launch.

Written by `prism-bench fuse` from fusions/fused_gemv_operations.py: change that and run it again.
"""

from pathlib import Path

import numpy as np
from prism_bench_catalogue.include.grid_reduce import reduced, reduced_size
from prism_bench_catalogue.include.map_arrays import ROUNDING
from prism_bench_catalogue.include.row_products import row_blocks, row_template
from prism_bench_catalogue.include.torch_peers import compiled

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
    Variant,
    Workload,
    reduction,
)

BY_HAND = Path(__file__).parents[1] / "fused_gemv_operations.cu"
REDUCE = {"sum": "SumOf", "squares": "SquaresOf", "max": "LargestOf"}


def arguments(dtype):
    inputs = (In("a", "rows cols", dtype), In("x", "cols", dtype), In("b", "rows", dtype))
    outputs = (Out("r", "rows", dtype), Out("s", "1", dtype))
    return (
        *inputs,
        *outputs,
        Scratch("by_block", "blocks", "float64"),
        Scratch("arrived", "1", "uint32"),
        Scalar("alpha", dtype),
        Scalar("beta", dtype),
        Size("rows"),
        Size("cols"),
    )


def launch(dtype, entry="fused_gemv_operations_generated<{}>", passed=None):
    return lambda cols, blocks, reduce: Launch(
        blocks, 256, entry=entry.format(row_template(REDUCE[reduce], cols)), arguments=passed
    )


def reference(a, x, b, alpha, beta, reduce, xp):
    dots = a @ x
    r = alpha * dots + beta * b
    s = reduced(r, reduce, xp)
    return r, s


def r_size(a, x, b, alpha, beta, xp):
    dots = xp.abs(a) @ xp.abs(x)
    return xp.abs(alpha) * dots + xp.abs(beta) * xp.abs(b)


def s_size(a, x, b, alpha, beta, reduce, xp):
    dots = xp.abs(a) @ xp.abs(x)
    return reduced_size(xp.abs(alpha) * dots + xp.abs(beta) * xp.abs(b), reduce, xp)


def tolerance(dtype):
    return {"r": reduction(r_size, terms=ROUNDING[dtype]), "s": reduction(s_size, terms=ROUNDING[dtype])}


def torch_gemv_sum(torch, a, x, b, alpha, beta):
    r = torch.addmv(b, a, x, alpha=alpha, beta=beta)
    return r, r.sum()


spec = KernelSpec(
    entry="fused_gemv_operations_generated",
    arguments=arguments("float32"),
    parameters={"alpha": 1.0, "beta": 1.0, "reduce": "sum"},
    derived={"blocks": lambda rows, cols: row_blocks(rows, cols)},
    rules=(
        Rule("a finite alpha", lambda alpha: abs(alpha) < float("inf")),
        Rule("a finite beta", lambda beta: abs(beta) < float("inf")),
        Rule("reduce is one of sum, squares, max", lambda reduce: reduce in REDUCE),
    ),
    launch=launch("float32"),
    reference=reference,
    tolerance=tolerance("float32"),
    peers={"torch": torch_gemv_sum, "torch_compiled": compiled(torch_gemv_sum)},
    flops=lambda rows, cols: 2 * rows * cols + 7 * rows,
    workloads={
        "S0": Workload(rows=1000, cols=1000),
        "S1": Workload(rows=16384, cols=16384),
        "S2": Workload(rows=32768, cols=32768),
    },
    edges=(
        Workload(rows=0, cols=4),
        Workload(rows=1, cols=1),
        Workload(rows=5, cols=0),
        Workload(rows=7, cols=3),
        Workload(rows=10, cols=1000),
        Workload(rows=9, cols=1025),
        Workload(rows=6, cols=2052),
        Workload(rows=9, cols=36, alpha=-0.5, beta=2.0, reduce="squares"),
        Workload(rows=9, cols=36, alpha=-0.5, beta=2.0, reduce="max"),
        Workload(rows=77, cols=36, alpha=-0.5, beta=2.0, reduce="squares"),
        Workload(rows=77, cols=36, alpha=-0.5, beta=2.0, reduce="max"),
        Workload(rows=6, cols=1500, beta=0.0, reduce="max"),
    ),
    golden=(
        Golden(
            Workload(rows=2, cols=2),
            {"a": [[1, 2], [3, 4]], "x": [1, 1], "b": [10, 20]},
            {"r": [13, 27], "s": 40},
            "by hand",
        ),
        Golden(
            Workload(rows=3, cols=1, reduce="max"),
            {"a": [[1], [np.nan], [2]], "x": 1.0, "b": 0.0},
            {"r": [1, np.nan, 2], "s": np.nan},
            "a NaN is the largest",
        ),
    ),
    replaces=("gemv", "axpby", "reduce_sum"),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "by_hand": Variant(
            "written by hand",
            source=BY_HAND,
            launch=launch("float32", "fused_gemv_operations<{}>"),
        ),
    },
)

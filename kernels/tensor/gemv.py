"""y = alpha op(A) x + beta y, op the identity or the transpose; y is not read where beta is 0.

Memory-bound: half an operation a byte, so tensor cores cannot help one vector.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    InOut,
    KernelSpec,
    Rule,
    Scalar,
    Scratch,
    Size,
    Variant,
    Workload,
    exact,
    reduction,
)  # fmt: skip
from prism_bench.spec import AnyArray, ArrayModule

from ..include.products.gemv import launches, splits


def launch_of(dtype: str) -> Callable[..., Any]:
    return lambda rows, cols, transpose, splits: launches(rows, cols, dtype, transpose=transpose, splits=splits)


def arguments(dtype: str) -> tuple[Any, ...]:
    return (
        In("a", "rows cols", dtype), In("x", "ins", dtype), InOut("y", "outs", dtype),
        Scratch("parts", "splits outs", dtype), Scalar("alpha", dtype), Scalar("beta", dtype), Size("rows"),
        Size("cols"), Size("splits"),
    )  # fmt: skip


def op(a: AnyArray, transpose: bool) -> AnyArray:
    return a.T if transpose else a


def reference(
    a: AnyArray, x: AnyArray, y: AnyArray, alpha: float, beta: float, transpose: bool, xp: ArrayModule
) -> AnyArray:
    product = alpha * (op(a, transpose) @ x)
    return product + beta * y if beta else product


def magnitude(
    a: AnyArray, x: AnyArray, y: AnyArray, alpha: float, beta: float, transpose: bool, xp: ArrayModule
) -> AnyArray:
    """Sums of absolute terms; an element that is not finite must agree as it is."""
    terms = abs(alpha) * (op(xp.abs(a), transpose) @ xp.abs(x))
    return xp.nan_to_num(terms + abs(beta) * xp.abs(y) if beta else terms, nan=0.0, posinf=0.0)


def torch_gemv(
    torch: ModuleType, a: AnyArray, x: AnyArray, y: AnyArray, alpha: float, beta: float, transpose: bool
) -> Any:
    return torch.addmv(y, op(a, transpose), x, alpha=alpha, beta=beta)


def shapes(*pairs: Any, **parameters: Any) -> tuple[Workload, ...]:
    return tuple(Workload(rows=rows, cols=cols, **parameters) for rows, cols in pairs)


awkward = ((0, 4), (1, 1), (5, 0), (7, 3), (10, 1000), (9, 1024), (5, 1025), (6, 2052), (3, 4099), (257, 12))
tall = ((0, 4), (1, 1), (5, 0), (7, 3), (64, 131), (128, 132), (1000, 5), (643, 260))
edges = (
    *shapes(*awkward), *shapes(*tall, transpose=True),
    *shapes((6, 1500), (9, 36), alpha=-0.5, beta=2.0), *shapes((300, 36), alpha=-0.5, beta=2.0, transpose=True),
    *shapes((6, 36), alpha=0.0, beta=1.0), *shapes((3, 8200), (2, 8201)),
)  # fmt: skip
golden = (
    *(
        Golden(
            Workload(rows=r, cols=c, transpose=t), {"a": 1.0, "x": 2.0, "y": np.nan}, {"y": 2.0 * (r if t else c)},
            source="beta = 0 does not read y", tolerance=exact(),
        )
        for r, c, t in ((3, 20, False), (5, 2000, False), (300, 20, True), (20, 12, True))
    ),
    Golden(Workload(rows=2, cols=2, beta=1.0), {"a": 1.0, "x": 1.0, "y": [np.nan, 1]}, {"y": [np.nan, 3]}, "beta = 1"),
    Golden(
        Workload(rows=2, cols=3), {"a": [[1, np.inf, 0], [np.inf, -np.inf, 1]], "x": 1.0, "y": 0.0},
        {"y": [np.inf, np.nan]}, source="IEEE 754",
    ),
)  # fmt: skip

spec = KernelSpec(
    entry="gemv",
    arguments=arguments("float32"),
    parameters={"alpha": 1.0, "beta": 0.0, "transpose": False},
    derived={
        "ins": lambda rows, cols, transpose: rows if transpose else cols,
        "outs": lambda rows, cols, transpose: cols if transpose else rows,
        "splits": splits,
    },
    rules=(Rule("transpose to be True or False", lambda transpose: transpose in (True, False)),),
    launch=launch_of("float32"),
    reference=reference,
    tolerance=reduction(magnitude=magnitude),
    peers={"torch": torch_gemv},
    flops=lambda rows, cols, outs: 2 * rows * cols + 3 * outs,
    aliases=("la_gemv", "ai_gemv"),
    bytes_moved=lambda rows, cols, ins, outs, beta: 4 * (rows * cols + ins + (2 if beta else 1) * outs),
    workloads={
        "S0": Workload(rows=1000, cols=1000),
        "S1": Workload(rows=16_384, cols=16_384),
        "S2": Workload(rows=32_768, cols=32_768),
    },
    edges=edges,
    golden=golden,
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "transposed": Variant(
            "op = transpose: columns stay in registers while the rows pass",
            parameters={"alpha": 1.0, "beta": 0.0, "transpose": True},
            peers={"torch": torch_gemv},
            edges=(),
            golden=(),
        ),
        "jacobian": Variant(
            "100 x 900, a reservoir's Jacobian",
            workloads={"S0": Workload(rows=100, cols=900)}, edges=(), golden=(), budgets=(),
            peers={"torch": torch_gemv},
        ),
        "f64": Variant(
            "double precision",
            arithmetic="fp64",
            arguments=arguments("float64"),
            launch=launch_of("float64"),
            tolerance=reduction(magnitude=magnitude, terms=lambda ins: (ins + 4) * 2.0**-52),
            bytes_moved=lambda rows, cols, ins, outs, beta: 8 * (rows * cols + ins + (2 if beta else 1) * outs),
            workloads={"S0": Workload(rows=1000, cols=10), "S1": Workload(rows=16_384, cols=16_384)},
            budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
            peers={"torch": torch_gemv},
        ),
    },
)  # fmt: skip

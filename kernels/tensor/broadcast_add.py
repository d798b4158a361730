"""y[r, c] = x[r, c] + bias[c]: one rounding, so exact. The grid's shape gives the column; no element divides for it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, In, InOut, KernelSpec, Launch, Out, Rule, Size, Tune, Variant, Workload, exact

from ..include.arrays.columns import column_grid

# Bound by memory: 8 bytes an element at the copy rate; the bias comes from the caches.


def launch_of(form: str) -> Callable[..., Any]:
    """Blocks as wide as the rows; so many columns and rows a thread."""

    def launch(rows: int, cols: int, block: int, width: int, each: int) -> Launch:
        return Launch(*column_grid(rows, cols, width, each, block), entry=f"{form}<{width}, {each}>")

    return launch


tune = Tune(
    block=(256, 128, 512),
    width=(4, 1),
    each=(1, 2, 4, 8),
    default={"width": lambda cols: 4 if cols % 4 == 0 else 1},
    rules=(Rule("rows of whole groups", lambda cols, width: cols % width == 0),),
)


sizes = (Size("rows", "int64"), Size("cols"))

spec = KernelSpec(
    entry="broadcast_add<4, 1>",
    arguments=(In("x", "rows cols"), In("bias", "cols"), Out("y", "rows cols"), *sizes),
    launch=launch_of("broadcast_add"),
    tune=tune,
    reference=lambda x, bias: x + bias,
    tolerance=exact(),
    peers={"torch": lambda torch, x, bias: torch.add(x, bias), "cupy": lambda cupy, x, bias: cupy.add(x, bias)},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda rows, cols: rows * cols,
    aliases=("la_add_bias",),
    workloads={
        "S0": Workload(rows=32, cols=128),
        "S1": Workload(rows=65_536, cols=1024),
        "S2": Workload(rows=65_536, cols=4096),
    },
    edges=(
        *(Workload(rows=r, cols=c) for r, c in ((0, 5), (5, 0), (1, 1), (1037, 1), (1, 1037), (9, 4), (70, 6))),
        Workload(rows=33, cols=130),
        Workload(rows=1031, cols=1028),
        *(Workload(rows=r, cols=c) for r, c in ((5, 1028), (3, 257), (17, 2052))),
    ),
    golden=(
        Golden(
            Workload(rows=2, cols=4),
            inputs={"x": [[np.inf, np.nan, -0.0, 3e38], [1, 2, 3, 4]], "bias": [-np.inf, 1, 0.0, 3e38]},
            expected={"y": [[np.nan, np.nan, 0.0, np.inf], [-np.inf, 3, 3, 3e38]]},
            source="IEEE 754",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "in_place": Variant(
            "x += bias",
            arguments=(InOut("x", "rows cols"), In("bias", "cols"), *sizes),
            launch=launch_of("broadcast_add_in_place"),
            golden=(),
            only_labels=("S0", "S1"),
        ),
    },
)

"""Gradient of the mean cross entropy with respect to the logits, (p - onehot(label)) / rows, from probabilities p.

A label outside the columns makes its row NaN: it must be seen, not averaged away.
"""

from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    KernelSpec,
    Launch,
    Out,
    Scalar,
    Size,
    Workload,
    integers,
    reduction,
    uniform,
)
from prism_bench.spec import AnyArray, ArrayModule

from ..include.arrays.columns import column_grid

# Memory-bound: 8 bytes an element at the copy rate; the long rows of S2 are further from it.
ROWS = 2


def launch(rows: int, cols: int) -> Launch:
    """256 threads, as wide as the rows; four columns a thread where rows are whole groups of four."""
    width = 4 if cols % 4 == 0 else 1
    return Launch(*column_grid(rows, cols, width, ROWS), entry=f"la_cross_entropy_grad<{width}, {ROWS}>")


def reference(p: AnyArray, label: AnyArray, rows: int, cols: int, xp: ArrayModule) -> AnyArray:
    known = (label >= 0) & (label < cols)
    right = xp.arange(cols)[None, :] == label[:, None]
    return xp.where(known[:, None], (p - right) / max(rows, 1), xp.nan)


def torch_gradient(torch: ModuleType, p: AnyArray, label: AnyArray, rows: int) -> Any:
    gradient = p / rows
    gradient.scatter_add_(1, label.long()[:, None], torch.full((rows, 1), -1 / rows, device="cuda"))
    return gradient


spec = KernelSpec(
    entry="la_cross_entropy_grad<4, 2>",
    arguments=(
        In("p", "rows cols", fill=uniform(0, 1)),
        In("label", "rows", "int32", fill=integers(0, "cols")),
        Out("gradient", "rows cols"),
        Size("rows", "int64"),
        Size("cols"),
        Scalar("weight"),
    ),
    derived={"weight": lambda rows: 1 / max(rows, 1)},
    launch=launch,
    reference=reference,
    tolerance=reduction(magnitude=lambda p, rows, xp: (p + 1) / max(rows, 1), terms=2.5e-7),
    peers={"torch": torch_gradient},
    looked_at=dict.fromkeys(("liger", "quack"), "cross entropy of logits, with its gradient; none of probabilities"),
    flops=lambda rows, cols: 2 * rows * cols,
    workloads={
        "S0": Workload(rows=32, cols=128),
        "S1": Workload(rows=8192, cols=16_384),
        "S2": Workload(rows=8192, cols=65_536),
    },
    edges=tuple(Workload(rows=r, cols=c) for r, c in ((0, 5), (1, 1), (3, 7), (33, 130), (70, 260), (5, 1028))),
    golden=(
        Golden(
            Workload(rows=2, cols=3), {"p": [[0.5, 0.25, 0.25], [0, 1, 0]], "label": [0, 1]},
            {"gradient": [[-0.25, 0.125, 0.125], [0, 0, 0]]}, source="calculated",
        ),
        Golden(
            Workload(rows=3, cols=4), {"p": 0.25, "label": [-1, 4, 3]},
            {"gradient": [[np.nan] * 4, [np.nan] * 4, [1 / 12, 1 / 12, 1 / 12, -0.25]]},
            source="labels outside the columns",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
)  # fmt: skip

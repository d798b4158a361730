"""H(Y|X,Z) = -sum of p(y,xz) ln[p(y,xz) / p(xz)], in nats or bits, from a joint table and its marginal over y.

Empty cells contribute nothing. A cell with mass whose marginal has none is inconsistent: the result is then -inf.
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
    Rule,
    Scalar,
    Scratch,
    Size,
    Tune,
    Variant,
    Workload,
    exact,
    reduction,
)  # fmt: skip
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Device, Fill, Peer, nonnegative

from ..include.sums.row_sums import threads_for
from ..peers.poor_ways import EAGER_STEPS

# Memory-bound at S2: nine instructions a cell. S1 is latency-bound: with one batch of loads a block, and one load in
# flight for `y_last`, nothing was busy. One wave of blocks with several batches each, of eight loads, is faster in
# either form; the launch is a good part of what remains, so S1 has no budget.
MOST_BLOCKS = 8192
cell_mass = Fill(
    lambda rng, count, axes: rng.exponential(size=count) / (axes["ys"] * axes["cells"] or 1),
    "exponential",
    nonnegative(),
    runs=ONE_BY_ONE,
)
marginal_mass = Fill(
    lambda rng, count, axes: (1 + rng.gamma(1 + axes["ys"], size=count)) / (axes["ys"] * axes["cells"] or 1),
    "gamma, near the sum of ys cells",
    nonnegative(),
    runs=ONE_BY_ONE,
)


def width_of(extent: int) -> int:
    return 4 if extent % 4 == 0 else 1


def launch_first(ys: int, cells: int, device: Device, rows: int) -> Launch:
    """Threads side by side over the cells; the ys are split, by `rows`, until the device is full."""
    across = max(1, -(-cells // (256 * width_of(cells))))
    down = max(1, min(-(-ys // rows), 24 * device.sm_count // across, MOST_BLOCKS // across))
    block = threads_for(cells, width_of(cells), 256)
    return Launch(grid=across * down, block=block, entry=f"y_first<{width_of(cells)}>")


def launch_last(ys: int, cells: int, device: Device) -> Launch:
    """Warps take eight cells at a time; the device holds four blocks of an SM, which take them in turn."""
    blocks = -(-cells // 64)
    in_turn = max(1, -(-blocks // min(4 * device.sm_count, MOST_BLOCKS)))
    return Launch(grid=max(1, -(-blocks // in_turn)), block=256, entry=f"y_last<{width_of(ys)}>")


def terms(
    joint: AnyArray, marginal: AnyArray, axis: int, unit: AnyArray, xp: ArrayModule, special: ModuleType
) -> AnyArray:
    return special.rel_entr(joint, xp.expand_dims(marginal, axis)) * unit


def fields(axis: int) -> dict[str, Any]:
    """What depends on the place of y."""
    joint = In("joint", "ys cells" if axis == 0 else "cells ys", fill=cell_mass)
    return {
        "arguments": (
            joint, In("marginal", "cells", fill=marginal_mass), Out("entropy", "1"),
            Scratch("by_block", "blocks", dtype="float64"), Size("ys"), Size("cells", "int64"),
            Scalar("unit", "float64"),
        ),
        "launch": launch_first if axis == 0 else launch_last,
        "reference": lambda joint, marginal, unit, xp, special: -terms(joint, marginal, axis, unit, xp, special).sum(),
        "tolerance": reduction(
            lambda joint, marginal, unit, xp, special: xp.abs(terms(joint, marginal, axis, unit, xp, special)).sum()
        ),
        "peers": {
            "torch": lambda torch, joint, marginal, unit: -unit
            * torch.nn.functional.kl_div(marginal.log().unsqueeze(axis), joint, reduction="sum"),
            "cupy": Peer(
                lambda cupy, joint, marginal, unit: -unit
                * (joint * cupy.log(joint / cupy.expand_dims(marginal, axis))).sum(),
                poor=EAGER_STEPS,
            ),
        },
    }  # fmt: skip


def counted(ys: int, cells: int) -> AnyArray:
    """A table with empty cells and an empty column."""
    table = np.random.default_rng(4).poisson(1.0, size=(ys, cells)) * (np.arange(cells) != 3)
    return table / table.sum()


def by_difference(ys: int, cells: int) -> AnyArray:
    """H(joint) - H(marginal) in float64: the textbook's other form."""
    return sum(
        sign * np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum()
        for sign, p in ((-1, counted(ys, cells)), (1, counted(ys, cells).sum(axis=0)))
    )


small = {"ys": 2, "cells": 2}
spec = KernelSpec(
    entry="y_first<4>",
    **fields(axis=0),
    parameters={"units": "nats"},
    derived={
        "unit": lambda units: 1.0 if units == "nats" else 1 / np.log(2),
        "blocks": lambda cells: max(MOST_BLOCKS, -(-cells // 256)),
    },
    rules=(Rule("units to be nats or bits", lambda units: units in ("nats", "bits")),),
    tune=Tune(rows=(32, 16, 8)),
    looked_at={"cub": "reads a marginal for every cell only by an iterator written for it"},
    flops=lambda ys, cells: 3 * ys * cells,
    workloads={"S0": Workload(ys=4, cells=64), "S1": Workload(ys=256, cells=65_536),
               "S2": Workload(ys=512, cells=262_144)},
    edges=(
        *(Workload(ys=y, cells=c) for y, c in ((1, 1), (0, 4), (5, 0), (3, 5), (17, 33), (40, 300), (9, 1028))),
        Workload(ys=16, cells=48, units="bits"),
    ),
    golden=(
        Golden(
            Workload(ys=9, cells=20),
            {"joint": counted, "marginal": lambda ys, cells: counted(ys, cells).sum(axis=0)},
            {"entropy": by_difference},
            source="H(joint) - H(marginal), with empty cells and an empty column",
        ),
        Golden(
            Workload(**small), {"joint": [[0.5, 0], [0, 0.5]], "marginal": 0.5}, {"entropy": 0.0},
            source="y follows from x", tolerance=exact(),
        ),
        Golden(
            Workload(**small, units="bits"), {"joint": 0.25, "marginal": 0.5}, {"entropy": 1.0},
            source="y is a fair coin whatever x",
        ),
        Golden(
            Workload(**small), {"joint": 0.25, "marginal": [0.5, 0]}, {"entropy": -np.inf}, source="inconsistent tables"
        ),
        Golden(Workload(**small), {"joint": [[np.nan, 0], [0, 1]], "marginal": 0.5}, {"entropy": np.nan}, source="NaN"),
    ),
    budgets=(Budget("bandwidth_share", at_least=0.85, label="S2"),),
    variants={
        "y_last": Variant(
            "y as the fastest axis", entry="y_last<4>", traffic_factor=8,  # all lanes of a warp ask for one marginal
            **{k: v for k, v in fields(axis=1).items() if k != "peers"},
            golden=(
                Golden(
                    Workload(ys=9, cells=20),
                    {"joint": lambda ys, cells: counted(ys, cells).T,
                     "marginal": lambda ys, cells: counted(ys, cells).sum(axis=0)},
                    {"entropy": by_difference}, source="the same table transposed",
                ),
            ),
        ),
    },
)  # fmt: skip

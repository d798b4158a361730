"""y = gamma (x - mean) / sqrt(variance + eps) + beta over the last axis, with its mean and biased variance.

Rows up to 16,384 columns are read once and stay in registers; longer ones are read twice. A constant row gives beta.
"""

import numpy as np

from prism_bench import Budget, KernelSpec, Launch, Rule, Variant, normalising
from prism_bench.spec import AnyArray, Peer

from ..include.layers.layer_norm import (
    ARGUMENTS,
    EDGES,
    WORKLOADS,
    by_rows,
    constants,
    far_means,
    normalised,
    rows_tune,
    threads_of_16,
    torch_layer_norm,
)
from ..peers.strong_peers import liger_layer_norm, quack_layer_norm


def launch(batch: int, length: int, cols: int, block: int) -> Launch:
    return by_rows(batch * length, cols, block, "layer_norm<{}>", "layer_norm_two_reads")


def beta_alone(length: int, cols: int) -> AnyArray:
    return np.broadcast_to(np.linspace(-1, 1, cols), (1, length, cols))


spec = KernelSpec(
    entry="layer_norm<16, 4, 512>",
    arguments=ARGUMENTS,
    parameters={"eps": 1e-5, "batch": 1},
    rules=(Rule("eps > 0, so that a constant row gives beta", lambda eps: eps > 0),),
    launch=launch,
    tune=rows_tune(threads_of_16),
    reference=normalised,
    tolerance=normalising(),
    peers={
        "torch": torch_layer_norm,
        "quack": Peer(quack_layer_norm, prepares=True),
        "liger": Peer(liger_layer_norm, prepares=True, work="it stores mean and deviation of every row too"),
    },
    looked_at={"flashinfer": "layer norm of bfloat16 rows only"},
    flops=lambda batch, length, cols: 8 * batch * length * cols,
    workloads=WORKLOADS,
    edges=EDGES,
    golden=(*far_means(), *constants({"y": beta_alone}, "variance 0: beta")),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "two_reads": Variant(
            "one block per row of any length, which is read twice",
            launch=lambda batch, length: Launch(batch * length, 1024, entry="layer_norm_two_reads"),
            only_labels=("S0", "S1"),
            budgets=(),
        ),
    },
)

"""y = GELU(gamma (x - mean) / sqrt(variance + eps) + beta), mean and biased variance over the last axis.

Rows up to 16,384 columns are read once and stay in registers; longer ones are read twice. A constant row gives
GELU(beta); `approximate` is that of GELU, which takes 20 instructions.
"""

from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, KernelSpec, Launch, Rule, Variant, Workload, normalising
from prism_bench.spec import AnyArray, ArrayModule

from ..include.layers.layer_norm import (
    ARGUMENTS,
    EDGES,
    ROWS_TUNE,
    WORKLOADS,
    by_rows,
    constants,
    far_means,
    normalised,
    torch_layer_norm,
)


def launch(batch: int, length: int, cols: int, approximate: str, block: int) -> Launch:
    form = "GeluTanh" if approximate == "tanh" else "Gelu"
    once, twice = f"fused_layernorm_gelu<{{}}, {form}>", f"fused_layernorm_gelu_two_reads<{form}>"
    return by_rows(batch * length, cols, block, once, twice)


def gelu(x: AnyArray, approximate: str, xp: ArrayModule, special: ModuleType) -> AnyArray:
    """Clipped below so that -inf gives -0 instead of NaN, as in gelu_activation."""
    x = xp.maximum(x, -1e3)
    if approximate == "tanh":
        return x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    return x * special.ndtr(x)


def reference(
    x: AnyArray, gamma: AnyArray, beta: AnyArray, eps: float, approximate: str, xp: ArrayModule, special: ModuleType
) -> AnyArray:
    return gelu(normalised(x, gamma, beta, eps, xp), approximate, xp, special)


def torch_layer_norm_gelu(
    torch: ModuleType, x: AnyArray, gamma: AnyArray, beta: AnyArray, eps: float, cols: int, approximate: str
) -> Any:
    return torch.nn.functional.gelu(torch_layer_norm(torch, x, gamma, beta, eps, cols), approximate=approximate)


spec = KernelSpec(
    entry="fused_layernorm_gelu<32, 4, 256, Gelu>",
    arguments=ARGUMENTS,
    parameters={"eps": 1e-5, "batch": 1, "approximate": "none"},
    rules=(
        Rule("eps > 0, so that a constant row gives GELU(beta)", lambda eps: eps > 0),
        Rule("approximate to be 'none' or 'tanh'", lambda approximate: approximate in ("none", "tanh")),
    ),
    launch=launch,
    tune=ROWS_TUNE,
    reference=reference,
    tolerance=normalising(),
    peers={"torch": torch_layer_norm_gelu},
    looked_at=dict.fromkeys(("flashinfer", "liger", "quack"), "layer norm alone: GELU would be a second pass"),
    flops=lambda batch, length, cols: 17 * batch * length * cols,
    workloads=WORKLOADS,
    edges=(*EDGES, *(Workload(length=2, cols=c, approximate="tanh") for c in (100, 1001, 4000, 16_400))),
    golden=(*far_means(), *constants({}, "variance 0: GELU(beta)")),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "tanh": Variant(
            "with the tanh form of GELU",
            parameters={"eps": 1e-5, "batch": 1, "approximate": "tanh"},
            peers={"torch": torch_layer_norm_gelu},
            edges=(),
            golden=(),
            only_labels=("S0", "S1"),
        ),
    },
)

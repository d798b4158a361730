"""y = max(0, gamma (x - mean) / sqrt(variance + eps) + beta), channel by channel, with stored statistics.

Channels are the columns of a matrix (height = width = 1) or planes (NCHW). A variance below -eps gives NaN.
"""

from types import ModuleType
from typing import Any

from prism_bench import Budget, In, InOut, KernelSpec, Out, Rule, Variant, normalising
from prism_bench.spec import AnyArray, ArrayModule

from ..include.layers.batch_norm import (
    DERIVED,
    GOLDEN,
    IMAGE,
    IMAGES,
    MATRICES,
    PARAMETERS,
    SIZES,
    WORKLOADS,
    launch_of,
    normalised,
    torch_batch_norm,
)


def reference(
    x: AnyArray, gamma: AnyArray, beta: AnyArray, mean: AnyArray, variance: AnyArray, eps: float, xp: ArrayModule
) -> AnyArray:
    return xp.maximum(normalised(x, gamma, beta, mean, variance, eps, xp), 0.0)


def torch_fused(
    torch: ModuleType,
    x: AnyArray,
    gamma: AnyArray,
    beta: AnyArray,
    mean: AnyArray,
    variance: AnyArray,
    eps: float,
    spatial: int,
) -> Any:
    return torch.relu(torch_batch_norm(torch, x, gamma, beta, mean, variance, eps, spatial))


spec = KernelSpec(
    entry="fused_batchnorm_relu<4, false>",
    arguments=(In("x", IMAGE), *PARAMETERS, Out("y", IMAGE), *SIZES),
    parameters={"eps": 1e-5, "height": 1, "width": 1},
    derived=DERIVED,
    rules=(Rule("eps >= 0", lambda eps: eps >= 0),),
    launch=launch_of("fused_batchnorm_relu"),
    reference=reference,
    tolerance=normalising(),
    peers={"torch": torch_fused},
    flops=lambda batch, channels, spatial: 4 * batch * channels * spatial + 4 * channels,
    workloads=WORKLOADS,
    edges=(*MATRICES, *IMAGES),
    golden=GOLDEN,
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "in_place": Variant(
            "x becomes y",
            arguments=(InOut("x", IMAGE), *PARAMETERS, *SIZES),
            launch=launch_of("fused_batchnorm_relu_in_place"),
            golden=(),
            only_labels=("S0",),
            budgets=(),
        ),
    },
)

"""Log-likelihoods of raw prediction errors under independent normal densities, in nats, one for each observation.

Precisions are at least 1e-10. The sum of the components is the accuracy of a belief without uncertainty.
"""

from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, In, KernelSpec, Out, Scalar, Size, Workload, reduction
from prism_bench.spec import AnyArray, Array, Tolerance

from ..include.arrays.map_arrays import MAP_TUNE, ROUNDING, in_double, launch_map
from ..include.entropy.gaussian import OBSERVATIONS, edges, likelihood_size, log_likelihood, spreads

# Bound by memory: 12 bytes an observation at the copy rate; one logarithm.
launch = launch_map("ai_accuracy<{}>", "m")


def arguments(dtype: str) -> tuple[Array | Scalar, ...]:
    inputs = (In("error", "m", dtype), In("precision", "m", dtype, fill=spreads))
    return (*inputs, Out("components", "m", dtype), Size("m", "int64"))


def tolerance(dtype: str) -> Tolerance:
    return reduction(magnitude=likelihood_size, terms=ROUNDING[dtype])


def torch_accuracy(torch: ModuleType, error: AnyArray, precision: AnyArray) -> Any:
    p = precision.clamp(min=1e-10)
    return -0.5 * (p * error * error + np.log(2 * np.pi) - p.log())


spec = KernelSpec(
    entry="ai_accuracy<float>",
    arguments=arguments("float32"),
    launch=launch("float32"),
    tune=MAP_TUNE,
    reference=log_likelihood,
    tolerance=tolerance("float32"),
    peers={"torch": torch_accuracy},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda m: 5 * m,
    workloads=OBSERVATIONS,
    edges=edges("m"),
    golden=(
        Golden(
            Workload(m=4), {"error": [0, 1, 3, np.nan], "precision": [1, 4, 0, 1]},
            {"components": [-0.5 * np.log(2 * np.pi), -2 - 0.5 * np.log(2 * np.pi) + np.log(2),
                            -4.5e-10 - 0.5 * np.log(2 * np.pi) + 0.5 * np.log(1e-10), np.nan]},
            source="calculated normal densities; a precision of 0 counts as 1e-10",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={"f64": in_double(arguments, launch, tolerance)},
)  # fmt: skip

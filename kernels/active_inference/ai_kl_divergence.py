"""D(q || p) of Gaussian beliefs with diagonal covariances, in nats, one component for each dimension.

Variances are at least 1e-10. Near q = p the terms cancel; the kernel sums x - ln(1 + x) as a series there.
"""

from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, In, KernelSpec, Out, Scalar, Size, Workload, reduction
from prism_bench.spec import AnyArray, Array, ArrayModule, Tolerance

from ..include.arrays.map_arrays import MAP_TUNE, ROUNDING, in_double, launch_map
from ..include.entropy.gaussian import LEAST, STATES, divergence, edges, spreads

# Memory-bound: 20 bytes a state at the copy rate. Doubles as well, close to the limit of instruction issue, with half
# of an SM's warps (58 registers).
launch = launch_map("ai_kl_divergence<{}>")


def arguments(dtype: str) -> tuple[Array | Scalar, ...]:
    means = (In("mu_q", "n", dtype), In("mu_p", "n", dtype))
    variances = (In("var_q", "n", dtype, fill=spreads), In("var_p", "n", dtype, fill=spreads))
    return (*means, *variances, Out("components", "n", dtype), Size("n", "int64"))


def in_floats(mu_q: AnyArray, mu_p: AnyArray, var_q: AnyArray, var_p: AnyArray, xp: ArrayModule) -> AnyArray:
    """The divergence with the least variance as a float has it: next to q = p the eighth digit of it shows."""
    var_q, var_p = (xp.where(x < LEAST, np.float32(LEAST), x) for x in (var_q, var_p))
    return divergence(mu_q, mu_p, var_q, var_p, xp)


def tolerance(dtype: str) -> Tolerance:
    """Every component is a sum of terms of one sign."""
    return reduction(magnitude=divergence, terms=ROUNDING[dtype])


def torch_divergence(torch: ModuleType, mu_q: AnyArray, mu_p: AnyArray, var_q: AnyArray, var_p: AnyArray) -> Any:
    normal = torch.distributions.Normal  # to validate its arguments it would wait for the device
    q, p = (normal(mu, var.sqrt(), validate_args=False) for mu, var in ((mu_q, var_q), (mu_p, var_p)))
    return torch.distributions.kl_divergence(q, p)


near = {"mu_q": 0.0, "mu_p": 0.0, "var_q": [1 + 2.0**-20, 1 - 2.0**-20], "var_p": 1.0}

spec = KernelSpec(
    entry="ai_kl_divergence<float>",
    arguments=arguments("float32"),
    launch=launch("float32"),
    tune=MAP_TUNE,
    reference=in_floats,
    tolerance=tolerance("float32"),
    peers={"torch": torch_divergence},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda n: 7 * n,
    workloads=STATES,
    edges=edges("n"),
    golden=(
        Golden(Workload(n=3), {"mu_q": [0, 2, 1], "mu_p": [0, 0, 1], "var_q": [1, 1, 0], "var_p": [1, 4, 0]},
               {"components": [0, 0.5 * (0.25 + 1 - 1) + 0.6931471805599453, 0]}, "calculated; 0 counts as 1e-10"),
        Golden(Workload(n=2), near, {}, "beliefs that differ in the last places"),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={"f64": in_double(arguments, launch, tolerance, reference=divergence)},
)  # fmt: skip

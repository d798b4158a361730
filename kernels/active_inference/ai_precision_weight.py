"""An error weighted by the observations' precisions, element by element: one rounding, so exact."""

from prism_bench import Budget, In, KernelSpec, Out, Scalar, Size, exact
from prism_bench.spec import Array

from ..include.arrays.map_arrays import MAP_TUNE, in_double, launch_map
from ..include.entropy.gaussian import OBSERVATIONS, edges, spreads

# Bound by memory: 12 bytes an observation at the copy rate.
launch = launch_map("ai_precision_weight<{}>", "m")


def arguments(dtype: str) -> tuple[Array | Scalar, ...]:
    inputs = (In("precision", "m", dtype, fill=spreads), In("error", "m", dtype))
    return (*inputs, Out("weighted", "m", dtype), Size("m", "int64"))


spec = KernelSpec(
    entry="ai_precision_weight<float>",
    arguments=arguments("float32"),
    launch=launch("float32"),
    tune=MAP_TUNE,
    reference=lambda precision, error: precision * error,
    tolerance=exact(),
    peers={"torch": lambda torch, precision, error: torch.mul(precision, error)},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda m: m,
    workloads=OBSERVATIONS,
    edges=edges("m"),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={"f64": in_double(arguments, launch, lambda dtype: exact())},
)

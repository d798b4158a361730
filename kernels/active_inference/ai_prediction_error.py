"""The error of a prediction, e = o - g, or weighted by the observations' precisions, precision (o - g)."""

from prism_bench import Budget, Golden, In, KernelSpec, Out, Scalar, Size, Variant, Workload, elementwise
from prism_bench.spec import Array, Tolerance

from ..include.arrays.map_arrays import MAP_TUNE, in_double, launch_map
from ..include.entropy.gaussian import OBSERVATIONS, edges, spreads

# Bound by memory: 16 bytes an observation (12 unweighted) at the copy rate.
weighted, raw = (launch_map(f"ai_prediction_error<{{}}, {form}>", "m") for form in ("true", "false"))


def arguments(dtype: str) -> tuple[Array | Scalar, ...]:
    inputs = (In("o", "m", dtype), In("g", "m", dtype), In("precision", "m", dtype, fill=spreads))
    return (*inputs, Out("error", "m", dtype), Size("m", "int64"))


def tolerance(dtype: str) -> Tolerance:
    """Two roundings; where o and g cancel, their difference is exact."""
    return elementwise(ulps=4, floor=1e-7 if dtype == "float32" else 1e-15)


spec = KernelSpec(
    entry="ai_prediction_error<float, true>",
    arguments=arguments("float32"),
    launch=weighted("float32"),
    tune=MAP_TUNE,
    reference=lambda o, g, precision: precision * (o - g),
    tolerance=tolerance("float32"),
    peers={"torch": lambda torch, o, g, precision: precision * (o - g)},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda m: 2 * m,
    workloads=OBSERVATIONS,
    edges=edges("m"),
    golden=(
        Golden(
            Workload(m=3), {"o": [3, 1, 0], "g": [1, 1, 2], "precision": [4, 9, 0]}, {"error": [8, 0, 0]}, "calculated"
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "raw": Variant(
            "without precisions",
            launch=raw("float32"),
            reference=lambda o, g: o - g,
            bytes_moved=lambda m: 12 * m,
            peers={"torch": lambda torch, o, g: o - g},
            golden=(),
            only_labels=("S0", "S1"),
        ),
        "f64": in_double(arguments, weighted, tolerance),
    },
)

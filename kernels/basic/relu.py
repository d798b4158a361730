"""y = max(0, x); `nan="propagate"` keeps NaN, as the libraries do, `nan="zero"` swallows it. -0 gives +0."""

from collections.abc import Callable
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, In, InOut, KernelSpec, Out, Rule, Size, Variant, Workload, exact
from prism_bench.spec import AnyArray, ArrayModule

from ..include.arrays.vector_load import map_tune, spread

# Memory-bound: 8 bytes an element at the copy rate, two instructions an element.
FUNCTORS = {"propagate": "Relu", "zero": "ReluZeroingNan"}


def launch_of(form: str) -> Callable[..., Any]:
    """256 threads a block, one group of four floats per thread."""
    return lambda n, nan, block, groups: spread(n, block, groups, f"{form}<{FUNCTORS[nan]}>")


def reference(x: AnyArray, nan: str, xp: ArrayModule) -> AnyArray:
    return xp.maximum(x, 0.0) if nan == "propagate" else xp.fmax(x, 0.0)


def bits(x: AnyArray, nan: str, xp: ArrayModule) -> AnyArray:
    """The result's bits; adding 0 turns -0 into +0."""
    return (reference(x, nan, xp) + 0.0).astype("float32").view("uint32")


SPECIAL = {"x": [-np.inf, np.inf, np.nan, -0.0, 0.0, -3e38, 3e38, -1e-45, 1e-45, -1.0, 1.0]}

spec = KernelSpec(
    entry="relu<Relu>",
    arguments=(In("x", "n"), Out("y", "n"), Size("n", "int64")),
    parameters={"nan": "propagate"},
    rules=(Rule("nan to be 'propagate' or 'zero'", lambda nan: nan in FUNCTORS),),
    launch=launch_of("relu"),
    tune=map_tune(),
    reference=reference,
    tolerance=exact(),
    peers={"torch": lambda torch, x: torch.relu(x), "cupy": lambda cupy, x: cupy.maximum(x, 0)},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda n: n,
    aliases=("la_relu",),
    workloads={"S0": Workload(n=1000), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=(*(Workload(n=n) for n in (0, 1, 3, 1023, 4099)), Workload(n=1025, nan="zero")),
    golden=(
        Golden(Workload(n=11), SPECIAL, {"y": [0, np.inf, np.nan, 0, 0, 0, 3e38, 0, 1e-45, 0, 1]}, source="calculated"),
        Golden(Workload(n=11, nan="zero"), SPECIAL, {"y": [0, np.inf, 0, 0, 0, 0, 3e38, 0, 1e-45, 0, 1]}, "calculated"),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "in_place": Variant(
            "x = max(0, x)",
            arguments=(InOut("x", "n"), Size("n", "int64")),
            launch=launch_of("relu_in_place"),
            golden=(),
            only_labels=("S0", "S1"),
        ),
        "bits": Variant(
            "compared bit by bit, which distinguishes +0 from -0",
            arguments=(In("x", "n"), Out("y", "n", dtype="uint32"), Size("n", "int64")),
            launch=launch_of("relu_bits"),
            reference=bits,
            workloads={"S0": Workload(n=1000)},
            edges=(),
            golden=(
                Golden(Workload(n=3), {"x": [-0.0, 0.0, -1e-45]}, {"y": [0, 0, 0]}, source="+0 is all zero bits"),
                Golden(Workload(n=3, nan="zero"), {"x": [-0.0, np.nan, -2]}, {"y": [0, 0, 0]}, source="likewise"),
            ),
            budgets=(),
        ),
    },
)

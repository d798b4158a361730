"""c = a b, element by element: one rounding, so exact; subnormals are kept."""

from collections.abc import Callable
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, In, InOut, KernelSpec, Out, Size, Variant, Workload, exact
from prism_bench.spec import Peer

from ..include.arrays.vector_load import map_tune, spread
from ..peers import cub_peers

# Bound by memory: 12 bytes an element at the copy rate, one instruction.


def launch_of(entry: str) -> Callable[..., Any]:
    """256 threads a block, one group of four floats per thread and array."""
    return lambda n, block, groups: spread(n, block, groups, entry)


FACTORS = {"a": [0, np.inf, np.nan, 1e-40, 1e-30, 3e38, -0.0], "b": [np.inf, -2, 0, 0.5, 1e-15, 10, 5]}
PRODUCTS = [np.nan, -np.inf, np.nan, np.float32(1e-40) * 0.5, np.float32(1e-30) * np.float32(1e-15), np.inf, -0.0]

spec = KernelSpec(
    entry="elementwise_multiply",
    arguments=(In("a", "n"), In("b", "n"), Out("c", "n"), Size("n", "int64")),
    launch=launch_of("elementwise_multiply"),
    tune=map_tune(),
    reference=lambda a, b: a * b,
    tolerance=exact(),
    peers={
        "torch": lambda torch, a, b: torch.mul(a, b),
        "cupy": lambda cupy, a, b: cupy.multiply(a, b),
        "cub": Peer(lambda cub, a, b: cub_peers.combined(cub, a, b, cub.OpKind.MULTIPLIES), prepares=True),
    },
    flops=lambda n: n,
    workloads={"S0": Workload(n=100_000), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=tuple(Workload(n=n) for n in (0, 1, 3, 1023, 4099)),
    golden=(
        Golden(Workload(n=7), FACTORS, {"c": PRODUCTS}, source="IEEE 754: 0 inf is NaN, subnormal results are kept"),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "in_place": Variant(
            "a *= b",
            arguments=(InOut("a", "n"), In("b", "n"), Size("n", "int64")),
            launch=launch_of("elementwise_multiply_in_place"),
            golden=(),
            only_labels=("S0", "S1"),
        ),
        "into_second": Variant(
            "b = a b",
            arguments=(In("a", "n"), InOut("b", "n"), Size("n", "int64")),
            launch=launch_of("elementwise_multiply_into_second"),
            golden=(),
            only_labels=("S0",),
            budgets=(),
        ),
    },
)

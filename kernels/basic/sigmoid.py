"""y = 1 / (1 + exp(-x)), accurate to the last bits in both tails."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, In, InOut, KernelSpec, Out, Size, Variant, Workload, elementwise
from prism_bench.spec import AnyArray

from ..include.arrays.vector_load import map_tune, spread

# Memory-bound: 8 bytes an element next to one exponential and one division.


def launch_of(entry: str) -> Callable[..., Any]:
    """One group of four floats per thread; blocks of 128 keep more of them waiting for memory than larger ones."""
    return lambda n, block, groups: spread(n, block, groups, entry)


def cupy_sigmoid(cupy: ModuleType, x: AnyArray) -> Any:
    from cupyx.scipy.special import expit

    return expit(x)


TAILS = [-np.inf, np.inf, np.nan, -0.0, 0.0, -3e38, 3e38, -104.0, -103.0, -89.0, -88.8, -87.0, -20.0, 20.0, 89.0, 1e-45]
tails = Golden(Workload(n=16), {"x": TAILS}, {}, source="the limits 0 and 1; below -88.7 exp(x), not 0; NaN passes")

spec = KernelSpec(
    entry="sigmoid",
    arguments=(In("x", "n"), Out("y", "n"), Size("n", "int64")),
    launch=launch_of("sigmoid"),
    tune=map_tune(128),
    reference=lambda x, special: special.expit(x),
    tolerance=elementwise(ulps=4),
    peers={"torch": lambda torch, x: torch.sigmoid(x), "cupy": cupy_sigmoid},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda n: 4 * n,
    aliases=("la_sigmoid",),
    workloads={"S0": Workload(n=1000), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=tuple(Workload(n=n) for n in (0, 1, 3, 1023, 4099)),
    golden=(
        tails,
        Golden(
            Workload(n=2), {"x": [np.log(3.0), -np.log(3.0)]}, {"y": [0.75, 0.25]}, source="calculated: 3 / 4 and 1 / 4"
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "in_place": Variant(
            "x = sigmoid(x)",
            arguments=(InOut("x", "n"), Size("n", "int64")),
            launch=launch_of("sigmoid_in_place"),
            golden=(),
            only_labels=("S0", "S1"),
        ),
        "fast": Variant(
            "with the hardware's exponential and division",
            launch=launch_of("sigmoid_fast"),
            tolerance=elementwise(ulps=16, floor=1e-6),
        ),
    },
)

"""y = tanh x; tiny x is returned as it is."""

from collections.abc import Callable
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, In, InOut, KernelSpec, Out, Size, Variant, Workload, elementwise

from ..include.arrays.vector_load import map_tune, spread

# Memory-bound: 8 bytes an element next to some 30 instructions.


def launch_of(entry: str) -> Callable[..., Any]:
    """256 threads a block, one group of four floats per thread."""
    return lambda n, block, groups: spread(n, block, groups, entry)


SPECIAL = [-np.inf, np.inf, np.nan, -0.0, 3e38, 1e-45, -1e-38, 1e-10, 3e-4, 0.54, 0.56, -0.6, 5.0, -9.0, 9.5, 20.0]
special_values = Golden(Workload(n=16), {"x": SPECIAL}, {}, source="the limits -1 and 1; tiny x unchanged; NaN passes")

spec = KernelSpec(
    entry="tanh_activation",
    arguments=(In("x", "n"), Out("y", "n"), Size("n", "int64")),
    launch=launch_of("tanh_activation"),
    tune=map_tune(),
    reference=lambda x, xp: xp.tanh(x),
    tolerance=elementwise(ulps=4),
    peers={"torch": lambda torch, x: torch.tanh(x), "cupy": lambda cupy, x: cupy.tanh(x)},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda n: 5 * n,
    workloads={"S0": Workload(n=1000), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=tuple(Workload(n=n) for n in (0, 1, 3, 1023, 4099)),
    golden=(
        special_values,
        Golden(
            Workload(n=4),
            inputs={"x": [1e-20, -1e-30, 1e-40, 2.0**-14]},
            expected={"y": [np.float32(1e-20), np.float32(-1e-30), np.float32(1e-40), np.tanh(2.0**-14)]},
            source="tanh x = x - x^3 / 3: x itself where x^2 is below the last bit",
            tolerance=elementwise(ulps=1, floor=0),
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    aliases=("tanh", "la_tanh"),
    variants={
        "in_place": Variant(
            "x = tanh x",
            arguments=(InOut("x", "n"), Size("n", "int64")),
            launch=launch_of("tanh_in_place"),
            golden=(),
            only_labels=("S0", "S1"),
        ),
        "fast": Variant(
            "the hardware's approximation, about 2^-11 of the result away",
            launch=launch_of("tanh_fast"),
            tolerance=elementwise().loosened(relative=2.0**-10.5),
            golden=(special_values,),
        ),
    },
)

"""y = exp x over the whole range: inf above 88.72, subnormal below -87.34, 0 below -103.97."""

from collections.abc import Callable
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    InOut,
    KernelSpec,
    Out,
    Size,
    Variant,
    Workload,
    elementwise,
    uniform,
)
from prism_bench.spec import AnyArray, ArrayModule, real

from ..include.arrays.vector_load import map_tune, spread

# Memory-bound: 8 bytes an element next to some ten instructions.


def launch_of(entry: str) -> Callable[..., Any]:
    """256 threads a block, one group of four floats per thread."""
    return lambda n, block, groups: spread(n, block, groups, entry)


def exp_beyond(x: AnyArray, xp: ArrayModule) -> AnyArray:
    """What is beyond the largest float is inf."""
    y = xp.exp(x)
    return xp.where(y > float(np.finfo(np.float32).max), xp.inf, y)


LIMITS = [-np.inf, np.inf, np.nan, 0.0, -0.0, 88.72, 88.73, 1e30, -87.3, -87.4, -103.9, -104.0, -3e38, 1e-10, -1e-45]
limits = Golden(
    Workload(n=15), {"x": LIMITS}, {}, source="the limits 0 and inf; NaN passes", tolerance=elementwise(4, floor=3e-45)
)

spec = KernelSpec(
    entry="elementwise_exp",
    arguments=(In("x", "n"), Out("y", "n"), Size("n", "int64")),
    launch=launch_of("elementwise_exp"),
    tune=map_tune(),
    reference=exp_beyond,
    tolerance=elementwise(ulps=4),
    peers={"torch": lambda torch, x: torch.exp(x), "cupy": lambda cupy, x: cupy.exp(x)},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda n: 2 * n,
    workloads={"S0": Workload(n=1000), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=tuple(Workload(n=n) for n in (0, 1, 3, 1023, 4099)),
    golden=(
        limits,
        Golden(Workload(n=2), {"x": [1.0, -1.0]}, {"y": [np.e, 1 / np.e]}, source="e and 1 / e"),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    aliases=("exp",),
    variants={
        "in_place": Variant(
            "x = exp x",
            arguments=(InOut("x", "n"), Size("n", "int64")),
            launch=launch_of("elementwise_exp_in_place"),
            golden=(),
            only_labels=("S0",),
            budgets=(),
        ),
        "wide": Variant(
            "inputs from underflow to overflow",
            arguments=(In("x", "n", fill=uniform(-110, 95), domain=real()), Out("y", "n"), Size("n", "int64")),
            workloads={"S0": Workload(n=10_000)},
            edges=(),
            golden=(),
            budgets=(),
        ),
        "fast": Variant(
            "the hardware's exponential, whose error grows with |x|: within 2^-21 (1 + |x|)",
            launch=launch_of("elementwise_exp_fast"),
            tolerance=elementwise().loosened(
                terms=2.0**-21, magnitude=lambda x, xp: (1 + xp.abs(x)) * xp.exp(xp.minimum(x, 88.0))
            ),
            golden=(),
        ),
    },
)

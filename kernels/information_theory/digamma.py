"""psi(x) = d/dx ln Gamma(x); NaN at the poles 0, -1, -2, ... The variant `table` looks integers up."""

from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Scratch,
    Size,
    Variant,
    Workload,
    elementwise,
    integers,
    uniform,
)  # fmt: skip
from prism_bench.spec import AnyArray, ArrayModule, Peer, real

from ..include.arrays.vector_load import map_tune, spread

# Memory and instruction issue take similar times. Four elements at a time without a branch need 31 instructions each
# instead of 47 and five branches; before, instruction issue was the bottleneck. In double precision 150 operations an
# element limit it.
EULER = 0.5772156649015329


def launch_table(n: int, entries: int) -> tuple[Launch, ...]:
    return (
        Launch(-(-entries // 128), 128, entry="digamma_table", arguments=("table", "entries")),
        Launch(-(-n // 1024), 256, entry="digamma_lookup"),
    )


def reference(x: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    return xp.where((x <= 0) & (x == xp.floor(x)), np.nan, special.digamma(x))


def turned(x: AnyArray, xp: ArrayModule) -> AnyArray:
    """|x psi'(x)| for negative x, about: what the reference's own rounding of pi x does to it, most next to a pole."""
    apart = xp.where(x < 0, x - xp.rint(x), 0.5)
    return xp.where(x < 0, xp.abs(x) * (np.pi / xp.sin(np.pi * apart)) ** 2, 0.0)


def reflected(x: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    """|psi(1 - x)| + |pi cot(pi x)| for negative x: the terms of the reflection, which may cancel."""
    apart = xp.where(x < 0, x - xp.rint(x), 0.5)
    terms = xp.abs(special.digamma(1 - x)) + np.pi / xp.abs(xp.tan(np.pi * apart))
    return xp.where(x < 0, terms, 0.0)


def of_integers(index: AnyArray, entries: int, xp: ArrayModule, special: ModuleType) -> AnyArray:
    return xp.where((index > 0) & (index < entries), special.digamma(xp.maximum(index, 1).astype("float64")), np.nan)


def harmonic(n: int) -> AnyArray:
    """psi(1), ..., psi(n): sums of reciprocals."""
    return np.concatenate(([0.0], np.cumsum(1 / np.arange(1, n)))) - EULER


def cupy_digamma(cupy: ModuleType, x: AnyArray) -> Any:
    from cupyx.scipy.special import digamma

    return digamma(x)


lengths = tuple(Workload(n=n) for n in (0, 1, 3, 1027))
goldens = (
    Golden(Workload(n=256), {"x": lambda n: np.arange(n) + 1.0}, {"y": harmonic}, source="sums of reciprocals"),
    Golden(
        Workload(n=12),
        {"x": [0, -0.0, -1, -2, -100, -3e9, -np.inf, np.nan, np.inf, 1e30, 6.0, 1e-30]},
        {},
        source="poles, limits, and the seam at 6",
    ),
    Golden(
        Workload(n=2000), {"x": lambda n: np.linspace(-8.3, 12.1, n)}, {}, source="negative arguments, and the root"
    ),
    Golden(Workload(n=5), {"x": [1.4616321449683623, -0.5040830082644554, -1e-10, 1e-4, -20.25]}, {}, source="roots"),
)

spec = KernelSpec(
    entry="digamma",
    arguments=(In("x", "n", fill=uniform(0.05, 30), domain=real()), Out("y", "n"), Size("n", "int64")),
    launch=lambda n, block, groups: spread(n, block, groups),
    tune=map_tune(most=256),
    reference=reference,
    tolerance=elementwise(ulps=4, floor=1e-6).loosened(terms=2.0**-23, magnitude=reflected),
    peers={"torch": lambda torch, x: torch.digamma(x), "cupy": cupy_digamma},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda n: 30 * n,
    workloads={"S0": Workload(n=256), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=(*lengths, Workload(n=40_003)),
    golden=goldens,
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "f64": Variant(
            "in double precision",
            arithmetic="fp64", entry="digamma_f64", launch=lambda n: Launch(grid=-(-n // 256), block=256),
            arguments=(
                In("x", "n", "float64", fill=uniform(0.05, 30), domain=real()), Out("y", "n", "float64"),
                Size("n", "int64"),
            ),
            tolerance=elementwise(ulps=4, floor=1e-13).loosened(terms=2.0**-51, magnitude=turned),
            edges=lengths, budgets=(),
            golden=(goldens[0], goldens[1], goldens[3]),
            peers={"torch": lambda torch, x: torch.digamma(x), "cupy": cupy_digamma},
        ),
        "table": Variant(
            "of integers, by a table of `entries` values that is made first", launch=launch_table,
            arguments=(
                In("index", "n", "int32", fill=integers(1, "entries")), Out("y", "n"), Scratch("table", "entries"),
                Size("n", "int64"), Size("entries"),
            ),
            parameters={"entries": 4097},
            rules=(Rule("entries >= 1", lambda entries: entries >= 1),),
            reference=of_integers,
            tolerance=elementwise(ulps=4, floor=1e-6),
            edges=(*lengths, Workload(n=100, entries=2)),
            golden=(
                Golden(Workload(n=5, entries=9), {"index": [0, -3, 8, 9, 1]}, {}, source="integers without an entry"),
            ),
            traffic_factor=12,  # at S0 the table is larger than the data
            peers={
                "torch": Peer(
                    lambda torch, index: torch.digamma(index.float()), work="calculates each value, without a table"
                )
            },
        ),
    },
)  # fmt: skip

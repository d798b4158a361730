"""out = alpha a + beta b; an array whose factor is 0 is not read, as in the BLAS, so that its NaN stays out."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, In, InOut, KernelSpec, Out, Scalar, Size, Variant, Workload, elementwise
from prism_bench.spec import AnyArray, Array, ArrayModule

from ..include.arrays.vector_load import map_tune, spread

# Bound by memory: 12 bytes an element at the copy rate, four instructions.


def launch_of(entry: str, each: int = 4) -> Callable[..., Any]:
    """256 threads a block, one 16-byte group per thread and array."""
    return lambda n, block, groups: spread(n, block, groups, entry, each)


def arguments(dtype: str) -> tuple[Array | Scalar, ...]:
    a, b, out = In("a", "n", dtype=dtype), In("b", "n", dtype=dtype), Out("out", "n", dtype=dtype)
    return (a, b, out, Scalar("alpha", dtype), Scalar("beta", dtype), Size("n", "int64"))


def combined(x: AnyArray, y: AnyArray, alpha: float, beta: float, xp: ArrayModule) -> AnyArray:
    terms = [factor * array for factor, array in ((alpha, x), (beta, y)) if factor != 0]
    return sum(terms) if terms else xp.zeros_like(x)


def reference(a: AnyArray, b: AnyArray, alpha: float, beta: float, xp: ArrayModule) -> AnyArray:
    """The factors are float32, as the arrays are."""
    return combined(a, b, float(np.float32(alpha)), float(np.float32(beta)), xp)


def torch_axpby(torch: ModuleType, a: AnyArray, b: AnyArray, alpha: float, beta: float) -> Any:
    return torch.add(a if alpha == 1 else alpha * a, b, alpha=beta)


NAN, INF = np.nan, np.inf
bad = {"a": [1, NAN, INF, -INF], "b": [NAN, INF, 2, INF]}
ignoring_b = Golden(
    Workload(n=4, alpha=2.0, beta=0.0), bad, {"out": [2, NAN, INF, -INF]}, source="beta = 0 ignores b, NaN and all"
)
ignoring_a = Golden(Workload(n=4, alpha=0.0, beta=-1.0), bad, {"out": [NAN, -INF, -2, -INF]}, source="alpha = 0: not a")
ignoring_both = Golden(Workload(n=4, alpha=0.0, beta=0.0), bad, {"out": 0}, source="0 a + 0 b reads nothing")
passing = Golden(Workload(n=4, alpha=1.0, beta=1.0), bad, {"out": [NAN, NAN, INF, NAN]}, source="IEEE 754")


def sizes(a: AnyArray, b: AnyArray, alpha: float, beta: float, xp: ArrayModule) -> AnyArray:
    """The absolute terms."""
    return combined(xp.abs(a), xp.abs(b), abs(alpha), abs(beta), xp)


cancelling = Golden(
    Workload(n=2, alpha=3.0, beta=-1.0),
    {"a": [1 + 2.0**-23, 1e30], "b": [3.0, 3e30]},
    {"out": [3 * 2.0**-23, 3 * float(np.float32(1e30)) - float(np.float32(3e30))]},
    source="calculated: one product rounded alone would lose what is left",
)
edges = (
    *(Workload(n=n) for n in (0, 1, 3, 1023, 4099)),
    *(Workload(n=517, alpha=alpha, beta=beta) for alpha, beta in ((0.3, 0.7), (1.0, 0.0), (0.0, -2.0), (0.0, 0.0))),
)

spec = KernelSpec(
    entry="axpby",
    arguments=arguments("float32"),
    parameters={"alpha": 1.5, "beta": -0.75},
    launch=launch_of("axpby"),
    tune=map_tune(),
    reference=reference,
    tolerance=elementwise(ulps=4),
    peers={"torch": torch_axpby},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda n: 3 * n,
    aliases=("la_axpby", "la_saxpy", "ai_axpby"),
    workloads={"S0": Workload(n=100_000), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=edges,
    golden=(ignoring_b, ignoring_a, ignoring_both, passing, cancelling),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "into_first": Variant(
            "out is a",
            arguments=(InOut("a", "n"), In("b", "n"), Scalar("alpha"), Scalar("beta"), Size("n", "int64")),
            launch=launch_of("axpby_into_first"),
            golden=(),
            only_labels=("S0", "S1"),
        ),
        "into_second": Variant(
            "out is b",
            arguments=(In("a", "n"), InOut("b", "n"), Scalar("alpha"), Scalar("beta"), Size("n", "int64")),
            launch=launch_of("axpby_into_second"),
            golden=(),
            only_labels=("S0",),
            budgets=(),
        ),
        "f64": Variant(
            "in double precision",
            arithmetic="fp64",
            arguments=arguments("float64"),
            launch=launch_of("axpby_f64", each=2),
            reference=lambda a, b, alpha, beta, xp: combined(a, b, alpha, beta, xp),
            tolerance=elementwise(ulps=4, floor=0.0).loosened(
                terms=2.0**-52, magnitude=sizes
            ),  # the reference rounds, too
            peers={"torch": torch_axpby},
            golden=(ignoring_b, ignoring_a, ignoring_both, passing),
            only_labels=("S0", "S1"),
        ),
    },
)

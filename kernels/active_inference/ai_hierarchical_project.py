"""A level's state repeated over the windows below it, out[i] = a[i mod length]: copies, so exact."""

from collections.abc import Callable
from typing import Any

from prism_bench import Budget, In, KernelSpec, Launch, Out, Rule, Scalar, Size, Workload, exact
from prism_bench.spec import AnyArray, Array, ArrayModule

from ..include.arrays.map_arrays import NUMBERS, in_double, project_blocks

# Memory-bound with 16 bytes at a time. With single floats instruction issue was the bottleneck; doubles were
# memory-bound.


def arguments(dtype: str) -> tuple[Array | Scalar, ...]:
    return (In("a", "length", dtype), Out("out", "n", dtype), Size("length", "int64"), Size("n", "int64"))


def launch(dtype: str) -> Callable[..., Any]:
    """Each thread writes several packets, so that the remainder is taken once for them all."""
    entry = f"ai_hierarchical_project<{NUMBERS[dtype]}>"
    return lambda n: Launch(grid=project_blocks(n, dtype), block=256, entry=entry)


def tiled(a: AnyArray, length: int, n: int, xp: ArrayModule) -> AnyArray:
    return xp.tile(a, -(-n // length))[:n]


spec = KernelSpec(
    entry="ai_hierarchical_project<float>",
    arguments=arguments("float32"),
    rules=(Rule("length >= 1", lambda length: length >= 1),),
    launch=launch("float32"),
    reference=tiled,
    tolerance=exact(),
    peers={"torch": lambda torch, a, length, n: a.repeat(-(-n // length))[:n]},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    workloads={
        "S0": Workload(length=100, n=900),
        "S1": Workload(length=900, n=1 << 26),
        "S2": Workload(length=900, n=1 << 28),
    },
    edges=tuple(
        Workload(length=a, n=n) for a, n in ((1, 5), (7, 0), (7, 3), (7, 7), (300, 5000), (301, 9001), (5000, 4097))
    ),
    budgets=(Budget("bandwidth_share", at_least=0.5, label="S1"),),
    variants={"f64": in_double(arguments, launch, lambda dtype: exact())},
)

"""The sum of a vector in an order that the grid fixes, float or double: the active-inference chain's own reduction."""

from collections.abc import Callable
from typing import Any

from prism_bench import Budget, Golden, In, KernelSpec, Out, Scalar, Size, Workload, reduction
from prism_bench.spec import Array, Peer, Tolerance

from ..include.arrays.map_arrays import NUMBERS, ROUNDING, in_double, sum_launch, sum_scratch
from ..include.entropy.gaussian import STATES, edges
from ..peers import cub_peers

# Memory-bound at S2, latency-bound at S1: a thread had one load in flight, six times over. Whole batches of four, eight
# to a thread, are faster; the launch is a good part of what remains.


def arguments(dtype: str) -> tuple[Array | Scalar, ...]:
    return (In("x", "n", dtype), Out("total", "1", dtype), *sum_scratch(1), Size("n", "int64"))


def launch(dtype: str) -> Callable[..., Any]:
    return lambda n, device: sum_launch(f"ai_sum_reduction<{NUMBERS[dtype]}>", n, device, dtype=dtype)


def tolerance(dtype: str) -> Tolerance:
    return reduction(magnitude=lambda x, xp: xp.abs(x).sum(), terms=ROUNDING[dtype])


spec = KernelSpec(
    entry="ai_sum_reduction<float>",
    arguments=arguments("float32"),
    launch=launch("float32"),
    reference=lambda x: x.sum(),
    tolerance=tolerance("float32"),
    peers={
        "torch": lambda torch, x: torch.sum(x),
        "cupy": lambda cupy, x: cupy.sum(x),
        "cub": Peer(lambda cub, x: cub_peers.sums(cub, (x,)), prepares=True),
    },
    flops=lambda n: n,
    workloads=STATES,
    edges=edges("n"),
    golden=(Golden(Workload(n=3), {"x": [1, 2.5, -4]}, {"total": -0.5}, "calculated"),),
    budgets=(Budget("bandwidth_share", at_least=0.85, label="S2"),),
    variants={"f64": in_double(arguments, launch, tolerance)},
)

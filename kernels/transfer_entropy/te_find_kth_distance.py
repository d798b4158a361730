"""The k-th smallest element of every row of a matrix of distances, ties counted: the radius of each point."""

from dataclasses import replace
from types import ModuleType
from typing import Any

from prism_bench import Budget, Golden, In, KernelSpec, Out, Size, Workload, exact, uniform
from prism_bench.spec import AnyArray, Peer, nonnegative

from ..include.neighbours.neighbours import kth_smallest
from ..include.neighbours.te_points import MATRIX_SIZES, NEIGHBOURS, by_warps

# Bound by memory: the matrix is read once.

DISTANCES = replace(nonnegative(), numbers=True)  # infinite from a point to itself


def torch_kth(torch: ModuleType, distances: Any, k: AnyArray) -> Any:
    return torch.kthvalue(distances, k, dim=1).values


def torch_smallest(torch: ModuleType, distances: Any, k: int) -> Any:
    """The k smallest, of which the last is the k-th; kthvalue looks for one bit after the other."""
    return torch.topk(distances, k, dim=1, largest=False).values[:, -1]


spec = KernelSpec(
    entry="te_find_kth_distance<4>",
    arguments=(In("distances", "n n", fill=uniform(0, 4), domain=DISTANCES), Out("eps", "n"), Size("n")),
    parameters={"k": 4},
    rules=(NEIGHBOURS,),
    launch=lambda n, k: by_warps(f"te_find_kth_distance<{k}>", n),
    reference=lambda distances, k, xp: kth_smallest(distances, k, xp),
    tolerance=exact(),
    peers={
        "torch_topk": Peer(torch_smallest, work="finds the places of the k smallest too"),
        "torch": Peer(torch_kth, work="finds the place of the k-th element too"),
    },
    looked_at={
        "cub": "cuda.compute has no selection of the smallest; sorting rows would do far more",
        "cuvs": "selects neighbours from points; its selection from a matrix is in C++ alone",
    },
    flops=lambda n: n * n,
    workloads=MATRIX_SIZES,
    edges=tuple(Workload(n=n, k=k) for n, k in ((2, 1), (5, 4), (33, 4), (257, 1), (100, 7))),
    golden=(
        Golden(Workload(n=3, k=2), {"distances": [[9, 1, 1], [3, 9, 2], [5, 4, 9]]}, {"eps": [1, 3, 5]}, "ties count"),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.6, label=label) for label in ("S1", "S2")),
)

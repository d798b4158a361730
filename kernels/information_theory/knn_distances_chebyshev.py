"""eps_i: distance of the k-th nearest neighbour of point i in the maximum norm, all pairs, itself left out.

Bound by arithmetic, with few bytes: a difference and a maximum a coordinate are an instruction each (of three maxima
two are one), so that a pair takes about 13 of the 128 that an SM issues a clock. A point with a coordinate that is not
finite has no neighbours (eps is NaN) and is nobody's. Duplicates give eps = 0.

The loop over pairs keeps the smallest distance to each group of neighbours, not lists of k, so that nothing in it
depends on the data (neighbours.cuh). The table of minima takes 0.5 GB for 131,072 points.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Golden, In, KernelSpec, Launch, Out, Rule, Scratch, Size, Variant, Workload, exact
from prism_bench.spec import AnyArray, ArrayModule, Peer

from ..include.neighbours.neighbours import BLOCK, group_of, nearest, pairs, splits_of, warps
from ..peers import cuvs_peers


def launches(indices: bool) -> Callable[..., Any]:
    """The smallest distance to every group of neighbours, then the nearest from the groups with the smallest."""
    flag, results = str(indices).lower(), ("eps", "idx") if indices else ("eps", "no_idx")

    def launch(n: int, d: int, k: int, splits: int) -> tuple[Launch, ...]:
        return (
            pairs(f"knn_minima<{d}>", ("x", "minima", "n", "group", "splits"), n, splits),
            warps(f"knn_nearest<{d}, {k}, {flag}>", ("x", "minima", *results, "n", "group"), n),
        )

    return launch


def reference(x: AnyArray, k: int, xp: ArrayModule) -> AnyArray:
    return xp.where(xp.isfinite(x).all(axis=1), nearest(x, k, xp)[0][:, -1], xp.nan)


def reference_indices(x: AnyArray, k: int, xp: ArrayModule) -> tuple[AnyArray, AnyArray]:
    return reference(x, k, xp), nearest(x, k, xp)[1]


def torch_knn(torch: ModuleType, x: AnyArray, k: int) -> Any:
    return torch.cat([part.kthvalue(k + 1, dim=1).values for part in torch_slabs(torch, x)])


def torch_topk(torch: ModuleType, x: AnyArray, k: int) -> Any:
    return torch.cat([part.topk(k + 1, dim=1, largest=False).values[:, k] for part in torch_slabs(torch, x)])


def torch_slabs(torch: ModuleType, x: AnyArray) -> Any:
    """Distances a slab at a time, coordinate by coordinate (cdist is far slower)."""
    if len(x) > 1 << 16:
        raise ValueError("a brute force of torch takes a second a call at this size")
    return [torch_distances(torch, x, part) for part in x.split(1 << 14)]


def torch_distances(torch: ModuleType, x: AnyArray, part: AnyArray) -> Any:
    most = (part[:, None, 0] - x[None, :, 0]).abs()
    for d in range(1, x.shape[1]):
        most = torch.maximum(most, (part[:, None, d] - x[None, :, d]).abs())
    return most


def cuvs_knn(cuvs: ModuleType, x: AnyArray, k: int) -> Any:
    """A search for k + 1 neighbours: each point is its own nearest."""
    search = cuvs_peers.nearest_neighbours(cuvs, x, k + 1)
    return lambda: search()[0][:, k]


def cuvs_knn_indices(cuvs: ModuleType, x: AnyArray, k: int) -> Any:
    search = cuvs_peers.nearest_neighbours(cuvs, x, k + 1)

    def both() -> tuple[Any, Any]:
        distances, indices = search()
        return distances[:, k], indices[:, 1:]

    return both


def lattice(n: int, d: int) -> AnyArray:
    """Points with many equal distances and duplicates."""
    return np.random.default_rng(3).integers(0, 4, size=(n, d))


def odd(n: int, d: int) -> AnyArray:
    """NaN, infinities and duplicates among ordinary points."""
    x = np.random.default_rng(4).normal(size=(n, d))
    x[3, 0], x[5, d - 1], x[6, 0], x[7] = np.nan, np.inf, np.inf, x[8]
    return x


ties = Golden(Workload(n=300, d=2, k=4), {"x": lattice}, {}, source="ties at the k-th place, duplicates")
strange = Golden(Workload(n=140, d=3, k=5), {"x": odd}, {}, source="NaN, infinities")

spec = KernelSpec(
    entry="knn_minima",
    arguments=(
        In("x", "n d"), Out("eps", "n"), Scratch("no_idx", "1", dtype="int32"), Scratch("minima", "n groups"),
        Size("n"), Size("group"), Size("splits"),
    ),
    parameters={"k": 4, "least_group": 32},
    derived={
        "group": group_of,
        "groups": lambda n, group: -(-n // group),
        "splits": splits_of,
    },
    rules=(
        Rule("1 <= k < n", lambda n, k: 1 <= k < n),
        Rule("k <= 64", lambda k: k <= 64),
        Rule("d >= 1", lambda d: d >= 1),
    ),
    launch=launches(indices=False),
    reference=reference,
    tolerance=exact(),
    peers={
        "torch": Peer(torch_knn, work="finds the places of the neighbours too"),
        "torch_topk": Peer(torch_topk, work="finds the places of all k + 1 neighbours too"),
        "cuvs": Peer(cuvs_knn, prepares=True, work="gives the indices of neighbours too"),
    },
    peer_tolerance=exact(),
    flops=lambda n, d: n * n * (2 * d + 1),
    bytes_moved=lambda n, d: 2 * 4 * n * d + 4 * n,
    traffic_factor=None,
    workloads={
        "S0": Workload(n=200, d=3, k=4),
        "S1": Workload(n=16_384, d=3, k=4),
        "S2": Workload(n=131_072, d=7, k=5),
    },
    edges=(
        *(Workload(n=n, d=1, k=k) for n, k in ((2, 1), (5, 4), (129, 1), (257, 5))),
        Workload(n=300, d=7, k=5), Workload(n=70, d=10, k=3), Workload(n=150, d=2, k=64),
        Workload(n=90, d=3, k=4),
        *(Workload(n=700, d=4, k=3, least_group=group) for group in (64, 128, 256)),
    ),
    golden=(
        Golden(
            Workload(n=5, d=1, k=2), {"x": [[0], [1], [3], [7], [7]]}, {"eps": [3, 2, 3, 4, 4]}, source="calculated",
        ),
        Golden(Workload(n=6, d=3, k=2), {"x": 2.5}, {"eps": 0.0}, source="duplicates: no distance"),
        ties,
        strange,
    ),
    variants={
        "indices": Variant(
            "also the neighbours themselves, the nearest first",
            arguments=(
                In("x", "n d"), Out("eps", "n"), Out("idx", "n k", dtype="int32"), Scratch("minima", "n groups"),
                Size("n"), Size("group"), Size("splits"),
            ),
            launch=launches(indices=True),
            reference=reference_indices,
            bytes_moved=lambda n, d, k: 2 * 4 * n * d + 4 * n + 4 * n * k,
            edges=(Workload(n=257, d=2, k=5), Workload(n=2, d=1, k=1), Workload(n=90, d=3, k=4)),
            golden=(ties, strange),
            peers={"cuvs": Peer(cuvs_knn_indices, prepares=True)},
            only_labels=("S0", "S1"),
        ),
        "naive": Variant(
            "one thread per point, everything from global memory",
            arguments=(In("x", "n d"), Out("eps", "n"), Size("n")),
            launch=lambda n, d, k: Launch(-(-n // BLOCK), BLOCK, entry=f"knn_naive<{d}, {k}>"),
            bytes_moved=lambda n, d: 4 * n * d + 4 * n,
            edges=(Workload(n=130, d=3, k=4),),
            golden=(strange,),
            only_labels=("S0", "S1"),
        ),
    },
)  # fmt: skip

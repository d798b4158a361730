"""Radii of embedded points, distances and selection in one launch: no matrix of distances is ever written."""

from types import ModuleType
from typing import Any

from prism_bench import KernelSpec, Launch, Out, Size, Workload, exact
from prism_bench.spec import AnyArray, Device, Peer

from ..include.neighbours.te_points import (
    DIMENSIONS,
    EDGES,
    EMBEDDING,
    NEIGHBOURS,
    SIZES,
    X_PAST,
    Y_FUTURE,
    Y_PAST,
    by_warps,
    own_points,
    radii,
)
from ..peers import cuvs_peers
from ..peers.te_peers import radii_of

# Bound by arithmetic: 13 instructions for the distance of a pair of 5 coordinates and one comparison with the list.


def launch(n: int, dx: int, dy: int, k: int, device: Device) -> Launch:
    own = own_points(n, device)
    return by_warps(f"fused_distance_kth<{dx}, {dy}, {k}, {own}>", n, own)


def cuvs_radii(cuvs: ModuleType, x_past: AnyArray, y_past: AnyArray, y_future: AnyArray, k: int) -> Any:
    """A search for k + 1 neighbours: each point is its own nearest."""
    search = cuvs_peers.nearest_neighbours(cuvs, cuvs_peers.joined(x_past, y_future, y_past), k + 1)
    return lambda: search()[0][:, k]


spec = KernelSpec(
    entry="fused_distance_kth<2, 2, 4, 1>",
    arguments=(X_PAST, Y_PAST, Y_FUTURE, Out("eps", "n"), Size("n")),
    parameters={**EMBEDDING, "k": 4},
    rules=(DIMENSIONS, NEIGHBOURS),
    launch=launch,
    reference=radii,
    tolerance=exact(),
    peers={
        "torch": lambda torch, x_past, y_past, y_future, k: radii_of(torch, k, x_past, y_future, y_past),
        "cuvs": Peer(cuvs_radii, prepares=True, work="gives indices too; the coordinates are joined beforehand"),
    },
    flops=lambda n, dx, dy: n * n * (2 * (1 + dx + dy) + 1),
    traffic_factor=None,
    workloads=SIZES,
    edges=(*(Workload(**{**edge, "k": min(4, edge["n"] - 1)}) for edge in EDGES), Workload(n=90, k=9)),
    replaces=("te_compute_distances", "te_find_kth_distance"),
)

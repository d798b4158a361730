"""Neighbours of every point strictly nearer than its radius in y's past alone, the point itself left out."""

from prism_bench import KernelSpec, Out, Size, exact

from ..include.neighbours.te_points import (
    DIMENSIONS,
    EDGES,
    EMBEDDING,
    RADII,
    SIZES,
    Y_PAST,
    counting,
    nearer,
)
from ..peers.te_peers import counts_within

# Bound by arithmetic: every pair is compared, by comparisons and additions at half of the rate of subtractions.


spec = KernelSpec(
    entry="te_count_neighbors_z<2, 1>",
    arguments=(Y_PAST, RADII, Out("counts", "n", "int32"), Size("n")),
    parameters=EMBEDDING,
    rules=(DIMENSIONS,),
    launch=lambda n, dy, device: counting("te_count_neighbors_z", (dy,), n, device),
    reference=lambda y_past, eps, xp: nearer([y_past], eps, xp)[0],
    tolerance=exact(),
    peers={"torch": lambda torch, eps, y_past: counts_within(torch, eps, y_past)},
    looked_at={"cuvs": "gives the nearest neighbours; it does not count those within each point's radius"},
    flops=lambda n, dy: n * n * (2 * dy + 1),
    traffic_factor=None,
    workloads=SIZES,
    edges=EDGES,
)

"""Neighbours of every point strictly nearer than its radius in the pasts of both, the point itself left out."""

from prism_bench import KernelSpec, Out, Size, exact

from ..include.neighbours.te_points import (
    DIMENSIONS,
    EDGES,
    EMBEDDING,
    RADII,
    SIZES,
    X_PAST,
    Y_PAST,
    counting,
    nearer,
)
from ..peers.te_peers import counts_within

# Bound by arithmetic: every pair is compared, by comparisons and additions at half of the rate of subtractions.


spec = KernelSpec(
    entry="te_count_neighbors_xz<2, 2, 1>",
    arguments=(X_PAST, Y_PAST, RADII, Out("counts", "n", "int32"), Size("n")),
    parameters=EMBEDDING,
    rules=(DIMENSIONS,),
    launch=lambda n, dx, dy, device: counting(
        "te_count_neighbors_xz",
        (
            dx,
            dy,
        ),
        n,
        device,
    ),
    reference=lambda x_past, y_past, eps, xp: nearer([xp.concatenate((x_past, y_past), axis=1)], eps, xp)[0],
    tolerance=exact(),
    peers={"torch": lambda torch, eps, x_past, y_past: counts_within(torch, eps, x_past, y_past)},
    looked_at={"cuvs": "gives the nearest neighbours; it does not count those within each point's radius"},
    flops=lambda n, dx, dy: n * n * (2 * (dx + dy) + 1),
    traffic_factor=None,
    workloads=SIZES,
    edges=EDGES,
)

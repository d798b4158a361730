"""Transfer entropy from given radii: three counts of every point, terms and mean in one launch over all pairs."""

from prism_bench import KernelSpec, Launch, Out, Rule, Scratch, Size, absolute
from prism_bench.spec import Device

from ..include.neighbours.te_points import (
    DIMENSIONS,
    EDGES,
    EMBEDDING,
    RADII,
    SIZES,
    X_PAST,
    Y_FUTURE,
    Y_PAST,
    by_warps,
    own_points,
    terms_within,
)

# Bound by arithmetic: the differences of z serve all three spaces.


def launch(n: int, dx: int, dy: int, device: Device) -> Launch:
    own = own_points(n, device)
    return by_warps(f"fused_te_reduction<{dx}, {dy}, {own}>", n, own)


spec = KernelSpec(
    entry="fused_te_reduction<2, 2, 1>",
    arguments=(
        X_PAST, Y_PAST, Y_FUTURE, RADII, Out("mean", "1"), Scratch("by_block", "blocks", "float64"),
        Scratch("arrived", "1", "uint32"), Size("n"), Size("k"),
    ),
    parameters={**EMBEDDING, "k": 4},
    derived={"blocks": lambda n: max(1, -(-n // 8))},
    rules=(DIMENSIONS, Rule("k >= 1", lambda k: k >= 1)),
    launch=launch,
    reference=lambda x_past, y_past, y_future, eps, k, xp, special: (
        terms_within(x_past, y_past, y_future, eps, k, xp, special).mean()
    ),
    tolerance=absolute(1e-5),
    looked_at={"cuvs": "gives the nearest neighbours; it does not count those within each point's radius"},
    flops=lambda n, dx, dy: n * n * (2 * (1 + dx + dy) + 8),
    traffic_factor=None,
    workloads=SIZES,
    edges=EDGES,
    replaces=("te_count_neighbors_y", "te_count_neighbors_xz", "te_count_neighbors_z", "te_compute", "te_reduce_sum"),
)  # fmt: skip

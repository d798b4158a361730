"""Transfer entropy from x to y by nearest neighbours (Kraskov et al.) in one launch, in nats.

mean of psi(k) - psi(n_y + 1) - psi(n_xz + 1) + psi(n_z + 1)
"""

from prism_bench import Golden, Workload
from prism_bench.extensions.fusion import ByHand, FusionProgram, Input, Map, Nearest, Reduce, Within, fuse, names, psi

# Limited by arithmetic: two visits of all pairs, 13 instructions a distance of 5 coordinates.
n, k, n_y, n_xz, n_z, total = names("n k n_y n_xz n_z total")

program = FusionProgram(
    inputs=(Input("x_past", "n dx"), Input("y_past", "n dy"), Input("y_future", "n")),
    stages=(
        Nearest("eps", ("x_past", "y_future", "y_past"), k=4),
        Within("n_y", ("y_future", "y_past"), "eps"),
        Within("n_xz", ("x_past", "y_past"), "eps"),
        Within("n_z", ("y_past",), "eps"),
        Reduce("total", "sum", psi(k) - psi(n_y + 1) - psi(n_xz + 1) + psi(n_z + 1)),
        Map("mean", total / n),
    ),
    outputs=("mean",),
    workloads={
        "S0": Workload(n=200, dx=2, dy=2),
        "S1": Workload(n=16_384, dx=2, dy=2),
        "S2": Workload(n=131_072, dx=3, dy=3),
    },
    edges=(
        *(Workload(n=n, dx=2, dy=2) for n in (5, 33, 257)),
        *(Workload(n=n, dx=dx, dy=dy) for n, dx, dy in ((130, 1, 1), (133, 3, 3), (70, 1, 3), (70, 2, 1))),
        Workload(n=90, dx=2, dy=2, k=9),
    ),
    golden=(
        Golden(
            Workload(n=64, dx=2, dy=2),
            {"x_past": 1.0, "y_past": 1.0, "y_future": 1.0},
            {},
            "all points alike: the radii are 0, no point is nearer",
        ),
    ),
    by_hand=ByHand("fused_transfer_entropy<{}>"),
    replaces=(
        "te_compute_distances", "te_find_kth_distance", "te_count_neighbors_y", "te_count_neighbors_xz",
        "te_count_neighbors_z", "te_compute", "te_reduce_sum",
    ),
)  # fmt: skip
spec = fuse(program, __name__)

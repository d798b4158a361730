"""Transfer entropy from x to y by nearest neighbours (Kraskov et al.) in one launch, in nats.

    mean of psi(k) - psi(n_y + 1) - psi(n_xz + 1) + psi(n_z + 1)

Written by `prism-bench fuse` from fusions/fused_transfer_entropy.py: change that and run it again.
"""

from pathlib import Path

from prism_bench_catalogue.include.map_arrays import ROUNDING
from prism_bench_catalogue.include.neighbours import SAMPLES, kth_distance, nearer_than, psi, psi_size
from prism_bench_catalogue.include.te_points import by_warps, own_points

from prism_bench import Golden, In, KernelSpec, Out, Rule, Scratch, Size, Variant, Workload, reduction

BY_HAND = Path(__file__).parents[1] / "fused_transfer_entropy.cu"


def arguments(dtype):
    inputs = (
        In("x_past", "n dx", dtype, fill=SAMPLES),
        In("y_past", "n dy", dtype, fill=SAMPLES),
        In("y_future", "n", dtype, fill=SAMPLES),
    )
    outputs = (Out("mean", "1", dtype),)
    return (*inputs, *outputs, Scratch("by_block", "blocks", "float64"), Scratch("arrived", "1", "uint32"), Size("n"))


def launch(dtype, entry="fused_transfer_entropy_generated<{}>", passed=None):
    return lambda n, dx, dy, k, device: by_warps(
        entry.format(f"{dx}, {dy}, {k}, {own_points(n, device)}"), n, own_points(n, device), passed
    )


def reference(x_past, y_past, y_future, n, k, xp, special):
    eps = kth_distance((x_past, y_future, y_past), k, xp)
    n_y = nearer_than((y_future, y_past), eps, xp)
    n_xz = nearer_than((x_past, y_past), eps, xp)
    n_z = nearer_than((y_past,), eps, xp)
    total = (psi(k, special) - psi(n_y + 1.0, special) - psi(n_xz + 1.0, special) + psi(n_z + 1.0, special)).sum()
    return total / n


def mean_size(x_past, y_past, y_future, n, k, xp, special):
    eps = kth_distance((x_past, y_future, y_past), k, xp)
    n_y = nearer_than((y_future, y_past), eps, xp)
    n_xz = nearer_than((x_past, y_past), eps, xp)
    n_z = nearer_than((y_past,), eps, xp)
    total = (
        psi_size(k, special)
        + psi_size(n_y + 1.0, special)
        + psi_size(n_xz + 1.0, special)
        + psi_size(n_z + 1.0, special)
    ).sum()
    return total / n


def tolerance(dtype):
    return {"mean": reduction(mean_size, terms=ROUNDING[dtype])}


spec = KernelSpec(
    entry="fused_transfer_entropy_generated",
    arguments=arguments("float32"),
    parameters={"k": 4},
    derived={"blocks": lambda n: max(1, -(-n // 8))},
    rules=(
        Rule("1 <= k < n and k <= 64", lambda n, k: 1 <= k < n and k <= 64),
        Rule("dx from 1 to 8", lambda dx: 1 <= dx <= 8),
        Rule("dy from 1 to 8", lambda dy: 1 <= dy <= 8),
    ),
    launch=launch("float32"),
    reference=reference,
    tolerance=tolerance("float32"),
    flops=lambda n, dx, dy: 4 * n * n * dx + 10 * n * n + 8 * n * n * dy + 127 * n,
    workloads={
        "S0": Workload(n=200, dx=2, dy=2),
        "S1": Workload(n=16384, dx=2, dy=2),
        "S2": Workload(n=131072, dx=3, dy=3),
    },
    edges=(
        Workload(n=5, dx=2, dy=2),
        Workload(n=33, dx=2, dy=2),
        Workload(n=257, dx=2, dy=2),
        Workload(n=130, dx=1, dy=1),
        Workload(n=133, dx=3, dy=3),
        Workload(n=70, dx=1, dy=3),
        Workload(n=70, dx=2, dy=1),
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
    replaces=(
        "te_compute_distances",
        "te_find_kth_distance",
        "te_count_neighbors_y",
        "te_count_neighbors_xz",
        "te_count_neighbors_z",
        "te_compute",
        "te_reduce_sum",
    ),
    traffic_factor=None,
    budgets=(),
    variants={
        "by_hand": Variant(
            "written by hand",
            source=BY_HAND,
            launch=launch("float32", "fused_transfer_entropy<{}>"),
        ),
    },
)

"""Conditional mutual information from nearest neighbours: I(X;Y|Z) = psi(k) + mean[psi(n_z + 1) - psi(n_xz + 1) -
psi(n_yz + 1)], the counts of neighbours nearer in each space than the k-th is in all of them (maximum norm, strictly).

Floor of S2 on an H200: 37 operations a pair of 256 a clock and SM: 9.8 ms. In instructions, 13.3 for the distances and
17.9 for the counts, of 128 a clock: 16.5 ms; few bytes. Without z (dz = 0) this is ksg_mutual_information to the bit.
Estimates may be negative; a point that is not finite makes them NaN.
"""

import numpy as np
from prism_bench_catalogue.include.ksg import ALONE, DERIVED, PARAMETERS, RULES, WORK, estimate, plan

from prism_bench import Golden, In, KernelSpec, Out, Rule, Workload, absolute


def launch(n, dx, dy, dz, k, splits, blocks, runs):
    return plan((n, k, splits, blocks, runs), (dx, dy, dz), ("x", "y", "z", "no_starts"))


def normal(seed, n, width):
    return np.random.default_rng(seed).normal(size=(n, width))


def x_alone(n, dx):
    return normal(1, n, dx)


def y_alone(n, dy):
    return normal(2, n, dy)


def cause(n, dz):
    return normal(3, n, dz)


def chained(n, dx):
    """x and y driven by one cause: what they share goes once it is known."""
    return cause(n, 1) + 0.5 * x_alone(n, dx)


def stepped(n, dx):
    return np.random.default_rng(4).integers(0, 3, size=(n, dx))


def odd(n, dz):
    z = np.random.default_rng(5).standard_cauchy(size=(n, dz))
    z[4, 0], z[9, dz - 1] = np.nan, -np.inf
    return z


spec = KernelSpec(
    entry="ksg_minima",
    arguments=(
        In("x", "n dx"), In("y", "n dy"), In("z", "n dz"), Out("estimate", "1"), Out("local", "n"), ALONE, *WORK,
    ),
    parameters={"dx": 1, "dy": 1, "dz": 1, **PARAMETERS},
    derived=DERIVED,
    rules=(*RULES, Rule("dx >= 1, dy >= 1, dz >= 0", lambda dx, dy, dz: dx >= 1 and dy >= 1 and dz >= 0)),
    launch=launch,
    reference=estimate,
    tolerance=absolute(1e-4),
    flops=lambda n, dx, dy, dz: n * n * (4 * (dx + dy + dz) + 9),
    bytes_moved=lambda n, dx, dy, dz: 3 * 4 * n * (dx + dy + dz) + 4 * n + 4,
    traffic_factor=None,
    workloads={
        "S0": Workload(n=200),
        "S1": Workload(n=16_384),
        "S2": Workload(n=131_072, dx=2, dy=2, dz=3),
    },
    edges=(
        Workload(n=2, k=1), Workload(n=5), Workload(n=257), Workload(n=300, unit="bits"), Workload(n=257, dz=0),
        Workload(n=300, dx=2, dy=2, dz=3), Workload(n=130, dz=9, k=3),
    ),
    golden=(
        Golden(
            Workload(n=400), {"x": chained, "y": lambda n, dy: cause(n, 1) + 0.5 * y_alone(n, dy), "z": cause}, {},
            source="a common cause: 0 in the mean over draws",
        ),
        Golden(
            Workload(n=300),
            {"x": stepped, "y": lambda n, dy: stepped(n, dy)[::-1], "z": lambda n, dz: stepped(n, dz)}, {},
            source="ties",
        ),
        Golden(Workload(n=130), {"x": 1.0, "y": 1.0, "z": 1.0}, {}, source="points that coincide: eps = 0"),
        Golden(Workload(n=130, dz=2), {"x": x_alone, "y": y_alone, "z": odd}, {}, source="heavy tails, NaN, infinity"),
    ),
)  # fmt: skip

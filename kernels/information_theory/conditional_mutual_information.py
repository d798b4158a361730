"""Conditional mutual information from nearest neighbours: I(X;Y|Z) = psi(k) + mean[psi(n_z + 1) - psi(n_xz + 1) -
psi(n_yz + 1)], the counts of neighbours nearer in each space than the k-th is in all of them (maximum norm, strictly).

Floor of S2 on an H200: two passes over all pairs, 42 issue slots of 128 a clock: 24 ms; few bytes. Without z (dz = 0)
this is ksg_mutual_information to the bit. Estimates may be negative; a point that is not finite makes them NaN.
"""

import math

import numpy as np

from prism_bench import (
    Golden,
    In,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Scalar,
    Scratch,
    Size,
    Workload,
    Zero,
    absolute,
)  # fmt: skip

GROUP, BLOCK, TERMS = 256, 128, 256  # points of a group of shares, threads, threads of the last steps
BLOCKS = 2112  # shares of the neighbours bring small problems up to so many blocks
SHORTEST = 32  # neighbours of a share


def splits(n):
    return max(1, min(BLOCKS // max(1, -(-n // GROUP)), n // SHORTEST))


def launch(n, dx, dy, dz, k, splits, blocks):
    """Distances in shares, their merge, counts, terms, mean. There is no shift."""
    shares, dims = -(-n // GROUP) * splits, f"{dx}, {dy}, {dz}"
    return (
        Zero("counts"),
        Launch(shares, BLOCK, entry=f"ksg_shares<{dims}, {k}>",
               arguments=("x", "y", "z", "no_shift", "distances", "n", "splits")),
        Launch(-(-n // BLOCK), BLOCK, entry=f"ksg_merge<{k}>", arguments=("distances", "eps", "n", "splits")),
        Launch(shares, BLOCK, entry=f"ksg_counts<{dims}>",
               arguments=("x", "y", "z", "no_shift", "eps", "counts", "n", "splits")),
        Launch(blocks, TERMS, entry=f"ksg_terms<{dz}>",
               arguments=("eps", "counts", "local", "by_block", "n", "k", "scale")),
        Launch(1, TERMS, entry="ksg_mean", arguments=("by_block", "estimate", "n", "blocks")),
    )  # fmt: skip


def slabs(n):
    """Rows of the table of pairs, 2^24 pairs at once."""
    rows = max(1, (1 << 24) // max(n, 1))
    return [slice(first, min(n, first + rows)) for first in range(0, n, rows)]


def apart(space, own, xp):
    """Maximum norms from float32 differences, on which strict comparisons depend; a point is not its own neighbour."""
    most = xp.zeros((own.stop - own.start, len(space)), "float32")
    for column in space.T.astype("float32"):
        most = xp.maximum(most, xp.abs(column[own, None] - column[None]))
    at = xp.arange(len(most))
    most[at, at + own.start] = xp.inf
    return xp.where(xp.isnan(most), xp.inf, most)


def kth_smallest(table, k, xp):
    """k times the smallest, which then counts no more."""
    table, at = table.copy(), xp.arange(len(table))
    for _ in range(k - 1):
        table[at, table.argmin(axis=1)] = xp.inf
    return table.min(axis=1)


def reference(x, y, z, n, k, scale, xp, special):
    finite = xp.isfinite(xp.concatenate((x, y, z), axis=1)).all(axis=1)
    x, y, z = (xp.where(finite[:, None], values, xp.nan) for values in (x, y, z))
    local = xp.empty(n)
    for own in slabs(n):
        in_x, in_y, in_z = (apart(space, own, xp) for space in (x, y, z))
        in_xz, in_yz = xp.maximum(in_x, in_z), xp.maximum(in_y, in_z)
        eps = kth_smallest(xp.maximum(in_xz, in_y), k, xp)[:, None]
        n_xz, n_yz, n_z = ((space < eps).sum(axis=1) for space in (in_xz, in_yz, in_z))
        if z.shape[1] == 0:
            n_z = n_z * 0 + n - 1
        psi = [special.digamma(count + 1.0) for count in (n_xz, n_yz, n_z)]
        local[own] = special.digamma(float(k)) + psi[2] - psi[0] - psi[1]
    local = scale * xp.where(finite, local, xp.nan)
    return local.mean(), local


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
    entry="ksg_shares",
    arguments=(
        In("x", "n dx"), In("y", "n dy"), In("z", "n dz"), Out("estimate", "1"), Out("local", "n"),
        Scratch("distances", "splits k n"), Scratch("eps", "n"), Scratch("counts", "3 n", dtype="int32"),
        Scratch("by_block", "blocks", dtype="float64"), Scratch("no_shift", "1", dtype="int32"), Size("n"),
        Size("splits"), Size("blocks"), Size("k"), Scalar("scale"),
    ),
    parameters={"dx": 1, "dy": 1, "dz": 1, "k": 4, "unit": "nats"},
    derived={
        "splits": splits,
        "blocks": lambda n: -(-n // TERMS),
        "scale": lambda unit: 1 / math.log(2) if unit == "bits" else 1.0,
    },
    rules=(
        Rule("1 <= k < n", lambda n, k: 1 <= k < n),
        Rule("k <= 64", lambda k: k <= 64),
        Rule("dx >= 1, dy >= 1, dz >= 0", lambda dx, dy, dz: dx >= 1 and dy >= 1 and dz >= 0),
        Rule("n <= 2^24, which float counts hold", lambda n: n <= 1 << 24),
        Rule("unit to be nats or bits", lambda unit: unit in ("nats", "bits")),
    ),
    launch=launch,
    reference=reference,
    tolerance=absolute(1e-4),
    flops=lambda n, dx, dy, dz: n * n * (4 * (dx + dy + dz) + 9),
    bytes_moved=lambda n, dx, dy, dz: 2 * 4 * n * (dx + dy + dz) + 4 * n + 4,
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

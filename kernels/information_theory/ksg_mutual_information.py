"""Mutual information by Kraskov, Stoegbauer and Grassberger: psi(k) + psi(N) - mean[psi(n_x + 1) + psi(n_y + 1)], n_x
and n_y the neighbours nearer in x, in y, than the k-th is in both (maximum norm, strictly).

Floor of S2 on an H200: two passes over all pairs, 40 issue slots of 128 a clock: 23 ms; few bytes. Estimates may be
negative; a point that is not finite makes them NaN. Standardise the inputs, and jitter values that repeat.
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
    Variant,
    Workload,
    Zero,
    absolute,
)  # fmt: skip

GROUP, BLOCK, TERMS = 256, 128, 256  # points of a group of shares, threads, threads of the last steps
BLOCKS = 2112  # shares of the neighbours bring small problems up to so many blocks
SHORTEST = 32  # neighbours of a share


def splits(n):
    return max(1, min(BLOCKS // max(1, -(-n // GROUP)), n // SHORTEST))


def launch(n, dx, dy, k, splits, blocks):
    """Distances in shares, their merge, counts, terms, mean. There is no z, and no shift."""
    shares, dims = -(-n // GROUP) * splits, f"{dx}, {dy}, 0"
    return (
        Zero("counts"),
        Launch(shares, BLOCK, entry=f"ksg_shares<{dims}, {k}>",
               arguments=("x", "y", "x", "no_shift", "distances", "n", "splits")),
        Launch(-(-n // BLOCK), BLOCK, entry=f"ksg_merge<{k}>", arguments=("distances", "eps", "n", "splits")),
        Launch(shares, BLOCK, entry=f"ksg_counts<{dims}>",
               arguments=("x", "y", "x", "no_shift", "eps", "counts", "n", "splits")),
        Launch(blocks, TERMS, entry="ksg_terms<0>",
               arguments=("eps", "counts", "local", "by_block", "n", "k", "scale")),
        Launch(1, TERMS, entry="ksg_mean", arguments=("by_block", "estimate", "n", "blocks")),
    )  # fmt: skip


def launch_second(n, dx, dy, k, splits, blocks):
    shares, dims = -(-n // GROUP) * splits, f"{dx}, {dy}"
    return (
        Zero("counts"),
        Launch(shares, BLOCK, entry=f"ksg2_shares<{dims}, {k}>",
               arguments=("x", "y", "distances", "indices", "n", "splits")),
        Launch(-(-n // BLOCK), BLOCK, entry=f"ksg2_merge<{dims}, {k}>",
               arguments=("x", "y", "distances", "indices", "sides", "n", "splits")),
        Launch(shares, BLOCK, entry=f"ksg_counts<{dims}, 0, true>",
               arguments=("x", "y", "x", "no_shift", "sides", "counts", "n", "splits")),
        Launch(blocks, TERMS, entry="ksg_terms<0, true>",
               arguments=("sides", "counts", "local", "by_block", "n", "k", "scale")),
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


def reference(x, y, n, k, scale, xp, special):
    finite = xp.isfinite(x).all(axis=1) & xp.isfinite(y).all(axis=1)
    x, y = (xp.where(finite[:, None], values, xp.nan) for values in (x, y))
    local = xp.empty(n)
    for own in slabs(n):
        in_x, in_y = apart(x, own, xp), apart(y, own, xp)
        eps = kth_smallest(xp.maximum(in_x, in_y), k, xp)[:, None]
        n_x, n_y = (in_x < eps).sum(axis=1), (in_y < eps).sum(axis=1)
        local[own] = special.digamma(float(k)) + special.digamma(float(n)) - sum(
            special.digamma(count + 1.0) for count in (n_x, n_y)
        )  # fmt: skip
    local = scale * xp.where(finite, local, xp.nan)
    return local.mean(), local


def reference_second(x, y, n, k, scale, xp, special):
    """Of equal distances the lower index is nearer; counts include the rectangle's border."""
    finite = xp.isfinite(x).all(axis=1) & xp.isfinite(y).all(axis=1)
    x, y = (xp.where(finite[:, None], values, xp.nan) for values in (x, y))
    local = xp.empty(n)
    for own in slabs(n):
        in_x, in_y = apart(x, own, xp), apart(y, own, xp)
        joint, at = xp.maximum(in_x, in_y), xp.arange(own.stop - own.start)
        sides = [xp.zeros(len(at), "float32")] * 2
        for _ in range(k):
            nearest = joint.argmin(axis=1)
            sides = [xp.maximum(side, table[at, nearest]) for side, table in zip(sides, (in_x, in_y), strict=True)]
            joint[at, nearest] = xp.inf
        counts = [(table <= side[:, None]).sum(axis=1) for side, table in zip(sides, (in_x, in_y), strict=True)]
        psi = [special.digamma(xp.maximum(count, 1).astype("float64")) for count in counts]
        local[own] = special.digamma(float(k)) - 1 / k + special.digamma(float(n)) - psi[0] - psi[1]
    local = scale * xp.where(finite, local, xp.nan)
    return local.mean(), local


def dependent(rho):
    """y of correlation rho with x (the shapes may differ)."""

    def y(n, dx, dy):
        rng = np.random.default_rng(0)
        first = rng.normal(size=(n, dx))[:, :1]
        return rho * first + math.sqrt(1 - rho**2) * np.random.default_rng(1).normal(size=(n, dy))

    return {"x": lambda n, dx: np.random.default_rng(0).normal(size=(n, dx)), "y": y}


def stepped(n, dx):
    """Few values: ties everywhere, and eps = 0 where points coincide."""
    return np.random.default_rng(2).integers(0, 3, size=(n, dx))


def odd(n, dx):
    x = np.random.default_rng(3).standard_cauchy(size=(n, dx))
    x[4, 0], x[9, dx - 1] = np.nan, np.inf
    return x


GOLDEN = (
    Golden(Workload(n=400), dependent(0.5), {}, source="a bivariate normal: 0.144 in the mean over draws"),
    Golden(Workload(n=400), dependent(0.999), {}, source="strong dependence"),
    Golden(Workload(n=300), {"x": stepped, "y": lambda n, dy: stepped(n, dy)[::-1]}, {}, source="ties"),
    Golden(Workload(n=130), {"x": 1.0, "y": 1.0}, {}, source="points that coincide: eps = 0"),
    Golden(
        Workload(n=130),
        {"x": odd, "y": lambda n, dy: np.random.default_rng(6).normal(size=(n, dy))},
        {},
        source="heavy tails, NaN and infinity",
    ),
)

spec = KernelSpec(
    entry="ksg_shares",
    arguments=(
        In("x", "n dx"), In("y", "n dy"), Out("estimate", "1"), Out("local", "n"), Scratch("distances", "splits k n"),
        Scratch("eps", "n"), Scratch("counts", "3 n", dtype="int32"), Scratch("by_block", "blocks", dtype="float64"),
        Scratch("no_shift", "1", dtype="int32"),
        Size("n"), Size("splits"), Size("blocks"), Size("k"), Scalar("scale"),
    ),
    parameters={"dx": 1, "dy": 1, "k": 4, "unit": "nats"},
    derived={
        "splits": splits,
        "blocks": lambda n: -(-n // TERMS),
        "scale": lambda unit: 1 / math.log(2) if unit == "bits" else 1.0,
    },
    rules=(
        Rule("1 <= k < n", lambda n, k: 1 <= k < n),
        Rule("k <= 64", lambda k: k <= 64),
        Rule("dx >= 1 and dy >= 1", lambda dx, dy: dx >= 1 and dy >= 1),
        Rule("n <= 2^24, which float counts hold", lambda n: n <= 1 << 24),
        Rule("unit to be nats or bits", lambda unit: unit in ("nats", "bits")),
    ),
    launch=launch,
    reference=reference,
    tolerance=absolute(1e-4),
    flops=lambda n, dx, dy: n * n * (4 * (dx + dy) + 5),
    bytes_moved=lambda n, dx, dy: 2 * 4 * n * (dx + dy) + 4 * n + 4,
    traffic_factor=None,
    workloads={
        "S0": Workload(n=200),
        "S1": Workload(n=16_384),
        "S2": Workload(n=131_072, dx=3, dy=3),
    },
    edges=(
        Workload(n=2, k=1), Workload(n=5), Workload(n=257), Workload(n=600), Workload(n=300, unit="bits"),
        Workload(n=300, dx=3, dy=3), Workload(n=130, dx=2, dy=1, k=3),
    ),
    golden=GOLDEN,
    variants={
        "second": Variant(
            "the second estimator: rectangles around the k nearest, their borders included",
            arguments=(
                In("x", "n dx"), In("y", "n dy"), Out("estimate", "1"), Out("local", "n"),
                Scratch("distances", "splits k n"), Scratch("indices", "splits k n", dtype="int32"),
                Scratch("sides", "2 n"), Scratch("counts", "3 n", dtype="int32"),
                Scratch("by_block", "blocks", dtype="float64"), Scratch("no_shift", "1", dtype="int32"), Size("n"),
                Size("splits"), Size("blocks"), Size("k"), Scalar("scale"),
            ),
            launch=launch_second,
            reference=reference_second,
            bytes_moved=lambda n, dx, dy: 3 * 4 * n * (dx + dy) + 4 * n + 4,
            edges=(Workload(n=2, k=1), Workload(n=257), Workload(n=130, dx=2, dy=1, k=3)),
            golden=GOLDEN,
            only_labels=("S0", "S1"),
        ),
    },
)  # fmt: skip

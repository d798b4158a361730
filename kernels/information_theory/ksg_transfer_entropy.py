"""Transfer entropy from nearest neighbours, source X to target Y: I(Y_future; X_past | Y_past) = psi(k) +
mean[psi(n_z + 1) - psi(n_yz + 1) - psi(n_xz + 1)] (Frenzel and Pompe), z the past of Y, maximum norm, strictly nearer.

`significance` compares with circular shifts of X, which keep its autocorrelation. Floor of S2 on an H200: two passes
over all pairs, 42 issue slots of 128 a clock: 24 ms; few bytes. Estimates may be negative.
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
    elementwise,
)  # fmt: skip
from prism_bench.inputs import integers

GROUP, BLOCK, TERMS = 256, 128, 256  # points of a group of shares, threads, threads of the last steps
BLOCKS = 2112  # shares of the neighbours bring small problems up to so many blocks
SHORTEST = 32  # neighbours of a share


def splits(n, runs):
    return max(1, min(BLOCKS // (runs * max(1, -(-n // GROUP))), n // SHORTEST))


def launch(n, dx, dy, k, splits, blocks, runs):
    """Distances in shares, their merge, counts, terms, mean; a row of blocks for every shift."""
    shares, dims, points = -(-n // GROUP) * splits, f"{dx}, 1, {dy}", ("x_past", "y_future", "y_past", "shifts")
    steps = (
        Zero("counts"),
        Launch((shares, runs), BLOCK, entry=f"ksg_shares<{dims}, {k}>",
               arguments=(*points, "distances", "n", "splits")),
        Launch((-(-n // BLOCK), runs), BLOCK, entry=f"ksg_merge<{k}>", arguments=("distances", "eps", "n", "splits")),
        Launch((shares, runs), BLOCK, entry=f"ksg_counts<{dims}>", arguments=(*points, "eps", "counts", "n", "splits")),
        Launch((blocks, runs), TERMS, entry=f"ksg_terms<{dy}>",
               arguments=("eps", "counts", "local", "by_block", "n", "k", "scale")),
    )  # fmt: skip
    mean = "estimates" if runs > 1 else "estimate"
    return (*steps, Launch((1, runs), TERMS, entry="ksg_mean", arguments=("by_block", mean, "n", "blocks")))


def launch_tested(n, dx, dy, k, splits, blocks, runs):
    last = ("estimates", "estimate", "p_value", "surrogates")
    return (*launch(n, dx, dy, k, splits, blocks, runs), Launch(1, 256, entry="te_significance", arguments=last))


def launch_series(n, dx, dy, k, splits, blocks, runs):
    series = ("source", "target", "x_past", "y_past", "y_future", "n", "dx", "delay")
    embed = Launch(-(-n // BLOCK), BLOCK, entry="te_embed", arguments=series)
    return (embed, *launch(n, dx, dy, k, splits, blocks, runs))


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


def terms(x_past, y_past, y_future, k, scale, xp, special):
    finite = xp.isfinite(xp.concatenate((x_past, y_past, y_future), axis=1)).all(axis=1)
    x, y, z = (xp.where(finite[:, None], values, xp.nan) for values in (x_past, y_future, y_past))
    local = xp.empty(len(x))
    for own in slabs(len(x)):
        in_z = apart(z, own, xp)
        in_xz, in_yz = (xp.maximum(apart(space, own, xp), in_z) for space in (x, y))
        eps = kth_smallest(xp.maximum(in_xz, in_yz), k, xp)[:, None]
        n_xz, n_yz, n_z = (special.digamma((space < eps).sum(axis=1) + 1.0) for space in (in_xz, in_yz, in_z))
        local[own] = special.digamma(float(k)) + n_z - n_xz - n_yz
    return scale * xp.where(finite, local, xp.nan)


def reference(x_past, y_past, y_future, k, scale, xp, special):
    local = terms(x_past, y_past, y_future, k, scale, xp, special)
    return local.mean(), local


def reference_tested(x_past, y_past, y_future, shifts, k, scale, xp, special):
    local = terms(x_past, y_past, y_future, k, scale, xp, special)
    shifted = [xp.roll(x_past, -int(shift), axis=0) for shift in shifts]
    reached = sum(terms(x, y_past, y_future, k, scale, xp, special).mean() >= local.mean() for x in shifted)
    return local.mean(), local, (1.0 + reached) / (1.0 + len(shifts))


def reference_series(source, target, n, dx, delay, k, scale, xp, special):
    newest = xp.arange(n) + (dx - 1) * delay
    pasts = newest[:, None] - delay * xp.arange(dx)[None]
    return reference(source[pasts], target[pasts], target[newest + 1][:, None], k, scale, xp, special)


def coupled(length, seed=0):
    """x white, y' = 0.5 y + 0.4 x + e: the transfer entropy is 0.5 ln(1 + 0.16) = 0.0742 from x to y, 0 back."""
    x, e = np.random.default_rng(seed).normal(size=(2, length))
    y = np.zeros(length)
    for t in range(length - 1):
        y[t + 1] = 0.5 * y[t] + 0.4 * x[t] + e[t]
    return x, y


def directed(forward):
    def past_of(which):
        return lambda n: coupled(n + 1)[which][:n, None]

    source, target = (0, 1) if forward else (1, 0)
    future = lambda n: coupled(n + 1)[target][1:, None]  # noqa: E731
    return {"x_past": past_of(source), "y_past": past_of(target), "y_future": future}


def odd(n):
    x = np.random.default_rng(5).standard_cauchy(size=(n, 1))
    x[4], x[9] = np.nan, -np.inf
    return x


pasts = (In("x_past", "n dx"), In("y_past", "n dy"), In("y_future", "n 1"))
results = (Out("estimate", "1"), Out("local", "n"))
work = (
    Scratch("distances", "runs splits k n"), Scratch("eps", "runs n"), Scratch("counts", "runs 3 n", dtype="int32"),
    Scratch("by_block", "runs blocks", dtype="float64"), Size("n"), Size("splits"), Size("blocks"), Size("k"),
    Scalar("scale"),
)  # fmt: skip
rules = (
    Rule("1 <= k < n", lambda n, k: 1 <= k < n),
    Rule("k <= 64", lambda k: k <= 64),
    Rule("dx >= 1 and dy >= 1", lambda dx, dy: dx >= 1 and dy >= 1),
    Rule("n <= 2^24, which float counts hold", lambda n: n <= 1 << 24),
    Rule("unit to be nats or bits", lambda unit: unit in ("nats", "bits")),
    Rule("0 <= surrogates < 65,535", lambda surrogates: 0 <= surrogates < 65_535),
)
derived = {
    "runs": lambda surrogates: 1 + surrogates,
    "splits": splits,
    "blocks": lambda n: -(-n // TERMS),
    "scale": lambda unit: 1 / math.log(2) if unit == "bits" else 1.0,
}

spec = KernelSpec(
    entry="ksg_shares",
    arguments=(*pasts, *results, Scratch("shifts", "1", dtype="int32"), *work),
    parameters={"dx": 1, "dy": 1, "k": 4, "unit": "nats", "surrogates": 0},
    derived=derived,
    rules=(*rules, Rule("surrogates = 0; the variant `significance` has them", lambda surrogates: surrogates == 0)),
    launch=launch,
    reference=reference,
    tolerance=absolute(1e-4),
    flops=lambda n, dx, dy: n * n * (4 * (1 + dx + dy) + 9),
    bytes_moved=lambda n, dx, dy: 2 * 4 * n * (1 + dx + dy) + 4 * n + 4,
    traffic_factor=None,
    workloads={
        "S0": Workload(n=200, dx=2, dy=2),
        "S1": Workload(n=16_384, dx=2, dy=2),
        "S2": Workload(n=131_072, dx=3, dy=3),
    },
    edges=(
        Workload(n=2, k=1), Workload(n=5), Workload(n=257, dx=2, dy=2), Workload(n=300, unit="bits"),
        Workload(n=270, dx=3, dy=3), Workload(n=130, dx=1, dy=2, k=3),
    ),
    golden=(
        Golden(Workload(n=500), directed(True), {}, source="from source to target: 0.074 in the mean over draws"),
        Golden(Workload(n=500), directed(False), {}, source="from target to source: 0 in the mean over draws"),
        Golden(Workload(n=130), {"x_past": 1.0, "y_past": 1.0, "y_future": 1.0}, {}, source="eps = 0 everywhere"),
        Golden(
            Workload(n=130), {"x_past": odd, "y_past": lambda n: odd(n)[::-1], "y_future": odd}, {},
            source="heavy tails, NaN and infinity",
        ),
    ),
    variants={
        "significance": Variant(
            "p-value against circular shifts of the source",
            arguments=(
                *pasts, In("shifts", "surrogates", dtype="int32", fill=integers(1, "n")), *results, Out("p_value", "1"),
                Scratch("estimates", "runs"), *work, Size("surrogates"),
            ),
            parameters={"dx": 1, "dy": 1, "k": 4, "unit": "nats", "surrogates": 100},
            rules=rules,
            launch=launch_tested,
            reference=reference_tested,
            tolerance={"estimate": absolute(1e-4), "local": absolute(1e-4), "p_value": elementwise()},
            flops=lambda n, dx, dy, runs: runs * n * n * (4 * (1 + dx + dy) + 9),
            bytes_moved=lambda n, dx, dy, surrogates: (
                2 * 4 * n * (1 + dx + dy) + 4 * n + 8 + 8 * surrogates
            ),
            workloads={"S0": Workload(n=200), "S1": Workload(n=4096)},
            edges=(Workload(n=130, surrogates=5), Workload(n=40, surrogates=1, k=2)),
            golden=(
                Golden(
                    Workload(n=300, surrogates=9),
                    {**directed(True), "shifts": lambda surrogates: np.linspace(20, 270, surrogates).astype(int)},
                    {}, source="a real coupling stands out",
                ),
            ),
        ),
        "series": Variant(
            "from the raw series, embedded on the device",
            arguments=(
                In("source", "length"), In("target", "length"), *results, Scratch("shifts", "1", dtype="int32"),
                Scratch("x_past", "n dx"), Scratch("y_past", "n dy"), Scratch("y_future", "n"), *work, Size("dx"),
                Size("delay"),
            ),
            parameters={"dx": 2, "dy": 2, "k": 4, "unit": "nats", "surrogates": 0, "delay": 1},
            derived={"n": lambda length, dx, delay: length - (dx - 1) * delay - 1, **derived},
            rules=(
                *rules, Rule("dx = dy, one embedding for both", lambda dx, dy: dx == dy),
                Rule("delay >= 1", lambda delay: delay >= 1),
            ),
            launch=launch_series,
            reference=reference_series,
            bytes_moved=lambda length, n: 2 * 4 * length + 4 * n + 4,
            workloads={"S0": Workload(length=202), "S1": Workload(length=16_386)},
            edges=(
                Workload(length=100, delay=3), Workload(length=150, dx=3, dy=3, delay=2),
                Workload(length=60, dx=1, dy=1),
            ),
            golden=(),
        ),
    },
)  # fmt: skip

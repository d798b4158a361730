"""What the estimates of `ksg.cuh` share: the host plan, sizes, rules, and the reference in float64."""

import math
from types import ModuleType
from typing import Any

from prism_bench import Launch, Rule, Scalar, Scratch, Size, Zero
from prism_bench.spec import AnyArray, ArrayModule

from .neighbours import apart, group_of, kth_smallest, pairs, slabs, splits_of, warps

TERMS = 256  # threads of the last steps
SHAPE = ("n", "length", "group")

WORK = (
    Scratch("minima", "runs n groups"), Scratch("eps", "radii n"), Scratch("counts", "runs 3 n", dtype="int32"),
    Scratch("by_block", "runs blocks", dtype="float64"), Size("n"), Size("length"), Size("group"), Size("splits"),
    Size("blocks"), Size("k"), Scalar("scale"),
)  # fmt: skip
ALONE = Scratch("no_starts", "1", dtype="int32")  # where x keeps its order
PARAMETERS = {"k": 4, "unit": "nats", "least_group": 32}
DERIVED = {
    "runs": lambda: 1,
    "radii": lambda runs: runs,
    "length": lambda n: n,
    "group": group_of,
    "groups": lambda n, group: -(-n // group),
    "splits": splits_of,
    "blocks": lambda n: -(-n // TERMS),
    "scale": lambda unit: 1 / math.log(2) if unit == "bits" else 1.0,
}
RULES = (
    Rule("1 <= k < n", lambda n, k: 1 <= k < n),
    Rule("k <= 64", lambda k: k <= 64),
    Rule("n <= 2^24, which float counts hold", lambda n: n <= 1 << 24),
    Rule("unit to be nats or bits", lambda unit: unit in ("nats", "bits")),
)


def plan(
    axes: tuple[int, ...],
    dims: tuple[int, int, int],
    points: tuple[str, str, str, str],
    *,
    mean: str = "estimate",
    second: bool = False,
) -> tuple[Launch | Zero, ...]:
    """Minima, radii, counts, terms, mean.

    `axes` are n, k, splits, blocks, runs; `dims` those of x, y and z; `points` the three arrays and the starts of x.
    `second` is the second estimator, without z.
    """
    n, k, splits, blocks, runs = axes
    template, flag = ", ".join(map(str, dims)), ", true" if second else ""
    last = f"{dims[2]}{flag}"
    return (
        Zero("counts"),
        pairs(f"ksg_minima<{template}>", (*points, "minima", *SHAPE, "splits"), n, splits, runs),
        warps(f"ksg_radii<{template}, {k}{flag}>", (*points, "minima", "eps", *SHAPE), n, runs),
        pairs(f"ksg_counts<{template}{flag}>", (*points, "eps", "counts", *SHAPE, "splits"), n, splits, runs),
        Launch((blocks, runs), TERMS, entry=f"ksg_terms<{last}>",
               arguments=("eps", "counts", "local", "by_block", "n", "k", "scale")),
        Launch((1, runs), TERMS, entry="ksg_mean", arguments=("by_block", mean, "n", "blocks")),
    )  # fmt: skip


def significance(steps: tuple[Launch | Zero, ...]) -> tuple[Any, ...]:
    """The estimates of all runs, whose number of surrogates reaches the first one."""
    last = ("estimates", "estimate", "p_value", "surrogates")
    return (*steps, Launch(1, TERMS, entry="ksg_significance", arguments=last))


def undecided(local: AnyArray, surrogates: AnyArray) -> AnyArray:
    """The share of surrogates whose mean reaches the estimate or not as rounding has it: where values repeat."""
    apart = [abs(other.mean() - local.mean()) for other in surrogates]
    return sum(one <= 1e-6 * (1 + abs(local).mean()) for one in apart) / (1.0 + len(surrogates))


def p_value(local: AnyArray, surrogates: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The estimate, its terms, and the share of surrogates' terms whose mean reaches it, itself counted."""
    reached = sum(other.mean() >= local.mean() for other in surrogates)
    return local.mean(), local, (1.0 + reached) / (1.0 + len(surrogates))


def terms(
    x: AnyArray, y: AnyArray, z: AnyArray, k: int, scale: float, xp: ArrayModule, special: ModuleType
) -> AnyArray:
    """psi(k) + psi(n_z + 1) - psi(n_xz + 1) - psi(n_yz + 1) of every point; n_z is n - 1 where z has no coordinate."""
    n = len(x)
    finite = xp.isfinite(xp.concatenate((x, y, z), axis=1)).all(axis=1)
    x, y, z = (xp.where(finite[:, None], values, xp.nan) for values in (x, y, z))
    local = xp.empty(n)
    for own in slabs(n):
        in_z = apart(z, own, xp)
        in_xz, in_yz = (xp.maximum(apart(space, own, xp), in_z) for space in (x, y))
        eps = kth_smallest(xp.maximum(in_xz, in_yz), k, xp)[:, None]
        counts = [(space < eps).sum(axis=1) for space in (in_xz, in_yz, in_z)]
        if z.shape[1] == 0:
            counts[2] = counts[2] * 0 + n - 1
        n_xz, n_yz, n_z = (special.digamma(count + 1.0) for count in counts)
        local[own] = special.digamma(float(k)) + n_z - n_xz - n_yz
    return scale * xp.where(finite, local, xp.nan)


def estimate(
    x: AnyArray, y: AnyArray, z: AnyArray, k: int, scale: float, xp: ArrayModule, special: ModuleType
) -> tuple[AnyArray, AnyArray]:
    """The mean of the terms, and the terms."""
    local = terms(x, y, z, k, scale, xp, special)
    return local.mean(), local

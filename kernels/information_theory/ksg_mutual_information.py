"""Mutual information by Kraskov, Stoegbauer and Grassberger.

psi(k) + psi(N) - mean[psi(n_x + 1) + psi(n_y + 1)], n_x and n_y the neighbours nearer in x, in y, than the k-th is in
both (maximum norm, strictly).

Bound by arithmetic, with few bytes: a pair takes about 11 instructions for the distances and 15 for the counts, of the
128 that an SM issues a clock. Estimates may be negative; a point that is not finite makes them NaN. Standardise the
inputs, and jitter values that repeat.
"""

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Golden, In, KernelSpec, Launch, Out, Rule, Variant, Workload, Zero, absolute
from prism_bench.spec import AnyArray, ArrayModule

from ..include.neighbours.ksg import ALONE, DERIVED, PARAMETERS, RULES, WORK, estimate, plan
from ..include.neighbours.neighbours import apart, slabs

POINTS = ("x", "y", "x", "no_starts")


def launch(n: int, dx: int, dy: int, k: int, splits: int, blocks: int, runs: int) -> tuple[Launch | Zero, ...]:
    """There is no z."""
    return plan((n, k, splits, blocks, runs), (dx, dy, 0), POINTS)


def launch_second(n: int, dx: int, dy: int, k: int, splits: int, blocks: int, runs: int) -> tuple[Launch | Zero, ...]:
    return plan((n, k, splits, blocks, runs), (dx, dy, 0), POINTS, second=True)


def reference(
    x: AnyArray, y: AnyArray, k: int, scale: float, xp: ArrayModule, special: ModuleType
) -> tuple[AnyArray, AnyArray]:
    return estimate(x, y, x[:, :0], k, scale, xp, special)


def reference_second(
    x: AnyArray, y: AnyArray, n: int, k: int, scale: float, xp: ArrayModule, special: ModuleType
) -> tuple[AnyArray, AnyArray]:
    """Of equal distances the lower index is nearer.

    Counts include the rectangle's border. Where k finite neighbours are lacking it holds all that there are.
    """
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
        counts = [
            (xp.isfinite(table) & (table <= side[:, None])).sum(axis=1)
            for side, table in zip(sides, (in_x, in_y), strict=True)
        ]
        psi = [special.digamma(xp.maximum(count, 1).astype("float64")) for count in counts]
        local[own] = special.digamma(float(k)) - 1 / k + special.digamma(float(n)) - psi[0] - psi[1]
    local = scale * xp.where(finite, local, xp.nan)
    return local.mean(), local


def dependent(rho: float) -> dict[str, Callable[..., Any]]:
    """y of correlation rho with x (the shapes may differ)."""

    def y(n: int, dx: int, dy: int) -> AnyArray:
        rng = np.random.default_rng(0)
        first = rng.normal(size=(n, dx))[:, :1]
        return rho * first + math.sqrt(1 - rho**2) * np.random.default_rng(1).normal(size=(n, dy))

    return {"x": lambda n, dx: np.random.default_rng(0).normal(size=(n, dx)), "y": y}


def stepped(n: int, dx: int) -> AnyArray:
    """Few values: ties everywhere, and eps = 0 where points coincide."""
    return np.random.default_rng(2).integers(0, 3, size=(n, dx))


def odd(n: int, dx: int) -> AnyArray:
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
    entry="ksg_minima",
    arguments=(In("x", "n dx"), In("y", "n dy"), Out("estimate", "1"), Out("local", "n"), ALONE, *WORK),
    parameters={"dx": 1, "dy": 1, **PARAMETERS},
    derived=DERIVED,
    rules=(*RULES, Rule("dx >= 1 and dy >= 1", lambda dx, dy: dx >= 1 and dy >= 1)),
    launch=launch,
    reference=reference,
    tolerance=absolute(1e-4),
    looked_at={"cuvs": "gives the nearest neighbours; it does not count those within each point's radius"},
    flops=lambda n, dx, dy: n * n * (4 * (dx + dy) + 5),
    bytes_moved=lambda n, dx, dy: 3 * 4 * n * (dx + dy) + 4 * n + 4,
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
            derived={**DERIVED, "radii": lambda: 2},
            launch=launch_second,
            reference=reference_second,
            edges=(Workload(n=2, k=1), Workload(n=257), Workload(n=130, dx=2, dy=1, k=3)),
            golden=GOLDEN,
            only_labels=("S0", "S1"),
        ),
    },
)  # fmt: skip

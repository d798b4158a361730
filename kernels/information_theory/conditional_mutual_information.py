"""Conditional mutual information from nearest neighbours.

I(X;Y|Z) = psi(k) + mean[psi(n_z + 1) - psi(n_xz + 1) - psi(n_yz + 1)], the counts of neighbours nearer in each space
than the k-th is in all of them (maximum norm, strictly).

Bound by arithmetic, with few bytes: a pair takes about 13 instructions for the distances and 18 for the counts, of the
128 that an SM issues a clock. Without z (dz = 0) this is ksg_mutual_information to the bit. Estimates may be negative;
a point that is not finite makes them NaN. `significance` is Runge's local permutation test.

Points draw their local permutation without a sort: they take turns in steps coprime to their number, and each takes the
free candidate of the smallest random rank, so the reference draws the same surrogates. Runge's order of turns is a
random permutation; here turns are evenly spread, not independent.
"""

from math import gcd
from types import ModuleType
from typing import Any

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
)
from prism_bench.spec import AnyArray, ArrayModule

from ..include.neighbours.ksg import (
    ALONE,
    DERIVED,
    PARAMETERS,
    RULES,
    WORK,
    estimate,
    p_value,
    plan,
    significance,
    terms,
    undecided,
)
from ..include.neighbours.neighbours import nearest, pairs, warps
from ..include.numbers.philox import philox


def launch(n: int, dx: int, dy: int, dz: int, k: int, splits: int, blocks: int, runs: int) -> tuple[Launch | Zero, ...]:
    return plan((n, k, splits, blocks, runs), (dx, dy, dz), ("x", "y", "z", "no_starts"))


def launch_tested(
    n: int, dx: int, dy: int, dz: int, k: int, splits: int, blocks: int, runs: int, surrogates: int, nearby: int
) -> tuple[Any, ...]:
    """Neighbours in z, an order of x for each surrogate, and all their estimates."""
    points = ("z", "minima", "no_eps", "nearest", "n", "group")
    orders = ("nearest", "orders", "n", "nearby", "step", "seed")
    return (
        pairs(f"knn_minima<{dz}>", ("z", "minima", "n", "group", "splits"), n, splits),
        warps(f"knn_nearest<{dz}, {nearby - 1}, true>", points, n),
        Launch(surrogates, 32, shared=4 * -(-n // 32), entry="local_orders", arguments=orders),
        *significance(plan((n, k, splits, blocks, runs), (dx, dy, dz), ("x", "y", "z", "orders"), mean="estimates")),
    )


def coprime_step(n: int) -> int:
    """Near the golden section of n, so that turns are spread, and coprime to it, so that each point has one."""
    return next(step for step in range(max(1, round(0.618 * n)), 2 * n) if gcd(step, n) == 1) % max(n, 1)


def local_orders(z: AnyArray, n: int, nearby: int, step: int, surrogates: int, seed: int, xp: ArrayModule) -> AnyArray:
    """Of which point each surrogate gives x to each point: all surrogates at once, point after point."""
    others = nearest(z, nearby - 1, xp)[1]
    candidates = xp.concatenate((xp.arange(n)[:, None], others), axis=1)
    candidates = xp.where(candidates < 0, xp.arange(n)[:, None], candidates)
    every = xp.arange(surrogates)
    keys = (every.astype("uint64") + np.uint64(seed))[:, None]
    ranks = philox(xp.arange(n * nearby, dtype="uint64")[None], keys, xp)[0].reshape(surrogates, n, nearby) >> 1
    point = (philox(xp.full((1, 1), n * nearby, dtype="uint64"), keys, xp)[0][:, 0] % n).astype("int64")
    taken, orders = xp.zeros((surrogates, n), dtype=bool), xp.zeros((surrogates, n), dtype="int64")
    for _ in range(n):
        near = candidates[point]
        rank = ranks[every, point].astype("int64") + (taken[every[:, None], near] << 31)
        chosen = near[every, rank.argmin(axis=1)]
        orders[every, point], taken[every, chosen] = chosen, True
        point = (point + step) % n
    return orders


def runs_of(
    x: AnyArray,
    y: AnyArray,
    z: AnyArray,
    n: int,
    k: int,
    nearby: int,
    step: int,
    surrogates: int,
    seed: int,
    scale: float,
    xp: ArrayModule,
    special: ModuleType,
) -> tuple[AnyArray, list[AnyArray]]:
    """The terms of x in its own order, and in every surrogate's."""
    orders = local_orders(z, n, nearby, step, surrogates, seed, xp)
    surrogate = [terms(x[order], y, z, k, scale, xp, special) for order in orders]
    return terms(x, y, z, k, scale, xp, special), surrogate


def reference_tested(
    x: AnyArray,
    y: AnyArray,
    z: AnyArray,
    n: int,
    k: int,
    nearby: int,
    step: int,
    surrogates: int,
    seed: int,
    scale: float,
    xp: ArrayModule,
    special: ModuleType,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    return p_value(*runs_of(x, y, z, n, k, nearby, step, surrogates, seed, scale, xp, special))


def either_way(
    x: AnyArray,
    y: AnyArray,
    z: AnyArray,
    n: int,
    k: int,
    nearby: int,
    step: int,
    surrogates: int,
    seed: int,
    scale: float,
    xp: ArrayModule,
    special: ModuleType,
) -> AnyArray:
    return undecided(*runs_of(x, y, z, n, k, nearby, step, surrogates, seed, scale, xp, special))


SHARE = elementwise().loosened(terms=1.0, magnitude=either_way)


def normal(seed: int, n: int, width: int) -> AnyArray:
    return np.random.default_rng(seed).normal(size=(n, width))


def x_alone(n: int, dx: int) -> AnyArray:
    return normal(1, n, dx)


def y_alone(n: int, dy: int) -> AnyArray:
    return normal(2, n, dy)


def cause(n: int, dz: int) -> AnyArray:
    return normal(3, n, dz)


def chained(n: int, dx: int) -> AnyArray:
    """x and y driven by one cause: what they share goes once it is known."""
    return cause(n, 1) + 0.5 * x_alone(n, dx)


def stepped(n: int, dx: int) -> AnyArray:
    return np.random.default_rng(4).integers(0, 3, size=(n, dx))


def odd(n: int, dz: int) -> AnyArray:
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
    looked_at={"cuvs": "gives the nearest neighbours; it does not count those within each point's radius"},
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
    variants={
        "significance": Variant(
            "p-value against local permutations: each point gets the x of one of the `nearby` points nearest in z",
            arguments=(
                In("x", "n dx"), In("y", "n dy"), In("z", "n dz"), Out("estimate", "1"), Out("local", "n"),
                Out("p_value", "1"), Scratch("estimates", "runs"), Scratch("orders", "surrogates n", dtype="int32"),
                Scratch("nearest", "n others", dtype="int32"), Scratch("no_eps", "n"), *WORK, Size("surrogates"),
                Size("nearby"), Size("step"), Scalar("seed", "uint64"),
            ),
            parameters={"dx": 1, "dy": 1, "dz": 1, "surrogates": 100, "nearby": 5, "seed": 7, **PARAMETERS},
            derived={
                **DERIVED, "runs": lambda surrogates: 1 + surrogates, "length": lambda: 1, "step": coprime_step,
                "others": lambda nearby: nearby - 1,
            },
            rules=(
                *RULES,
                Rule("dx >= 1, dy >= 1, dz >= 1", lambda dx, dy, dz: min(dx, dy, dz) >= 1),
                Rule("1 <= surrogates < 65,535", lambda surrogates: 1 <= surrogates < 65_535),
                Rule("2 <= nearby <= 32, no more than n", lambda n, nearby: 2 <= nearby <= min(n, 32)),
                Rule("n <= 2^20, whose bits shared memory holds", lambda n: n <= 1 << 20),
            ),
            launch=launch_tested,
            reference=reference_tested,
            tolerance={"estimate": absolute(1e-4), "local": absolute(1e-4), "p_value": SHARE},
            bytes_moved=lambda n, dx, dy, dz: 4 * n * (3 * dx + 3 * dy + 5 * dz) + 4 * n + 8,  # z is searched first
            flops=lambda n, dx, dy, dz, runs: runs * n * n * (4 * (dx + dy + dz) + 9) + n * n * (2 * dz + 1),
            workloads={"S0": Workload(n=200), "S1": Workload(n=4096)},
            edges=(
                Workload(n=130, surrogates=5), Workload(n=2, k=1, nearby=2, surrogates=3),
                Workload(n=60, surrogates=3, nearby=32, dz=2), Workload(n=97, surrogates=2, nearby=7, dx=2, seed=2**63),
            ),
            golden=(
                Golden(
                    Workload(n=300, surrogates=19), {"x": x_alone, "y": lambda n, dy: x_alone(n, 1), "z": cause},
                    {"p_value": 0.05}, source="y is x: no surrogate reaches that",
                ),
                Golden(
                    Workload(n=130, surrogates=4, dz=2), {"x": x_alone, "y": y_alone, "z": odd}, {},
                    source="points without neighbours keep their own x",
                ),
                Golden(
                    Workload(n=120, surrogates=4), {"x": x_alone, "y": y_alone, "z": 1.0}, {},
                    source="all candidates alike: those of lower index",
                ),
            ),
        ),
    },
)  # fmt: skip

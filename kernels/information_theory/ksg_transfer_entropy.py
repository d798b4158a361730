"""Transfer entropy from nearest neighbours, source X to target Y.

I(Y_future; X_past | Y_past) = psi(k) + mean[psi(n_z + 1) - psi(n_yz + 1) - psi(n_xz + 1)] (Frenzel and Pompe), z the
past of Y, maximum norm, strictly nearer.

`significance` compares with surrogates that keep X's autocorrelation: circular shifts, or blocks in another order.
Bound by arithmetic, with few bytes: a pair takes about 13 instructions for the distances and 18 for the counts, of the
128 that an SM issues a clock. Estimates may be negative.
"""

from collections.abc import Callable, Mapping
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
    Scratch,
    Size,
    Variant,
    Workload,
    Zero,
    absolute,
    elementwise,
)
from prism_bench.spec import AnyArray, ArrayModule, Fill, as_drawn

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

EMBED = 128


def plan_of(starts: str, mean: str) -> Callable[..., Any]:
    def launch(n: int, dx: int, dy: int, k: int, splits: int, blocks: int, runs: int) -> tuple[Launch | Zero, ...]:
        """Z, the past of the target, is last; a row of blocks for every run."""
        points = ("x_past", "y_future", "y_past", starts)
        return plan((n, k, splits, blocks, runs), (dx, 1, dy), points, mean=mean)

    return launch


def launch_tested(n: int, dx: int, dy: int, k: int, splits: int, blocks: int, runs: int) -> tuple[Any, ...]:
    return significance(plan_of("starts", "estimates")(n, dx, dy, k, splits, blocks, runs))


def launch_series(n: int, dx: int, dy: int, k: int, splits: int, blocks: int, runs: int) -> tuple[Any, ...]:
    series = ("source", "target", "x_past", "y_past", "y_future", "n", "dx", "dy", "delay")
    embed = Launch(-(-n // EMBED), EMBED, entry="te_embed", arguments=series)
    return embed, *plan_of("no_starts", "estimate")(n, dx, dy, k, splits, blocks, runs)


def reference(
    x_past: AnyArray, y_past: AnyArray, y_future: AnyArray, k: int, scale: float, xp: ArrayModule, special: ModuleType
) -> tuple[AnyArray, AnyArray]:
    return estimate(x_past, y_future, y_past, k, scale, xp, special)


def runs_of(
    x_past: AnyArray,
    y_past: AnyArray,
    y_future: AnyArray,
    starts: AnyArray,
    n: int,
    length: int,
    k: int,
    scale: float,
    xp: ArrayModule,
    special: ModuleType,
) -> tuple[AnyArray, AnyArray]:
    """The terms of the unshifted run, and of every surrogate's."""
    local = terms(x_past, y_future, y_past, k, scale, xp, special)
    at = xp.arange(n)
    taken = [(own[at // length] + at % length) % n for own in starts]
    return local, [terms(x_past[rows], y_future, y_past, k, scale, xp, special) for rows in taken]


def reference_tested(
    x_past: AnyArray,
    y_past: AnyArray,
    y_future: AnyArray,
    starts: AnyArray,
    n: int,
    length: int,
    k: int,
    scale: float,
    xp: ArrayModule,
    special: ModuleType,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    return p_value(*runs_of(x_past, y_past, y_future, starts, n, length, k, scale, xp, special))


def either_way(
    x_past: AnyArray,
    y_past: AnyArray,
    y_future: AnyArray,
    starts: AnyArray,
    n: int,
    length: int,
    k: int,
    scale: float,
    xp: ArrayModule,
    special: ModuleType,
) -> AnyArray:
    return undecided(*runs_of(x_past, y_past, y_future, starts, n, length, k, scale, xp, special))


SHARE = elementwise().loosened(terms=1.0, magnitude=either_way)


def reference_series(
    source: AnyArray,
    target: AnyArray,
    n: int,
    dx: int,
    dy: int,
    delay: int,
    k: int,
    scale: float,
    xp: ArrayModule,
    special: ModuleType,
) -> tuple[AnyArray, AnyArray]:
    newest = xp.arange(n) + (max(dx, dy) - 1) * delay
    x_past, y_past = (series[newest[:, None] - delay * xp.arange(width)[None]]
                      for series, width in ((source, dx), (target, dy)))  # fmt: skip
    return reference(x_past, y_past, target[newest + 1][:, None], k, scale, xp, special)


def in_another_order(rng: np.random.Generator, count: int, axes: Mapping[str, Any]) -> AnyArray:
    """Where each surrogate's blocks of x begin: one shift, or a permutation of the blocks."""
    n, length = axes["n"], axes["length"]
    if length == n:
        return rng.integers(1, n, size=count)
    orders = [rng.permutation(n // length) for _ in range(-(-count * length // n))]
    return length * np.concatenate(orders)[:count]


def coupled(length: int, seed: int = 0) -> tuple[AnyArray, AnyArray]:
    """x white, y' = 0.5 y + 0.4 x + e: the transfer entropy is 0.5 ln(1 + 0.16) = 0.0742 from x to y, 0 back."""
    x, e = np.random.default_rng(seed).normal(size=(2, length))
    y = np.zeros(length)
    for t in range(length - 1):
        y[t + 1] = 0.5 * y[t] + 0.4 * x[t] + e[t]
    return x, y


def directed(forward: bool) -> dict[str, Callable[..., Any]]:
    def past_of(which: int) -> Callable[..., Any]:
        return lambda n: coupled(n + 1)[which][:n, None]

    source, target = (0, 1) if forward else (1, 0)
    future = lambda n: coupled(n + 1)[target][1:, None]  # noqa: E731
    return {"x_past": past_of(source), "y_past": past_of(target), "y_future": future}


def odd(n: int) -> AnyArray:
    x = np.random.default_rng(5).standard_cauchy(size=(n, 1))
    x[4], x[9] = np.nan, -np.inf
    return x


pasts = (In("x_past", "n dx"), In("y_past", "n dy"), In("y_future", "n 1"))
results = (Out("estimate", "1"), Out("local", "n"))
rules = (*RULES, Rule("dx >= 1 and dy >= 1", lambda dx, dy: dx >= 1 and dy >= 1))
starts = In(
    "starts",
    "surrogates shuffled",
    dtype="int32",
    fill=Fill(in_another_order, "shifts, or permuted blocks", as_drawn()),
)

spec = KernelSpec(
    entry="ksg_minima",
    arguments=(*pasts, *results, ALONE, *WORK),
    parameters={"dx": 1, "dy": 1, **PARAMETERS},
    derived=DERIVED,
    rules=rules,
    launch=plan_of("no_starts", "estimate"),
    reference=reference,
    tolerance=absolute(1e-4),
    looked_at={"cuvs": "gives the nearest neighbours; it does not count those within each point's radius"},
    flops=lambda n, dx, dy: n * n * (4 * (1 + dx + dy) + 9),
    bytes_moved=lambda n, dx, dy: 3 * 4 * n * (1 + dx + dy) + 4 * n + 4,
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
            "p-value against surrogates of the source: circular shifts, or blocks of `block` rows in another order",
            arguments=(
                *pasts, starts, *results, Out("p_value", "1"), Scratch("estimates", "runs"), *WORK, Size("surrogates"),
            ),
            parameters={"dx": 1, "dy": 1, "surrogates": 100, "block": 0, **PARAMETERS},
            derived={
                **DERIVED, "runs": lambda surrogates: 1 + surrogates, "length": lambda n, block: block or n,
                "shuffled": lambda n, length: n // length,
            },
            rules=(
                *rules,
                Rule("0 <= surrogates < 65,535", lambda surrogates: 0 <= surrogates < 65_535),
                Rule("0 <= block, a divisor of n", lambda n, block: block == 0 or (block > 0 and n % block == 0)),
            ),
            launch=launch_tested,
            reference=reference_tested,
            tolerance={"estimate": absolute(1e-4), "local": absolute(1e-4), "p_value": SHARE},
            flops=lambda n, dx, dy, runs: runs * n * n * (4 * (1 + dx + dy) + 9),
            bytes_moved=lambda n, dx, dy, surrogates, shuffled: (
                3 * 4 * n * (1 + dx + dy) + 4 * n + 8 + 3 * 4 * surrogates * shuffled
            ),
            workloads={"S0": Workload(n=200), "S1": Workload(n=4096)},
            edges=(
                Workload(n=130, surrogates=5), Workload(n=40, surrogates=1, k=2), Workload(n=30, surrogates=0),
                Workload(n=120, surrogates=4, block=24), Workload(n=60, surrogates=3, block=1, dx=2),
            ),
            golden=(
                Golden(
                    Workload(n=300, surrogates=9),
                    {**directed(True), "starts": lambda surrogates: np.linspace(20, 270, surrogates)[:, None] // 1},
                    {"p_value": 0.1}, source="a real coupling stands out",
                ),
                Golden(
                    Workload(n=300, surrogates=4, block=60), {**directed(True), "starts": [[0, 60, 120, 180, 240]] * 4},
                    {"p_value": 1.0}, source="blocks in their own order are no surrogate: each reaches the estimate",
                ),
            ),
        ),
        "series": Variant(
            "from the raw series, embedded on the device: dx samples of the source's past, dy of the target's",
            arguments=(
                In("source", "samples"), In("target", "samples"), *results, ALONE,
                Scratch("x_past", "n dx"), Scratch("y_past", "n dy"), Scratch("y_future", "n"), *WORK, Size("dx"),
                Size("dy"), Size("delay"),
            ),
            parameters={"dx": 2, "dy": 2, "delay": 1, **PARAMETERS},
            derived={"n": lambda samples, dx, dy, delay: samples - (max(dx, dy) - 1) * delay - 1, **DERIVED},
            rules=(*rules, Rule("delay >= 1", lambda delay: delay >= 1)),
            launch=launch_series,
            reference=reference_series,
            bytes_moved=lambda samples, n: 2 * 4 * samples + 4 * n + 4,
            workloads={"S0": Workload(samples=202), "S1": Workload(samples=16_386)},
            edges=(
                Workload(samples=100, delay=3), Workload(samples=150, dx=3, dy=3, delay=2),
                Workload(samples=60, dx=1, dy=1), Workload(samples=90, dx=1, dy=3, delay=2),
                Workload(samples=90, dx=4, dy=2),
            ),
            golden=(),
        ),
    },
)  # fmt: skip

"""Forecast variances V_h: the sum of sigma_j^2, j = 1..h (random walk), or sigma^2 sum of psi_j^2 (variant `ar`).

The band variants add mean -+ z sqrt(V), z the normal quantile of 1 - alpha / 2. A NaN sigma spoils what follows it.
"""

from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
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
    reduction,
    uniform,
)  # fmt: skip
from prism_bench.spec import AnyArray, ArrayModule, Device, Fill, Peer, as_drawn, real

from ..peers import cub_peers

# Memory-bound: each value is read and written once, and tiles wait for the prefixes of those before them. Looking back
# by loads instead of atomics gained nothing, larger tiles neither; looking back 64 tiles at a time was slower, and so
# was `waves`, which looks back no further than its wave of tiles. `ar` writes; its weights
# are a chain of a shuffle and a product for each step.
TILE, AR_ROWS = 4096, 8  # AR_ROWS: rows of a warp at most
stable = Fill(
    lambda rng, count, axes: 0.9 * rng.dirichlet(np.ones(count)) if count else [],
    "positive, of sum 0.9",
    as_drawn(),
)


def launch_of(kind: str) -> Callable[..., Any]:
    """A warp per row where there are many; the tiles of a few long ones are joined by looking back."""
    outputs = ("variance",) if kind == "variance" else ("mean", "variance", "lower", "upper")
    z = () if kind == "variance" else ("z",)

    def launch(rows: int, cols: int, tiles: int, device: Device) -> Launch | tuple[Launch | Zero, ...]:
        if cols <= TILE or rows >= 16 * device.sm_count:
            names = ("sigma", *outputs, "rows", "cols", *z)
            return Launch(-(-rows // 8) if cols else 0, 256, entry=f"{kind}_rows", arguments=names)
        names = ("sigma", *outputs, "states", "cols", "tiles", *z)
        return Zero("states"), Launch(rows * tiles, 256, entry=f"{kind}_tiles", arguments=names)

    return launch


def launch_waves(rows: int, cols: int, tiles: int, device: Device) -> Launch | tuple[Launch | Zero, ...]:
    """Tiles of 4096 floats for each chunk of a warp, two of which a block keeps."""
    if cols <= TILE or rows >= 16 * device.sm_count:
        return launch_of("variance")(rows, cols, tiles, device)
    chunks = next((chunks for chunks in (6, 4) if chunks << 15 <= device.max_shared_bytes), 3)
    count = rows * -(-cols // (chunks * TILE))
    wave = Launch(
        min(count, device.sm_count), 1024, shared=chunks << 15, entry=f"variance_waves<{chunks}>", cooperative=True,
        arguments=("sigma", "variance", "states", "rows", "cols"),
    )  # fmt: skip
    return Zero("states"), wave


def launch_ar(kind: str) -> Callable[..., Any]:
    outputs = ("variance",) if kind == "variance" else ("mean", "variance", "lower", "upper")
    z = () if kind == "variance" else ("z",)

    def launch(rows: int, cols: int, device: Device) -> tuple[Launch, ...]:
        names = ("sigma", *outputs, "growth", "rows", "cols", *z)
        grid = max(-(-rows // (8 * AR_ROWS)), min(-(-rows // 8), 16 * device.sm_count))
        return (
            Launch(1, 32, entry="psi_weights", arguments=("phi", "psi", "growth", "cols", "lags")),
            Launch(grid if cols else 0, 256, entry=f"{kind}_ar", arguments=names),
        )

    return launch


def reference(sigma: AnyArray, xp: ArrayModule) -> AnyArray:
    return xp.cumsum(sigma * sigma, axis=1)


def reference_ar(sigma: AnyArray, phi: AnyArray, cols: int, xp: ArrayModule) -> AnyArray:
    psi, phi = np.zeros(max(1, cols)), [float(value) for value in phi]
    psi[0] = 1
    for j in range(1, cols):
        psi[j] = sum(phi[i] * psi[j - 1 - i] for i in range(min(j, len(phi))))
    return (sigma * sigma)[:, None] * xp.asarray(np.cumsum(psi**2)[:cols])


def with_band(variances: AnyArray, mean: AnyArray, z: float, xp: ArrayModule) -> tuple[AnyArray, AnyArray, AnyArray]:
    half = z * xp.sqrt(variances)
    return variances, mean - half, mean + half


positive = {"variance": reduction(lambda sigma, xp: reference(sigma, xp))}
positive_ar = {"variance": reduction(lambda sigma, phi, cols, xp: reference_ar(sigma, phi, cols, xp))}
LOST = 1e12 * 2.0**-150  # of a square that underflows, in units of the squares of `terms`


def walk_size(sigma: AnyArray, mean: AnyArray, cols: int, z: float, xp: ArrayModule) -> AnyArray:
    """The terms of an edge of the band, with what a root makes of the squares that underflow."""
    return xp.abs(mean) + z * xp.sqrt(reference(sigma, xp)) + z * (cols * LOST) ** 0.5


def ar_size(sigma: AnyArray, phi: AnyArray, cols: int, mean: AnyArray, z: float, xp: ArrayModule) -> AnyArray:
    return xp.abs(mean) + z * xp.sqrt(reference_ar(sigma, phi, cols, xp)) + z * (cols * LOST) ** 0.5


walk_edge, ar_edge = reduction(walk_size), reduction(ar_size)
deviation = uniform(0.5, 1.5)
mean, limits = In("mean", "rows cols"), (Out("lower", "rows cols"), Out("upper", "rows cols"))
walk = (Scratch("states", "words", dtype="uint64"), Size("rows", "int64"), Size("cols", "int64"), Size("tiles"))
model = (
    In("phi", "lags", fill=stable), Scratch("psi", "cols", dtype="float64"), Scratch("growth", "cols"),
    Size("rows", "int64"), Size("cols", "int64"), Size("lags"),
)  # fmt: skip
level = Rule("0 < alpha < 1", lambda alpha: 0 < alpha < 1)
shapes = ((3, 0), (0, 5), (1, 1), (5, 10), (7, 128), (3, 131), (2, 300))
few = tuple(Workload(rows=r, cols=c) for r, c in (*shapes, (1, 4097), (3, 9001), (1, 140_000)))
few_ar = tuple(Workload(rows=r, cols=c, lags=p) for (r, c), p in zip(shapes, (1, 2, 3, 5, 40, 2, 0), strict=True))
sizes = {
    "S0": Workload(rows=1, cols=10),
    "S1": Workload(rows=1 << 20, cols=128),
    "S2": Workload(rows=1, cols=1 << 28),
}

spec = KernelSpec(
    entry="variance_rows",
    arguments=(In("sigma", "rows cols", fill=deviation, domain=real()), Out("variance", "rows cols"), *walk),
    parameters={"alpha": 0.05},
    derived={
        "tiles": lambda cols: -(-cols // TILE),
        "words": lambda rows, tiles: rows * tiles + 1 if tiles > 1 else 1,
        "z": lambda alpha: NormalDist().inv_cdf(1 - alpha / 2),
    },
    rules=(level,),
    launch=launch_of("variance"),
    reference=reference,
    tolerance=positive,
    peers={
        "torch": lambda torch, sigma: torch.cumsum(sigma * sigma, dim=1),
        "cupy": lambda cupy, sigma: cupy.cumsum(sigma * sigma, axis=1),
        "cub": Peer(lambda cub, sigma: cub_peers.running_sums(cub, sigma, "v[0] * v[0]"), prepares=True),
    },
    flops=lambda rows, cols: 2 * rows * cols,
    workloads=sizes,
    edges=few,
    golden=(
        Golden(
            Workload(rows=1, cols=10), {"sigma": 2.0}, {"variance": lambda cols: 4.0 * np.arange(1, cols + 1)},
            source="variance grows linearly",
        ),
        Golden(
            Workload(rows=2, cols=9000),
            {"sigma": lambda rows, cols: np.where(np.arange(cols) == 4500, np.nan, -1.0)}, {},
            source="negative sigmas, and a NaN in the second tile",
        ),
        Golden(
            Workload(rows=2, cols=9000),
            {"sigma": lambda rows, cols: np.where(np.arange(cols) == 4500, np.inf, 1.0)}, {},
            source="infinite from one step on",
        ),
        Golden(
            Workload(rows=1, cols=50_000), {"sigma": lambda cols: np.where(np.arange(cols) == 0, 4096.0, 0.5)}, {},
            source="2^24 and then quarters, which a float sum would not notice",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "waves": Variant(
            "as many long tiles at a time as there are blocks, none of which looks back",
            launch=launch_waves,
            rules=(level, Rule("fewer than 2^31 tiles", lambda rows, tiles: rows * tiles < 1 << 31)),
            edges=(*few[-3:], *(Workload(rows=r, cols=c) for r, c in ((3, 60_001), (9, 24_576), (7, 30_000)))),
            workloads={"S0": sizes["S0"], "S2": sizes["S2"]},
        ),
        "bands": Variant(
            "with the band around a mean", entry="band_rows", launch=launch_of("band"),
            arguments=(
                In("sigma", "rows cols", fill=deviation, domain=real()), mean, Out("variance", "rows cols"), *limits,
                *walk, Scalar("z"),
            ),
            reference=lambda sigma, mean, z, xp: with_band(reference(sigma, xp), mean, z, xp),
            tolerance={**positive, "lower": walk_edge, "upper": walk_edge},
            edges=(*few[:-1], Workload(rows=3, cols=50, alpha=0.32)),
            golden=(
                Golden(
                    Workload(rows=1, cols=4, alpha=0.05), {"sigma": [[3, 4, 0, 12]], "mean": 1.0},
                    {"upper": 1 + NormalDist().inv_cdf(0.975) * np.sqrt([[9, 25, 25, 169]])}, source="Pythagoras",
                ),
            ),
        ),
        "ar": Variant(
            "of an AR model: sigma^2 times the sum of its psi weights squared", entry="variance_ar",
            launch=launch_ar("variance"), traffic_factor=16,  # at S0 making the weights is most of it
            arguments=(In("sigma", "rows", fill=deviation, domain=real()), Out("variance", "rows cols"), *model),
            reference=reference_ar, tolerance=positive_ar, edges=(*few_ar, Workload(rows=1100, cols=6, lags=2)),
            workloads={"S0": Workload(rows=1, cols=10, lags=5), "S1": Workload(rows=1 << 20, cols=128, lags=5)},
            golden=(
                Golden(
                    Workload(rows=1, cols=4, lags=1), {"sigma": 2.0, "phi": 0.5},
                    {"variance": [[4, 5, 5.25, 5.3125]]}, source="AR(1): psi_j = phi^j",
                ),
                Golden(
                    Workload(rows=2, cols=6, lags=2), {"sigma": [1, -3], "phi": [1, -0.5]}, {}, source="a complex pair"
                ),
            ),
            budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
        ),
        "ar_bands": Variant(
            "of an AR model, with the band around a mean", entry="band_ar", launch=launch_ar("band"), traffic_factor=16,
            arguments=(
                In("sigma", "rows", fill=deviation, domain=real()), mean, Out("variance", "rows cols"), *limits, *model,
                Scalar("z"),
            ),
            reference=lambda sigma, phi, cols, mean, z, xp: with_band(reference_ar(sigma, phi, cols, xp), mean, z, xp),
            tolerance={**positive_ar, "lower": ar_edge, "upper": ar_edge}, edges=few_ar, golden=(),
            workloads={"S0": Workload(rows=1, cols=10, lags=5), "S1": Workload(rows=1 << 20, cols=128, lags=5)},
            budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
        ),
    },
)  # fmt: skip

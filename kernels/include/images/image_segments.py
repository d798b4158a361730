"""Convolution, entropy in windows and labels of an image: the fused launch, data, reference and rules of both specs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from prism_bench import Golden, In, Launch, Rule, Workload, exact_except, integers
from prism_bench.spec import AnyArray, ArrayModule, Device, Fill, Runs, whole

from ..convolution.convolution import correlated_one
from .label_vote import labels_of, neighbours, vote
from .window_entropy import counters_of, entropies, table_bytes

STRIP = 126  # labels of a warp in a row
WARPS, FEW_WARPS = 16, 6  # of a block, where taps and windows are small, and else
MOST_SHARED = 227 << 10  # bytes of a block
NEAR = 1e-5  # bits: what rounding may do to an entropy

# Whole numbers, so that every convolution is exact and a level is what it is; flat patches next to noisy ones.
PATCHES = Fill(
    lambda rng, count, axes: rng.integers(0, 256, count) * (np.arange(count) // 32 % 4) // 3,
    "whole numbers below 256, their contrast changing every 32 pixels",
    whole(0, 256),
    runs=Runs(128, 128),
)
INPUTS = (In("x", "rows cols", fill=PATCHES), In("taps", "k k", fill=integers(-4, 5)))
PARAMETERS = {"window": 8, "bins": 64, "lo": -2048.0, "hi": 2048.0, "threshold": 2.5, "rule": "gt", "majority": 5,
              "form": "auto"}  # fmt: skip
RULES = (
    Rule("k is 3, 5 or 7", lambda k: k in (3, 5, 7)),
    Rule("1 <= window <= 16", lambda window: 1 <= window <= 16),
    Rule("2 <= bins <= 256", lambda bins: 2 <= bins <= 256),
    Rule("lo < hi", lambda lo, hi: lo < hi),
    Rule("rule to be gt or ge", lambda rule: rule in ("gt", "ge")),
    Rule("form to be auto, strips or tiles", lambda form: form in ("auto", "strips", "tiles")),
    Rule("4 <= majority <= 8, so that no two labels can win", lambda majority: 4 <= majority <= 8),
)
WORKLOADS = {
    "S0": Workload(rows=512, cols=512, k=3),
    "S1": Workload(rows=8192, cols=8192, k=3),
    "S2": Workload(rows=16_384, cols=16_384, k=3),
}
EDGES = tuple(
    Workload(**edge, form=form)
    for form in ("strips", "tiles")
    for edge in (
        *(
            {"rows": r, "cols": c, "k": 3}
            for r, c in ((1, 1), (1, 140), (140, 1), (3, 5), (40, 131), (21, 126), (13, 253))
        ),
        *({"rows": 23, "cols": 70, "k": k, "window": w} for k, w in ((5, 1), (7, 3), (3, 5), (3, 16), (5, 15))),
        {"rows": 23, "cols": 70, "k": 3, "bins": 256, "rule": "ge", "majority": 4},
        {"rows": 23, "cols": 70, "k": 3, "bins": 2, "threshold": 0.6, "majority": 8},
        {"rows": 23, "cols": 72, "k": 3, "lo": -100.0, "hi": 500.0, "bins": 7},
    )
)


SHARPEN = [[0, -1, 0], [-1, 8, -1], [0, -1, 0]]


def with_gaps(rows: int, cols: int) -> AnyArray:
    """Patches with a few NaN and infinities, and a corner of nothing else."""
    image = np.random.default_rng(8).integers(0, 256, (rows, cols)).astype(float)
    image[5, ::17], image[7, 3], image[8, 40], image[-14:, :14] = np.nan, np.inf, -np.inf, np.nan
    return image


GOLDEN = (
    Golden(Workload(rows=33, cols=64, k=3), {"x": 9.0, "taps": [[0, 0, 0], [0, 1, 0], [0, 0, 0]]}, {"labels": 0},
           source="a constant image has no entropy"),
    Golden(Workload(rows=40, cols=64, k=3), {"x": with_gaps, "taps": SHARPEN}, {},
           source="NaN has no level; some windows hold none"),
)  # fmt: skip


def bounds_bytes(bins: int) -> int:
    """Of the least value of each level, and an end."""
    return 4 * ((bins + 32) // 32 * 32)


def tile_launch(rows: int, cols: int, window: int, bins: int, most: int, device: Device) -> Launch:
    """The tiles of image_tile.cuh, by the fewest warps with which each multiprocessor has one, at most `most`.

    A block has tables and the first codes; a warp counters, and two rows of labels and codes.
    """
    pitch = 124 + 2 * ((window + 6) // 4 * 2)
    tables = 2 * table_bytes(window) + bounds_bytes(bins) + 2 * pitch * (window - 1)
    each = counters_of(bins) + 2 * (512 + 2 * pitch)
    across, most = -(-cols // STRIP), min(most, (MOST_SHARED - tables) // each)
    tiles = {warps: across * -(-rows // (2 * warps - 2)) for warps in range(2, most + 1)}
    warps = next((warps for warps in tiles if tiles[warps] <= device.sm_count), most)
    return Launch(tiles[warps], 32 * warps, tables + warps * each)


def fused_launch(
    entry: str, label: str = "int", arguments: tuple[str, ...] | None = None, entry_of_tiles: str | None = None
) -> Callable[..., Any]:
    """A warp walks down a strip of labels; strips of four rows at least, as many as fill the device.

    Where they do not, `entry_of_tiles` takes tiles, one per block.
    """

    def launch(rows: int, cols: int, k: int, window: int, bins: int, rule: str, form: str, device: Device) -> Launch:
        flags = f"<{k}, {window}, {str(rule == 'ge').lower()}, {label}>"
        tiles = tile_launch(rows, cols, window, bins, WARPS if k == 3 and window <= 8 else FEW_WARPS, device)
        few = tiles.grid in range(device.sm_count + 1) and tiles.shared <= device.max_shared_bytes
        if entry_of_tiles and (form == "tiles" or (form == "auto" and few)):
            return replace(tiles, entry=entry_of_tiles + flags, arguments=arguments)
        ring = 2 * (window + 1) * (124 + 2 * ((window + 6) // 4 * 2))
        tables, each = 2 * table_bytes(window) + bounds_bytes(bins), counters_of(bins) + ring
        warps = min(WARPS if k == 3 and window <= 8 else FEW_WARPS, (device.max_shared_bytes - tables) // each)
        across = -(-cols // STRIP)
        strips = max(1, min(warps * device.sm_count // across, -(-rows // 4)))
        warps = min(warps, -(-across * strips // device.sm_count))
        return Launch(
            grid=-(-across * strips // warps), block=32 * warps, shared=tables + warps * each,
            entry=entry + flags, arguments=arguments,
        )  # fmt: skip

    return launch


def entropy_map(
    x: AnyArray, taps: AnyArray, k: int, window: int, bins: int, lo: float, hi: float, xp: ArrayModule
) -> AnyArray:
    """The entropies, in bits, of the image's convolution."""
    filtered = correlated_one(x, taps, k, 1, k // 2, *x.shape, xp)  # pyright: ignore[reportCallIssue] - two extents
    return entropies(filtered, window, bins, lo, hi, False, xp)


def segments(entropy: AnyArray, threshold: float, rule: str, majority: int, xp: ArrayModule) -> AnyArray:
    return vote(labels_of(entropy, threshold, rule, xp.where), majority, xp).astype("int32")


def reference(
    x: AnyArray,
    taps: AnyArray,
    k: int,
    window: int,
    bins: int,
    lo: float,
    hi: float,
    threshold: float,
    rule: str,
    majority: int,
    xp: ArrayModule,
) -> AnyArray:
    return segments(entropy_map(x, taps, k, window, bins, lo, hi, xp), threshold, rule, majority, xp)


def on_a_cut(
    x: AnyArray, taps: AnyArray, k: int, window: int, bins: int, lo: float, hi: float, threshold: float, xp: ArrayModule
) -> AnyArray:
    """Whether the entropy of a pixel, or of a neighbour that votes, is on a cut within rounding."""
    entropy = entropy_map(x, taps, k, window, bins, lo, hi, xp)
    near = xp.stack([abs(entropy - share * threshold) <= NEAR for share in (0.5, 1.0, 1.5)]).any(axis=0)
    return neighbours(near, near.astype("int32")) > 0


TOLERANCE = exact_except(on_a_cut)


def flops(rows: int, cols: int, k: int, window: int) -> int:
    """Products of the convolution, what slides through the windows, and the vote."""
    return (2 * k * k + 4 * window + 30) * rows * cols

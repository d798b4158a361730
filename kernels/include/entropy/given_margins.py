"""Mutual information of tables whose margins are given: launch, reference and traps of given_margins.cuh.

Latency-bound: a branch between the loads left one of them in flight, in the sum of the margins too; loads without a
branch are faster, with 80 registers and so a third of an SM's warps. Of many small tables the double precision that
each thread spends on its columns is most of the work: a warp for a table of 32 rows spends it on four a lane alone.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Edge,
    Golden,
    In,
    Launch,
    Out,
    Rule,
    Scalar,
    Scratch,
    Size,
    Variant,
    Workload,
    constant,
    reduction,
)
from prism_bench.spec import ONE_BY_ONE, AnyArray, Array, ArrayModule, Device, Fill, nonnegative

EMPTY_AND_LARGE = {"joint": constant(0), "x_margin": constant(2**24), "y_margin": constant(2**24)}
MOST_BLOCKS, AHEAD = 512, 4  # blocks that share a table; rows that a thread loads at a time
SIDE = 32  # of a square table that a warp keeps in registers


def margin_of(cells: str) -> Fill:
    """Near what a row or column of so many cells of mean 20 adds up to; it need not be the table's own."""
    return Fill(
        lambda rng, count, axes: rng.poisson(20 * axes[cells] + 1, size=count) + 1.0,
        "Poisson, near the sum",
        nonnegative(most=2.0**30),  # a cell over the product of two of them stays in range
        runs=ONE_BY_ONE,
    )


TABLES = ("joint", "x_margin", "y_margin", "information")


def launch(tables: int, bx: int, by: int, device: Device) -> Launch:
    """A warp for each square table of 32 rows, a block for each of many others.

    A single one is shared by strips of columns and bands of rows, which are on the device together: three blocks of an
    SM.
    """
    if bx == by == SIDE:
        passed = (*TABLES, "tables", "corrected", "unit")
        return Launch(-(-tables // 2), 64, entry="given_square", arguments=passed)
    width = 4 if by % 4 == 0 else 1
    groups = -(-by // width)
    block = 64 if groups * bx <= 1024 else 256
    wide = min(block, groups)
    strips = -(-groups // wide)
    bands = max(1, min(min(3 * device.sm_count, MOST_BLOCKS) // strips, -(-bx // (block // wide * AHEAD))))
    parts = min(MOST_BLOCKS, strips * bands) if tables == 1 else 1
    passed = (*TABLES, "by_block", "arrived", "bx", "by", "corrected", "unit")
    return Launch((tables, parts), block, entry=f"given_margins<{width}>", arguments=passed)


def terms(
    joint: AnyArray, x_margin: AnyArray, y_margin: AnyArray, xp: ArrayModule, special: ModuleType
) -> tuple[AnyArray, AnyArray]:
    """Of each table: the terms of n I, and n."""
    n = x_margin.sum(axis=1)
    return special.rel_entr(joint, x_margin[:, :, None] * y_margin[:, None, :] / n[:, None, None]), n


def correction(joint: AnyArray, x_margin: AnyArray, y_margin: AnyArray) -> AnyArray:
    occupied = (joint != 0).sum(axis=(1, 2)), (x_margin != 0).sum(axis=1), (y_margin != 0).sum(axis=1)
    return (occupied[0] - occupied[1] - occupied[2] + 1) / 2


def reference(
    joint: AnyArray,
    x_margin: AnyArray,
    y_margin: AnyArray,
    corrected: int,
    unit: AnyArray,
    xp: ArrayModule,
    special: ModuleType,
) -> AnyArray:
    found, n = terms(joint, x_margin, y_margin, xp, special)
    return unit * (found.sum(axis=(1, 2)) - corrected * correction(joint, x_margin, y_margin)) / n


def magnitude(
    joint: AnyArray,
    x_margin: AnyArray,
    y_margin: AnyArray,
    corrected: int,
    unit: AnyArray,
    xp: ArrayModule,
    special: ModuleType,
) -> AnyArray:
    found, n = terms(joint, x_margin, y_margin, xp, special)
    total = xp.abs(found).sum(axis=(1, 2)) + corrected * xp.abs(correction(joint, x_margin, y_margin))
    return unit * total / n


def torch_given(torch: ModuleType, joint: AnyArray, x_margin: AnyArray, y_margin: AnyArray, unit: AnyArray) -> Any:
    n = x_margin.sum(dim=1)[:, None, None]
    expected = x_margin[:, :, None] * y_margin[:, None, :] / n
    return unit * (torch.nn.functional.kl_div(expected.log(), joint, reduction="none") / n).sum(dim=(1, 2))


def own_margins(make: Callable[..., Any], source: str, bx: int, by: int, **parameters: Any) -> Golden:
    """A table with the margins that it has."""
    return Golden(
        Workload(tables=1, bx=bx, by=by, **parameters),
        {
            "joint": lambda bx, by: np.float32(make(bx, by))[None],  # pyright: ignore[reportIndexIssue] - an array
            "x_margin": lambda bx, by: np.float32(make(bx, by)).astype("float64").sum(axis=1)[None],
            "y_margin": lambda bx, by: np.float32(make(bx, by)).astype("float64").sum(axis=0)[None],
        },
        {}, source=source,
    )  # fmt: skip


def by_hand(joint: Any, x_margin: Any, y_margin: Any, information: AnyArray, source: str, **parameters: Any) -> Golden:
    return Golden(
        Workload(tables=1, bx=2, by=2, **parameters),
        {"joint": [joint], "x_margin": [x_margin], "y_margin": [y_margin]}, {"information": information}, source,
    )  # fmt: skip


def on_diagonal(information: AnyArray, source: str, each: float = 5.0, **parameters: Any) -> Golden:
    """A square table that stays in registers: y follows from x."""
    inputs = {"joint": each * np.eye(SIDE)[None], "x_margin": each, "y_margin": each}
    return Golden(Workload(tables=1, bx=SIDE, by=SIDE, **parameters), inputs, {"information": information}, source)


def square_corner(corner: Any, x_margin: Any, y_margin: Any, information: AnyArray, source: str) -> Golden:
    """The same with mass in the first two rows and columns alone."""
    joint, margins = np.zeros((1, SIDE, SIDE)), np.zeros((2, 1, SIDE))
    joint[0, :2, :2], margins[:, 0, :2] = corner, (x_margin, y_margin)
    inputs = {"joint": joint, "x_margin": margins[0], "y_margin": margins[1]}
    return Golden(Workload(tables=1, bx=SIDE, by=SIDE), inputs, {"information": information}, source)


TRAPS = (
    by_hand([[5, 0], [0, 5]], [5, 5], [5, 5], np.log(2), "y follows from x"),
    by_hand([[2, 4], [3, 6]], [6, 9], [5, 10], 0.0, "independent"),
    by_hand([[0, 0], [7, 0]], [0, 7], [7, 0], 0.0, "one cell; empty rows and columns"),
    by_hand([[1, 1], [1, 1]], [4, 4], [4, 4], -np.log(2) / 2, "inconsistent: half of the mass is missing"),
    by_hand([[0, 0], [0, 0]], [0, 0], [0, 0], np.nan, "nothing counted"),
    by_hand([[np.nan, 0], [0, 1]], [1, 1], [1, 1], np.nan, "NaN"),
    by_hand([[0.5, 0], [0, 0.5]], [0.5, 0.5], [0.5, 0.5], np.log(2), "probabilities: n = 1"),
    by_hand(
        [[5, 0], [0, 5]], [5, 5], [5, 5], 1 + 1 / 20 / np.log(2), "2 - 2 - 2 + 1 = -1 over 2 N, N = 10",
        units="bits", miller_madow=True,
    ),
    *(
        make([[1, 1], [0, 0]], [2, 0], [2, 0], np.inf, "inconsistent: a cell with mass whose column has none")
        for make in (by_hand, square_corner)
    ),
    square_corner([[0, 0], [7, 0]], [0, 7], [7, 0], 0.0, "one cell; empty rows and columns"),
    square_corner([[0, 0], [0, 0]], [0, 0], [0, 0], np.nan, "nothing counted"),
    square_corner([[np.nan, 0], [0, 1]], [1, 1], [1, 1], np.nan, "NaN"),
    on_diagonal(np.log(SIDE), "ln 32"),
    on_diagonal(np.log(SIDE), "probabilities whose products underflow", each=2.0**-80),
    on_diagonal(np.log(SIDE), "cells and margins whose products overflow", each=2.0**80),
    on_diagonal(
        5 + 31 / 320 / np.log(2), "32 - 32 - 32 + 1 = -31 over 2 N, N = 160", units="bits", miller_madow=True
    ),
)  # fmt: skip


def with_margins(joint: Array, rules: tuple[Rule, Rule], tables: tuple[Any, ...]) -> Variant:
    """The variant; `joint` is the kernel's argument, `tables` are makers of awkward ones with what they are."""
    return Variant(
        "margins are given: nothing is added up before, one reading",
        arguments=(
            joint, In("x_margin", "tables bx", fill=margin_of("by")), In("y_margin", "tables by", fill=margin_of("bx")),
            Out("information", "tables"), Scratch("by_block", str(2 * MOST_BLOCKS), "float64"),
            Scratch("arrived", "1", "uint32"), Size("tables"), Size("bx"), Size("by"), Size("corrected"),
            Scalar("unit", "float64"),
        ),
        rules=rules, launch=launch, reference=reference, tolerance=reduction(magnitude), traffic_factor=6,
        edges=(
            *(Workload(tables=t, bx=x, by=y) for t, x, y in (
                (0, 4, 4), (3, 1, 1), (19, 32, 32), (2, 3, 41), (1, 70, 150), (1, 1, 9000), (1, 2000, 4), (1, 4500, 4),
                (2, 5, 1501),
            )),
            Workload(tables=1, bx=20, by=300, units="bits", miller_madow=True),
            *(
                Edge("empty cells where many are expected", Workload(tables=2, bx=x, by=y), EMPTY_AND_LARGE)
                for x, y in ((20, 41), (20, 300), (SIDE, SIDE))
            ),
        ),
        golden=(
            *TRAPS,
            *(
                own_margins(make, source, bx, by)
                for make, source in tables
                for bx, by in ((24, 30), (SIDE, SIDE), (90, 132))
            ),
        ),
        peers={"torch": torch_given},
    )  # fmt: skip


ONE_OR_MORE = Rule("bx >= 1 and by >= 1", lambda bx, by: min(bx, by) >= 1)

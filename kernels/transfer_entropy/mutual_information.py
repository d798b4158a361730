"""Plug-in mutual information I = sum of p ln[p / (p_x p_y)] of tables of counts or probabilities, in nats or bits.

The Miller-Madow correction subtracts (m_xy - m_x - m_y + 1) / (2 N), m occupied cells, rows and columns, N samples.
Without the correction I is never negative; a table without counts has none: NaN. In the variant `margins` p_x and p_y
are given, taken as they are, and n is the sum of p_x's: if they are not the table's own, I may be negative or infinite.

`probabilities` of 32 rows take no logarithm in double precision: c ln(c / e) with e = p_x p_y / n, where a warp adds
the margins up in double precision and splits them into two floats each. So c - e is right to 48 bits of e, and where c
and e are nearly the same the logarithm is taken of that difference. What rounding makes of 0, n I below 2^-46 n, is 0.
Numbers out of range take a logarithm in double precision each. Large tables do not have this form: their margins are
known after a first reading only.
"""

from collections.abc import Callable
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
    reduction,
)  # fmt: skip
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Fill, Peer, nonnegative

from ..include.entropy.given_margins import ONE_OR_MORE, with_margins
from ..peers.poor_ways import ONE_BLOCK

# Memory-bound at S2, for counts: about 13 instructions a cell, and a table of logarithms that costs four cache lines
# for 32 cells. Cells that are no whole numbers below 1024 take a logarithm in double precision each, after a first pass
# that found them; that limits `probabilities` but for square tables, each in the registers of a warp, whose terms are
# those of given_margins.cuh. S1 is latency-bound: four blocks on an SM, fewer parts to add up and one launch less help.
STRIP, BAND, ON_CHIP, BY_WARP, MOST_BLOCKS = 128, 256, 8192, 1024, 512
SIDE, IN_TURN = 32, 8  # of square tables that stay in registers; of them a warp takes so many
tallies = Fill(
    lambda rng, count, axes: rng.poisson(rng.gamma(4.0, 5.0, size=count)),
    "Poisson, of gamma mean 20",
    nonnegative(),
    runs=ONE_BY_ONE,
)
weights = Fill(
    lambda rng, count, axes: rng.exponential(size=count) / (axes["bx"] * axes["by"]),
    "exponential",
    nonnegative(),
    runs=ONE_BY_ONE,
)


def fits(bx: int, by: int) -> bool:
    """Whether a table, its rows made odd so that columns lie in different banks, stays on chip."""
    return bx * (by | 1) <= ON_CHIP


def launch_probabilities(tables: int, bx: int, by: int, strips: int, bands: int) -> Any:
    """Launch a warp for each square table, which takes its logarithms itself; others as `launch_of` does."""
    if bx == by == SIDE:
        names = ("joint", "information", "tables", "corrected", "unit")
        return Launch(-(-tables // 2), 64, entry="square_probabilities", arguments=names)
    return launch_of("float")(tables, bx, by, strips, bands)


def launch_of(count: str) -> Callable[..., Any]:
    """Tables that fit a warp or a block stay there, after the table of c ln c; a large one is read in tiles."""
    logs = Launch(4, 256, entry="count_log_table", arguments=("table",))

    def launch(tables: int, bx: int, by: int, strips: int, bands: int) -> tuple[Launch | Zero, ...]:
        if bx == by == SIDE:
            names = ("joint", "information", "table", "tables", "corrected", "unit")
            return logs, Launch(-(-tables // (8 * IN_TURN)), 256, entry=f"square_tables<{count}>", arguments=names)
        if fits(bx, by):
            warps = 1 if bx * by <= BY_WARP else 4
            at_once = 4 // warps
            names = ("joint", "information", "table", "tables", "bx", "by", "corrected", "unit")
            return logs, Launch(-(-tables // at_once), 128, shared=4 * at_once * bx * (by | 1),
                                entry=f"mutual_information<{count}, {warps}>", arguments=names)  # fmt: skip
        parts = ("row_parts", "column_parts", "tile_logs", "tile_cells")
        last = (*parts, "information", "by_block", "arrived", "bx", "by", "corrected", "unit")
        return (
            Launch(strips * bands, 256, entry=f"table_parts<{count}>",
                   arguments=("joint", *parts, "bx", "by")),
            Launch((1, min(MOST_BLOCKS, -(-(bx + by) // 32))), 256, entry="table_margins", arguments=last),
        )  # fmt: skip

    return launch


SHARE = 1e-6  # of the sum of absolute terms that a result may be off by


def terms(joint: AnyArray, xp: ArrayModule, special: ModuleType) -> tuple[AnyArray, AnyArray]:
    """Of each table: the terms, and how many samples there are."""
    joint = joint.astype("float64")
    n = joint.sum(axis=(1, 2), keepdims=True)
    p = joint / n
    return special.rel_entr(p, p.sum(axis=2, keepdims=True) * p.sum(axis=1, keepdims=True)), n[:, 0, 0]


def correction(joint: AnyArray, xp: ArrayModule) -> AnyArray:
    occupied = (joint != 0).sum(axis=(1, 2)), (joint.sum(axis=2) != 0).sum(axis=1), (joint.sum(axis=1) != 0).sum(axis=1)
    return occupied[0] - occupied[1] - occupied[2] + 1


def reference(joint: AnyArray, corrected: int, unit: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    found, n = terms(joint, xp, special)
    information = xp.maximum(found.sum(axis=(1, 2)), 0)
    if corrected:
        information = information - correction(joint, xp) / (2 * n)
    return unit * information


def magnitude(joint: AnyArray, corrected: int, unit: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    """The absolute terms; with p = p_x p_y these are what the reference itself rounds, no more than 2^-50 of all p."""
    found, n = terms(joint, xp, special)
    rounded = 2.0**-50 / SHARE
    return unit * (xp.abs(found).sum(axis=(1, 2)) + corrected * xp.abs(correction(joint, xp)) / (2 * n) + rounded)


def torch_information(torch: ModuleType, joint: AnyArray, unit: AnyArray) -> Any:
    p = joint / joint.sum(dim=(1, 2), keepdim=True, dtype=torch.float32)
    apart = p.sum(dim=2, keepdim=True) * p.sum(dim=1, keepdim=True)
    return unit * torch.nn.functional.kl_div(apart.log(), p, reduction="none").sum(dim=(1, 2))


def cupy_information(cupy: ModuleType, joint: AnyArray, unit: AnyArray) -> Any:
    p = (joint / joint.sum(axis=(1, 2), keepdims=True)).astype("float32")
    ratio = p / (p.sum(axis=2, keepdims=True) * p.sum(axis=1, keepdims=True))
    return unit * (p * cupy.log(cupy.maximum(ratio, np.float32(1e-30)))).sum(axis=(1, 2))


def arguments(dtype: str, fill: Fill) -> tuple[Any, ...]:
    scratch = {"table": "1024", "row_parts": "strips bx", "column_parts": "bands by", "tile_logs": "strips bands",
               "by_block": str(3 * MOST_BLOCKS)}  # fmt: skip
    return (
        In("joint", "tables bx by", dtype, fill=fill), Out("information", "tables"),
        *(Scratch(name, shape, "float64") for name, shape in scratch.items()),
        Scratch("tile_cells", "strips bands", "int32"), Scratch("arrived", "1", "uint32"), Size("tables"), Size("bx"),
        Size("by"), Size("corrected"), Scalar("unit", "float64"),
    )  # fmt: skip


def nearly_independent(bx: int, by: int) -> AnyArray:
    """Products of margins, but for one part in 10^4."""
    rng = np.random.default_rng(5)
    table = np.outer(rng.uniform(1, 2, bx), rng.uniform(1, 2, by))
    return table * (1 + 1e-4 * rng.normal(size=table.shape))


def sparse(bx: int, by: int) -> AnyArray:
    """Mostly empty cells, and an empty row and column."""
    table = np.random.default_rng(6).poisson(0.3, size=(bx, by))
    table[2], table[:, 1] = 0, 0
    return table


def with_a_large_cell(bx: int, by: int) -> AnyArray:
    """Small counts, and one that has no place in the table of logarithms."""
    table = sparse(bx, by)
    table[bx // 2, by - 1] = 5000
    return table


corners = {"tables": 1, "bx": 2, "by": 2}
shapes = (
    (1, 32, 32),
    (19, 32, 32),
    (0, 4, 4),
    (3, 1, 1),
    (5, 16, 16),
    (2, 20, 20),
    (2, 3, 41),
    (1, 70, 150),
    (1, 1, 9000),
)
rules = (Rule("units to be nats or bits", lambda units: units in ("nats", "bits")), ONE_OR_MORE)
awkward = (
    (nearly_independent, "nearly independent"),
    (sparse, "empty cells, row and column"),
    (with_a_large_cell, "a cell above the table of logarithms among small ones"),
)


def independent(bx: int, by: int) -> AnyArray:
    """Products of margins, but for their rounding."""
    rng = np.random.default_rng(7)
    return np.float32(np.outer(rng.uniform(1, 2, bx), rng.uniform(1, 2, by)))


def square(make: Callable[[int, int], AnyArray], source: str, total: float = 1.0, **parameters: Any) -> Golden:
    """A table that stays in registers, whose cells add up to `total`."""

    def joint(bx: int, by: int) -> AnyArray:
        table = make(bx, by)
        return (total / table.sum() * table)[None]

    return Golden(Workload(tables=1, bx=SIDE, by=SIDE, **parameters), {"joint": joint}, {}, source)


def corner(cells: list[list[float]], information: float, source: str) -> Golden:
    """The same with mass in the first two rows and columns alone."""
    joint = np.zeros((1, SIDE, SIDE))
    joint[0, :2, :2] = cells
    return Golden(Workload(tables=1, bx=SIDE, by=SIDE), {"joint": joint}, {"information": information}, source)


SQUARE_PROBABILITIES = (
    corner([[0.5, 0], [0, 0.5]], np.log(2), "y follows from x"),
    corner([[0.125, 0.25], [0.1875, 0.375]], 0.0, "independent, with empty rows and columns"),
    corner([[0, 0], [1, 0]], 0.0, "one cell"),
    corner([[0, 0], [0, 0]], np.nan, "nothing"),
    corner([[np.nan, 0], [0, 1]], np.nan, "NaN"),
    corner([[1.0, 0], [0, 2.0**-90]], 0.0, "a column whose share is out of range"),
    *(square(make, source) for make, source in awkward),
    square(independent, "independent, but for rounding"),
    *(square(nearly_independent, f"a sum of 2^{power}", 2.0**power) for power in (-90, -40, 40, 90)),
    square(sparse, "corrected, in bits", 1.0, units="bits", miller_madow=True),
)
spec = KernelSpec(
    entry="mutual_information<float>",
    arguments=arguments("float32", tallies),
    parameters={"units": "nats", "miller_madow": False},
    derived={
        "unit": lambda units: 1.0 if units == "nats" else 1 / np.log(2),
        "corrected": lambda miller_madow: int(miller_madow),
        "strips": lambda by: -(-by // STRIP),
        "bands": lambda bx: -(-bx // BAND),
    },
    rules=(
        *rules,
        Rule(f"one table, or tables of at most {ON_CHIP} cells, rows made odd",
             lambda tables, bx, by: tables == 1 or fits(bx, by)),
    ),
    launch=launch_of("float"),
    reference=reference,
    tolerance=reduction(magnitude, SHARE),
    peers={"torch": torch_information, "cupy": Peer(cupy_information, poor=ONE_BLOCK)},
    looked_at={"cub": "has no reduction along two axes at once, nor of logarithms of margins"},
    flops=lambda tables, bx, by: 3 * tables * bx * by,
    traffic_factor=12,  # each cell looks its logarithm up in the L1 cache; at S0 making the table is most of it
    workloads={
        "S0": Workload(tables=1, bx=16, by=16),
        "S1": Workload(tables=1, bx=4096, by=4096),
        "S2": Workload(tables=100_000, bx=32, by=32),
    },
    edges=(
        *(Workload(tables=t, bx=x, by=y) for t, x, y in shapes),
        *(Workload(tables=1, bx=x, by=y, units="bits", miller_madow=True) for x, y in ((20, 20), (100, 130))),
    ),
    golden=(
        Golden(Workload(**corners), {"joint": [[[5, 0], [0, 5]]]}, {"information": np.log(2)},
        source="y follows from x"),
        Golden(Workload(**corners), {"joint": [[[2, 4], [3, 6]]]}, {"information": 0.0}, source="independent"),
        Golden(Workload(**corners), {"joint": [[[0, 0], [7, 0]]]}, {"information": 0.0}, source="one cell"),
        Golden(Workload(**corners), {"joint": 0.0}, {"information": np.nan}, source="nothing counted"),
        Golden(
            Workload(**corners, units="bits", miller_madow=True), {"joint": [[[5, 0], [0, 5]]]},
            {"information": 1 + 1 / 20 / np.log(2)}, source="2 - 2 - 2 + 1 = -1 over 2 N, N = 10",
        ),
        *(
            Golden(Workload(tables=1, bx=x, by=y), {"joint": make}, {}, source=source)
            for x, y in ((24, 30), (32, 32), (90, 130), (130, 264))
            for make, source in awkward
        ),
    ),
    variants={
        "counts": Variant(
            "32-bit counts, also above 2^24", arguments=arguments("int32", tallies), launch=launch_of("int"),
            golden=(
                Golden(
                    Workload(**corners), {"joint": [[[20_000_001, 40_000_003], [30_000_001, 60_000_001]]]}, {},
                    source="counts that no float holds, all but independent",
                ),
            ),
        ),
        "probabilities": Variant(
            "of tables of probabilities", arguments=arguments("float32", weights), launch=launch_probabilities,
            golden=SQUARE_PROBABILITIES,
        ),
        "margins": with_margins(In("joint", "tables bx by", fill=tallies), rules, awkward),
    },
)  # fmt: skip

"""H = -sum of p ln p over each row of discrete distributions, in nats or bits; 0 ln 0 = 0, nothing is cut off.

Values are taken as they are; the variant `counts` divides each row by its sum first. A negative p makes H -inf.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Edge,
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
    reduction,
)  # fmt: skip
from prism_bench.spec import ONE_BY_ONE, AnyArray, ArrayModule, Device, Fill, Peer, nonnegative

from ..include.sums.row_sums import MOST_BLOCKS, SHARED_TUNE, shared_rows
from ..peers import cub_peers
from ..peers.poor_ways import ONE_BLOCK

# Memory-bound. While each term branched on its size, registers left half of an SM's warps; terms without branches in 32
# registers are faster. `counts` reads most rows once: their total and sum of c log c at the same time.
weights = Fill(
    lambda rng, count, axes: rng.exponential(size=count) / axes["cols"],
    "exponential, of mean 1 / cols",
    nonnegative(),
    runs=ONE_BY_ONE,
)
tallies = Fill(
    lambda rng, count, axes: rng.poisson(20, size=count), "Poisson of mean 20", nonnegative(), runs=ONE_BY_ONE
)


def with_empty_bins(rng: np.random.Generator, count: int, axes: Mapping[str, Any]) -> AnyArray:
    """Counts of which one in twenty is 0, the first one is not."""
    return rng.poisson(3, size=count) + (np.arange(count) == 0)


EMPTY_BINS = Fill(with_empty_bins, "Poisson of mean 3, the first bin + 1", nonnegative())


def launch(rows: int, cols: int, device: Device, fill: int, block: int) -> Launch:
    return shared_rows(rows, cols, device, 1, fill=fill, block=block)


def launch_counts(rows: int, cols: int, device: Device, fill: int, block: int) -> tuple[Launch, ...]:
    """One reading; rows whose entropy is small against what cancels are read again, few rows in the same launch."""
    last = launch(rows, cols, device, fill, block)
    if last.grid == (rows, 1) and rows <= device.sm_count:
        passed = ("p", "entropy", "by_block", "arrived", "cols", "unit")
        return (Launch(last.grid, last.block, entry="entropy_of_few_counts", arguments=passed),)
    return tuple(
        Launch(last.grid, last.block, entry=entry) for entry in ("quick_entropy_of_counts", "entropy_of_counts")
    )


def arguments(fill: Fill, *scratch: Any) -> tuple[Any, ...]:
    by_block = Scratch("by_block", str(2 * MOST_BLOCKS), dtype="float64")
    return (In("p", "rows cols", fill=fill), Out("entropy", "rows"), *scratch, by_block,
            Scratch("arrived", str(MOST_BLOCKS), dtype="uint32"), Size("cols", "int64"),
            Scalar("unit", "float64"))  # fmt: skip


def reference(p: AnyArray, unit: AnyArray, special: ModuleType) -> AnyArray:
    return special.entr(p).sum(axis=1) * unit / np.log(2)


def magnitude(p: AnyArray, unit: AnyArray, xp: ArrayModule, special: ModuleType) -> AnyArray:
    return xp.abs(special.entr(p)).sum(axis=1) * unit / np.log(2)


def shares(p: AnyArray) -> AnyArray:
    return p / p.sum(axis=1, keepdims=True)


def cupy_entropy(cupy: ModuleType, p: AnyArray, unit: AnyArray) -> Any:
    return -unit * (p * cupy.log2(cupy.maximum(p, np.float32(1e-38)))).sum(axis=1)


def torch_entropy(torch: ModuleType, p: AnyArray, unit: AnyArray) -> Any:
    return torch.special.entr(p).sum(dim=1) * (unit / np.log(2))


def cub_entropy(cub: ModuleType, p: AnyArray, unit: AnyArray) -> Any:
    """One sum of terms that are made where they are read."""
    term = f"v[0] > 0 ? {cub_peers.number(-unit)} * v[0] * log2f(v[0]) : 0.0f"
    return cub_peers.row_sums(cub, (p,), term)


def few_careful(rows: int, cols: int) -> AnyArray:
    """Unlike probabilities, and subnormal ones among them, far apart."""
    p = np.random.default_rng(5).uniform(0.1, 1.9, (rows, cols)) / cols
    p[:, ::7001] = 1e-40
    return p


def tail(cols: int) -> AnyArray:
    """Half of the mass in terms of 5e-11, which a cut at 1e-10 would lose."""
    return np.where(np.arange(cols) == 0, 0.5, 5e-11)


CUB_ENTROPY = Peer(cub_entropy, prepares=True)

spec = KernelSpec(
    entry="shannon_entropy",
    arguments=arguments(weights),
    parameters={"units": "nats"},
    derived={"unit": lambda units: np.log(2) if units == "nats" else 1.0},
    rules=(Rule("units to be nats or bits", lambda units: units in ("nats", "bits")),),
    launch=launch,
    tune=SHARED_TUNE,
    reference=reference,
    tolerance=reduction(magnitude),
    peers={"torch": torch_entropy, "cupy": Peer(cupy_entropy, poor=ONE_BLOCK), "cub": CUB_ENTROPY},
    flops=lambda rows, cols: 2 * rows * cols,
    workloads={
        "S0": Workload(rows=1, cols=256),
        "S1": Workload(rows=1, cols=64 << 20),
        "S2": Workload(rows=1, cols=256 << 20),
    },
    edges=(
        *(
            Workload(rows=r, cols=c)
            for r, c in ((0, 5), (3, 0), (1, 1), (4, 3), (7, 257), (3, 1028), (2, 9001), (1, 40_003))
        ),
        Workload(rows=5, cols=100, units="bits"),
    ),
    golden=(
        Golden(
            Workload(rows=9, cols=2),
            {"p": [[0, 1], [1, 0], [0.5, 0.5], [0.999, 0.001], [np.nan, 1], [-0.1, 1], [3, 4], [1e-40, 1e-45], [0, 0]]},
            {}, source="0 ln 0, near 1, NaN, negative, not normalised, subnormal",
        ),
        Golden(
            Workload(rows=2, cols=1024, units="bits"), {"p": 1 / 1024}, {"entropy": 10.0},
            source="1024 equal probabilities; the hardware's logarithm is 2 ulp off at most",
        ),
        Golden(Workload(rows=1, cols=100_000), {"p": tail}, {}, source="many terms below 1e-10"),
        Golden(
            Workload(rows=1, cols=900_000), {"p": few_careful}, {}, source="threads that take their terms anew are few"
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "counts": Variant(
            "of rows divided by their sums",
            arguments=arguments(tallies, Scratch("total", "rows", dtype="float64")),
            launch=launch_counts,
            bytes_moved=lambda rows, cols: 4 * rows * cols + 4 * rows,
            reference=lambda p, unit, special: reference(shares(p), unit, special),
            tolerance=reduction(lambda p, unit, xp, special: magnitude(shares(p), unit, xp, special)),
            edges=(
                *(Workload(rows=r, cols=c) for r, c in ((0, 5), (2, 9001), (7, 257), (3, 5))),
                *(
                    Edge("empty bins", Workload(rows=r, cols=c), {"p": EMPTY_BINS})
                    for r, c in ((2, 9001), (2, 70_001), (1, 300_007))
                ),
            ),
            golden=(
                Golden(
                    Workload(rows=4, cols=2), {"p": [[5, 0], [3, 3], [0, 0], [2**24 - 1, 1]]}, {},
                    source="all in one, halves, nothing counted (NaN), nearly all in one",
                ),
                Golden(
                    Workload(rows=4, cols=3), {"p": [[-1, 3, 2], [np.nan, 1, 1], [1e-40, 1, 1], [0, 1e-40, 5]]}, {},
                    source="what takes the careful way: negative, NaN, subnormal, and all in one next to it",
                ),
            ),
            budgets=(),
            peers={
                "torch": lambda torch, p, unit: torch_entropy(torch, p / p.sum(dim=1, keepdim=True), unit),
                "cupy": Peer(lambda cupy, p, unit: cupy_entropy(cupy, shares(p), unit), poor=ONE_BLOCK),
            },
        ),
        "rows": Variant(
            "a batch of many distributions",
            workloads={"S0": Workload(rows=32, cols=256), "S1": Workload(rows=65_536, cols=4096)},
            edges=(), golden=(), budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
            peers={"torch": torch_entropy, "cupy": cupy_entropy, "cub": CUB_ENTROPY},
        ),
    },
)  # fmt: skip

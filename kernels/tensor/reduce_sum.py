"""result = sum of x_i in one launch: the last block to finish adds what the blocks found, in a fixed order.

Memory-bound, at the rate that reading alone reaches; rows need 16-byte loads for that, single floats are far slower.

A thread takes no more elements than by default, also when tuned: an accumulator that holds a large value loses small
ones, as the golden data showed on the emulator. Some of the configurations left out might be faster.
"""

from functools import partial
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    KernelSpec,
    Launch,
    Out,
    Scalar,
    Scratch,
    Size,
    Variant,
    Workload,
    exact,
    reduction,
)
from prism_bench.spec import AnyArray, Array, ArrayModule, Device, Peer, Tolerance

from ..include.sums.row_sums import MOST_BLOCKS, TILED_TUNE, parts_of
from ..peers import cub_peers


def launch(n: int, device: Device, fill: int, block: int) -> Launch:
    return Launch(grid=parts_of(1, n, device, fill=fill, block=block), block=block)


def arguments(result: str) -> tuple[Array | Scalar, ...]:
    """The signature for a result of that dtype."""
    blocks = Scratch("by_block", str(MOST_BLOCKS), dtype="float64")
    return (In("x", "n"), Out("result", "1", dtype=result), blocks, Size("n", "int64"))


def close(terms: float) -> Tolerance:
    """Within `terms` of the sum of the absolute values."""
    return reduction(magnitude=lambda x, xp: xp.abs(x).sum(), terms=terms)


def one_large(n: int) -> Any:
    """2^24 and then ones, which a single float sum would never notice."""
    return np.where(np.arange(n) == 0, 2.0**24, 1.0)


def one_undefined(n: int) -> AnyArray:
    """A NaN among numbers that are larger before and behind it."""
    return np.where(np.arange(n) == n // 2, np.nan, np.abs(np.arange(n) - n // 2))


def largest(x: AnyArray, xp: ArrayModule) -> AnyArray:
    return x.max() if x.size else xp.full(1, -xp.inf)


stagnating = partial(
    Golden,
    Workload(n=1 << 20),
    inputs={"x": one_large},
    expected={"result": 2.0**24 + 2.0**20 - 1},
    source="2^24 + (n - 1) ones, calculated",
)
infinite = Golden(
    Workload(n=5),
    inputs={"x": [1, np.inf, 2, 3, 4]},
    expected={"result": np.inf},
    source="IEEE 754",
    tolerance=exact(),
)
undefined = Golden(
    Workload(n=5),
    inputs={"x": [1, np.inf, 2, -np.inf, 4]},
    expected={"result": np.nan},
    source="IEEE 754: inf - inf",
    tolerance=exact(),
)

spec = KernelSpec(
    entry="reduce_sum<Plain<float>, float>",
    arguments=arguments("float32"),
    launch=launch,
    tune=TILED_TUNE,
    reference=lambda x: x.sum(),
    tolerance=close(1e-6),
    peers={
        "torch": lambda torch, x: torch.sum(x),
        "cupy": lambda cupy, x: cupy.sum(x),
        "cub": Peer(lambda cub, x: cub_peers.sums(cub, (x,)), prepares=True),
    },
    flops=lambda n: n,
    aliases=("la_reduction",),
    workloads={"S0": Workload(n=256), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=(Workload(n=0), Workload(n=1), Workload(n=3), Workload(n=2049), Workload(n=(1 << 20) + 3)),
    golden=(stagnating(), infinite, undefined),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "f64": Variant(
            "accumulated and returned in double precision",
            arithmetic="fp64",
            entry="reduce_sum<Plain<double>, double>",
            arguments=arguments("float64"),
            tolerance=close(1e-15),
            golden=(stagnating(tolerance=exact()), infinite, undefined),
        ),
        "compensated": Variant(
            "float accumulators that carry what they lose, for devices with slow double precision",
            entry="reduce_sum<Compensated, double>",
            arguments=arguments("float64"),
            tolerance=close(1e-12),
            golden=(stagnating(tolerance=exact()), infinite, undefined),
        ),
        "squares": Variant(
            "the sum of the squares",
            entry="reduce_sum<Squares, float>",
            reference=lambda x: (x * x).sum(),
            tolerance=reduction(magnitude=lambda x: (x * x).sum()),
            peers={
                "torch": lambda torch, x: torch.dot(x, x),
                "cub": Peer(lambda cub, x: cub_peers.sums(cub, (x,), "v[0] * v[0]"), prepares=True),
            },
            flops=lambda n: 2 * n,
            golden=(Golden(Workload(n=5), {"x": [1, -2, 3, -4, 0.5]}, {"result": 30.25}, "calculated"), infinite),
        ),
        "max": Variant(
            "the largest element; a NaN is larger than any",
            entry="reduce_largest",
            reference=largest,
            tolerance=exact(),
            peers={
                "torch": lambda torch, x: torch.max(x),
                "cupy": lambda cupy, x: cupy.max(x),
                "cub": Peer(cub_peers.largest, prepares=True, work="passes over a NaN, which the kernel returns"),
            },
            golden=(
                Golden(Workload(n=5), {"x": [-3, -np.inf, -1.5, -2, -9]}, {"result": -1.5}, source="calculated"),
                Golden(Workload(n=2053), {"x": one_undefined}, {"result": np.nan}, source="NaN passes"),
                infinite,
            ),
        ),
        "rows": Variant(
            "along the last axis",
            entry="reduce_rows",
            arguments=(In("x", "rows cols"), Out("result", "rows"), Size("cols")),
            launch=lambda rows, cols: Launch(grid=rows, block=32 if cols <= 512 else 256),
            reference=lambda x: x.sum(axis=1),
            tolerance=reduction(magnitude=lambda x, xp: xp.abs(x).sum(axis=1)),
            peers={
                "torch": lambda torch, x: torch.sum(x, dim=1),
                "cupy": lambda cupy, x: cupy.sum(x, axis=1),
                "cub": Peer(lambda cub, x: cub_peers.row_sums(cub, (x,)), prepares=True),
            },
            flops=lambda rows, cols: rows * cols,
            workloads={"S0": Workload(rows=32, cols=1000), "S1": Workload(rows=65_536, cols=4096)},
            edges=tuple(Workload(rows=r, cols=c) for r, c in ((3, 0), (2, 1), (5, 513), (3, 8195), (2, 4100))),
            golden=(),
            budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
        ),
    },
)

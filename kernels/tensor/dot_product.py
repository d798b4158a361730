"""result = sum of a_i b_i in one launch: the last block to finish adds what the blocks found, in a fixed order."""

from functools import partial

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
    elementwise,
    exact,
    reduction,
)
from prism_bench.spec import Array, Device, Peer

from ..include.sums.row_sums import MOST_BLOCKS, TILED_TUNE, parts_of
from ..peers import cub_peers

UNDERFLOW = 2.0**-149  # what a product of floats may lose


def launch(n: int, device: Device, fill: int, block: int) -> Launch:
    return Launch(grid=parts_of(1, n, device, fill=fill, block=block), block=block)


def arguments(result: str) -> tuple[Array | Scalar, ...]:
    """The signature for a result of that dtype."""
    blocks = Scratch("by_block", str(MOST_BLOCKS), dtype="float64")
    return (In("a", "n"), In("b", "n"), Out("result", "1", dtype=result), blocks, Size("n", "int64"))


guide = partial(
    Golden,
    Workload(n=100_000),
    inputs={"a": lambda n: np.arange(n), "b": lambda n: np.arange(n) + 1},
    expected={"result": 333_333_333_300_000},
    source="the profiling guide's vectors a_i = i, b_i = i + 1: (n^3 - n) / 3",
)
cancelling = partial(
    Golden,
    Workload(n=8),
    inputs={"a": [1e8, 1, -1e8, 3, 1e-8, 1e4, -1e4, 0], "b": [1e8, 1, 1e8, 1, 1e8, 1e4, 1e4, 0]},
    expected={"result": 1 + 3 + float(np.float32(1e-8)) * 1e8},
    source="terms of 1e16 that cancel; 1e-8 as the nearest float",
)
infinite = Golden(
    Workload(n=5),
    inputs={"a": [1, np.inf, 2, 3, 4], "b": [1, -2, 2, 3, 4]},
    expected={"result": -np.inf},
    source="IEEE 754",
    tolerance=exact(),
)
undefined = Golden(
    Workload(n=4),
    inputs={"a": [1, np.inf, 2, -np.inf], "b": [1, 1, 2, 1]},
    expected={"result": np.nan},
    source="IEEE 754: inf - inf",
    tolerance=exact(),
)

spec = KernelSpec(
    entry="dot_product<Plain<float>, float>",
    arguments=arguments("float32"),
    launch=launch,
    tune=TILED_TUNE,
    reference=lambda a, b, xp: xp.dot(a, b),
    tolerance=reduction(magnitude=lambda a, b, xp: xp.abs(a * b).sum()),
    peers={
        "torch": lambda torch, a, b: torch.dot(a, b),
        "cupy": lambda cupy, a, b: cupy.dot(a, b),
        "cub": Peer(lambda cub, a, b: cub_peers.sums(cub, (a, b), "v[0] * v[1]"), prepares=True),
    },
    flops=lambda n: 2 * n,
    workloads={"S0": Workload(n=100_000), "S1": Workload(n=64 << 20), "S2": Workload(n=256 << 20)},
    edges=(Workload(n=0), Workload(n=1), Workload(n=3), Workload(n=2049), Workload(n=(1 << 20) + 3)),
    golden=(guide(tolerance=elementwise(ulps=1, floor=0)), cancelling(), infinite, undefined),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "f64": Variant(
            "accumulated and returned in double precision",
            arithmetic="fp64",
            entry="dot_product<Plain<double>, double>",
            arguments=arguments("float64"),
            tolerance=reduction(magnitude=lambda a, b, xp: xp.abs(a * b).sum(), terms=1e-15),
            golden=(guide(tolerance=exact()), cancelling(), infinite, undefined),
        ),
        "compensated": Variant(
            "float accumulators that carry what they lose, for devices with slow double precision",
            entry="dot_product<Compensated, double>",
            arguments=arguments("float64"),
            tolerance=reduction(magnitude=lambda a, b, n, xp: xp.abs(a * b).sum() + n * UNDERFLOW / 1e-12, terms=1e-12),
            golden=(guide(tolerance=exact()), cancelling(), infinite, undefined),
        ),
    },
)

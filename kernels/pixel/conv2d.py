"""Two-dimensional cross-correlation of one image with k x k taps: any stride and padding, zero outside.

The variant `channels` takes images of several channels, with bias, dilation and groups.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, In, KernelSpec, Out, Rule, Size, Variant, Workload, reduction
from prism_bench.spec import AnyArray, ArrayModule, Peer

from ..include.convolution.convolution import (
    BURSTS_OF_A_TILE,
    DERIVED_ONE,
    ONE,
    RULES_ONE,
    any_taps,
    correlated_channels,
    correlated_one,
    launch_one,
    magnitude_one,
    short,
    tiles,
    torch_channels,
    torch_shifts,
)
from ..include.convolution.convolution_window import in_floats
from ..include.convolution.half_convolution import correlated_halves, in_halves, in_halves_by_maps, torch_halves

# Memory and the FMA rate take about the same time. Bursts of rows in the grid's order are fastest although few warps
# fit on an SM; rows one by one or through cp.async move fewer bytes a second. Tiles short enough for more bandwidth
# cost more in 7 x 7 products than they bring. `channels` is bound by arithmetic. Without windows there are 10 copies of
# 4 bytes next to 512 FMA a thread and depth tile, with their addresses and bounds, as shifted rows are not aligned; a
# window of eight channels is copied once for all nine taps.


def outer(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function for taps that are a column times a row."""

    def separable(
        x: AnyArray,
        column: AnyArray,
        row: AnyArray,
        k: int,
        stride: int,
        padding: int,
        out_rows: int,
        out_cols: int,
        xp: ArrayModule,
    ) -> AnyArray:
        return function(x, column[:, None] * row, k, stride, padding, out_rows, out_cols, xp)

    return separable


def along_both(
    x: AnyArray, column: AnyArray, row: AnyArray, k: int, padding: int, out_rows: int, out_cols: int, xp: ArrayModule
) -> AnyArray:
    """Along the rows, then along the columns: an infinite tap of the column meets sums."""
    padded = xp.pad(x, padding)
    sums = sum(row[v] * padded[:, v : v + out_cols] for v in range(k))
    return sum(column[u] * sums[u : u + out_rows] for u in range(k))  # pyright: ignore[reportIndexIssue] - an array


def torch_conv2d(torch: ModuleType, x: AnyArray, taps: AnyArray, stride: int, padding: int) -> Any:
    return torch.nn.functional.conv2d(x[None, None], taps[None, None], stride=stride, padding=padding)[0, 0]


def cupy_correlate(cupy: ModuleType, x: AnyArray, taps: AnyArray, k: int, stride: int, padding: int) -> Any:
    """SciPy's filter on the device; it knows centred windows alone."""
    from cupyx.scipy.ndimage import correlate

    if 2 * padding != k - 1:
        raise ValueError("cupyx.scipy.ndimage.correlate gives an output of the input's size")
    return correlate(x, taps, mode="constant")[::stride, ::stride]


def sobel_response(rows: int, cols: int) -> AnyArray:
    """Sobel-x on an image whose pixels are their column modulo 256: 8 inside, less where zeros come in."""
    image = np.pad(np.tile(np.arange(cols) % 256, (rows, 1)), 1).astype(float)
    slope = image[:, 2:] - image[:, :-2]
    return slope[:-2] + 2 * slope[1:-1] + slope[2:]


SOBEL = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]
guide = Workload(rows=256, cols=256, k=3)
columns = {"x": lambda cols: np.arange(cols) % 256}

HALF = in_halves("conv2d_half", correlated_halves, torch_halves)

spec = KernelSpec(
    entry="conv2d<3, true>",
    arguments=ONE,
    parameters={"stride": 1, "padding": 1},
    derived=DERIVED_ONE,
    rules=RULES_ONE,
    launch=launch_one("conv2d"),
    reference=correlated_one,
    tolerance=reduction(magnitude=magnitude_one),
    peers={
        "torch_shifts": torch_shifts,
        "torch": Peer(torch_conv2d, poor="cuDNN has no fast kernel for one channel in float32"),
        "cupy": cupy_correlate,
    },
    looked_at={"cucim": "has filters of given taps, and no correlation with any taps beyond CuPy's"},
    flops=lambda k, out_rows, out_cols: 2 * k * k * out_rows * out_cols,
    workloads={
        "S0": guide,
        "S1": Workload(rows=8192, cols=8192, k=7, padding=3),
        "S2": Workload(rows=16_384, cols=16_384, k=3, padding=1),
    },
    edges=(
        *(Workload(rows=1, cols=1, k=k, padding=p) for k, p in ((1, 0), (3, 1), (7, 3), (2, 1))),
        *(Workload(rows=k, cols=k, k=k, padding=0) for k in (3, 4, 5, 7)),  # a single output
        *(Workload(rows=61, cols=c, k=k, padding=k // 2) for k in (3, 5, 7) for c in (4, 131, 516)),
        *(Workload(rows=37, cols=40, k=k, padding=p) for k, p in ((3, 0), (3, 3), (5, 7), (7, 2), (7, 12))),
        *(Workload(rows=30, cols=29, k=k, padding=p) for k, p in ((2, 0), (4, 2), (6, 6), (9, 4), (1, 2))),
        *(Workload(rows=23, cols=41, k=k, stride=s, padding=p) for k, s, p in ((3, 2, 1), (3, 4, 0), (5, 7, 5))),
        Workload(rows=20, cols=22, k=2, stride=3, padding=1),
        Workload(rows=0, cols=5, k=3, padding=2),
    ),
    golden=(
        Golden(guide, {**columns, "taps": SOBEL}, {"y": sobel_response}, source="profiling guide: interior value 8"),
    ),
    variants={
        "channels": in_floats("conv2d", correlated_channels, torch_channels),
        "half": HALF,
        "half_wgmma": in_halves_by_maps(HALF),
        "naive": Variant(
            "one thread per output", launch=lambda out_rows, out_cols: any_taps("conv2d_any", out_rows, out_cols),
            only_labels=("S0", "S1"), traffic_factor=None,
        ),
        "separable": Variant(
            "taps that are a column times a row, in one pass",
            arguments=(
                In("x", "rows cols"), In("column", "k"), In("row", "k"), Out("y", "out_rows out_cols"), Size("rows"),
                Size("cols"), Size("out_rows"), Size("out_cols"), Size("padding"),
            ),
            rules=(Rule("k to be 3, 5 or 7 and stride 1", lambda k, stride: k in BURSTS_OF_A_TILE and stride == 1),),
            launch=lambda k, cols, padding, out_rows, out_cols: tiles(
                "conv2d_separable", k, cols, padding, out_rows, out_cols, short(k)
            ),
            reference=along_both,
            tolerance=reduction(magnitude=outer(magnitude_one)),
            flops=lambda k, out_rows, out_cols: 4 * k * out_rows * out_cols,
            edges=(
                *(Workload(rows=61, cols=132, k=k, padding=k // 2) for k in (3, 5, 7)),
                *(Workload(rows=61, cols=29, k=k, padding=2) for k in (3, 5, 7)),
            ),
            golden=(
                Golden(
                    guide, {**columns, "column": [1, 2, 1], "row": [-1, 0, 1]}, {"y": sobel_response},
                    source="profiling guide: interior value 8",
                ),
            ),
        ),
    },
    budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),
             Budget("bandwidth_share", at_least=0.85, label="S2")),
)  # fmt: skip

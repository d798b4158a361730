"""y = gamma (x - mean) / sqrt(variance + eps) + beta, channel by channel: with stored statistics, or the batch's own.

Channels are the columns of a matrix (height = width = 1) or planes (NCHW). A variance below -eps gives NaN.
"""

from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    InOut,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Scalar,
    Scratch,
    Size,
    Variant,
    Workload,
    normalising,
    uniform,
)
from prism_bench.spec import AnyArray, ArrayModule, nonnegative

from ..include.layers.batch_norm import (
    DERIVED,
    GOLDEN,
    IMAGE,
    IMAGES,
    MATRICES,
    PARAMETERS,
    SIZES,
    WORKLOADS,
    by_channel,
    launch_of,
    normalised,
    torch_batch_norm,
)

MOST_BLOCKS = 2048
COLUMN_BLOCKS = 512  # of 256 threads: about one wave, since the next step reads the moments of every share
FEW_ROWS = {4: 32, 16: 128}  # values of a thread that keeps them all, and the rows of a matrix that this does for


def shares_of(batch: int, channels: int, spatial: int) -> int:
    """How many blocks share a channel's values when their moments are taken, to fill the device."""
    if spatial > 1:
        return max(1, min(batch, MOST_BLOCKS // max(1, channels)))
    return max(1, min(-(-batch // 128), COLUMN_BLOCKS // max(1, -(-channels // 128))))


def moments_threads(spatial: int) -> int:
    """Threads of a block that walks through planes, chosen to waste few on a plane's end."""
    groups = spatial // 4 if spatial % 4 == 0 else spatial
    return min((256, 224, 192, 160, 128, 96, 64, 32), key=lambda threads: -(-groups // threads) * threads)


def launch_training(batch: int, channels: int, spatial: int, shares: int) -> tuple[Launch, ...]:
    """The moments of the shares, the statistics, and batch_norm with these; all at once for few rows."""
    if spatial == 1 and batch <= max(FEW_ROWS.values()):
        each = next(each for each, rows in FEW_ROWS.items() if batch <= rows)
        passed = ("x", "gamma", "beta", "running_mean", "running_variance", "y", "eps", "momentum", "batch", "channels")
        return (Launch(-(-channels // 32), (32, 8), entry=f"batch_norm_few<{each}>", arguments=passed),)
    if spatial == 1:
        width = 4 if channels % 4 == 0 else 1
        grid, block, entry = (-(-channels // (32 * width)), shares), (32, 8), f"column_moments<{width}>"
    else:
        grid, block = (channels, shares), moments_threads(spatial)
        entry = f"plane_moments<{4 if spatial % 4 == 0 else 1}>"
    moments = ("x", "partial", "batch", "channels", "spatial")[: 4 if spatial == 1 else 5]
    found = ("running_mean", "running_variance", "batch_mean", "batch_variance", "batch_shift")
    statistics = ("partial", "gamma", "beta", *found, "eps", "momentum", "channels", "shares")
    last = launch_of("batch_norm_backwards")(batch, channels, spatial)
    sizes = ("batch", "channels", "spatial")
    names = ("x", "gamma", "batch_shift", "batch_mean", "batch_variance", "y", "eps", *sizes)
    return (
        Launch(grid, block, entry=entry, arguments=moments),
        Launch(-(-channels // 32), (32, 16), entry="batch_statistics", arguments=statistics),
        Launch(last.grid, last.block, entry=last.entry, arguments=names),
    )


def reference_training(
    x: AnyArray,
    gamma: AnyArray,
    beta: AnyArray,
    running_mean: AnyArray,
    running_variance: AnyArray,
    eps: float,
    momentum: float,
    xp: ArrayModule,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The running statistics and y: biased variance for y, unbiased for the running estimate."""
    axes = (0, 2, 3)
    mean = x.mean(axis=axes)
    squares = ((x - by_channel(mean)) ** 2).sum(axis=axes)
    count = x.size // max(1, x.shape[1])
    y = normalised(x, gamma, beta, mean, squares / count, eps, xp)
    kept = 1 - momentum
    return kept * running_mean + momentum * mean, kept * running_variance + momentum * squares / (count - 1), y


def torch_training(
    torch: ModuleType,
    x: AnyArray,
    gamma: AnyArray,
    beta: AnyArray,
    running_mean: AnyArray,
    running_variance: AnyArray,
    eps: float,
    momentum: float,
    spatial: int,
) -> Any:
    matrix, mean, variance = x.flatten(1) if spatial == 1 else x, running_mean.clone(), running_variance.clone()
    y = torch.nn.functional.batch_norm(matrix, mean, variance, gamma, beta, training=True, momentum=momentum, eps=eps)
    return mean, variance, y


def noise_far_away(batch: int, channels: int, height: int, width: int) -> AnyArray:
    """Deviation 1 around 10,000, and a constant channel."""
    x = 1e4 + np.random.default_rng(6).normal(size=(batch, channels, height, width))
    x[:, 0] = 0.1
    return x


far_batches = tuple(
    Golden(
        Workload(**axes),
        inputs={"x": noise_far_away, "gamma": 1.5, "beta": -0.25, "running_mean": 3, "running_variance": 2},
        expected={},
        source="a mean of 10,000 with deviation 1 and a constant channel, which gives beta",
    )
    for axes in (
        {"batch": 500, "channels": 8},
        {"batch": 120, "channels": 40},
        {"batch": 700, "channels": 3},
        {"batch": 3, "channels": 2, "height": 12, "width": 11},
    )
)

spec = KernelSpec(
    entry="batch_norm<4, false>",
    arguments=(In("x", IMAGE), *PARAMETERS, Out("y", IMAGE), *SIZES),
    parameters={"eps": 1e-5, "height": 1, "width": 1},
    derived=DERIVED,
    rules=(Rule("eps >= 0", lambda eps: eps >= 0),),
    launch=launch_of("batch_norm"),
    reference=normalised,
    tolerance=normalising(),
    peers={"torch": torch_batch_norm},
    flops=lambda batch, channels, spatial: 3 * batch * channels * spatial + 4 * channels,
    workloads=WORKLOADS,
    edges=(*MATRICES, *IMAGES),
    golden=GOLDEN,
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "in_place": Variant(
            "x becomes y",
            arguments=(InOut("x", IMAGE), *PARAMETERS, *SIZES),
            launch=launch_of("batch_norm_in_place"),
            golden=(),
            only_labels=("S0",),
            budgets=(),
        ),
        "training": Variant(
            "with the mean and biased variance of the batch; running ones take the unbiased variance. x is read twice",
            arguments=(
                In("x", IMAGE), *PARAMETERS[:2], InOut("running_mean", "channels"),
                InOut("running_variance", "channels", fill=uniform(0.2, 2.0), domain=nonnegative()), Out("y", IMAGE),
                Scratch("partial", "shares channels 3", dtype="float64"), Scratch("batch_mean", "channels"),
                Scratch("batch_variance", "channels"), Scratch("batch_shift", "channels"), Scalar("momentum"),
                Size("shares"), *SIZES,
            ),
            parameters={"eps": 1e-5, "height": 1, "width": 1, "momentum": 0.1},
            derived={**DERIVED, "shares": shares_of},
            rules=(
                Rule("eps > 0, so that a constant channel gives beta", lambda eps: eps > 0),
                Rule("more than one value per channel", lambda batch, spatial: batch * spatial > 1),
                Rule("0 <= momentum <= 1", lambda momentum: 0 <= momentum <= 1),
            ),
            launch=launch_training,
            reference=reference_training,
            peers={"torch": torch_training},
            flops=lambda batch, channels, spatial: 7 * batch * channels * spatial,
            bytes_moved=lambda batch, channels, spatial: 12 * batch * channels * spatial + 24 * channels,
            edges=(
                *(Workload(batch=b, channels=c) for b, c in ((5, 0), (2, 1), (32, 33), (33, 32), (128, 70), (129, 70))),
                *(Workload(batch=b, channels=c) for b, c in ((1037, 1), (2100, 6), (9, 260))),
                *IMAGES[:4],
                Workload(batch=1, channels=3, height=2, width=4, momentum=1.0),
            ),
            golden=far_batches,
        ),
    },
)  # fmt: skip

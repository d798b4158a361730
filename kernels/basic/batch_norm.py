"""y = gamma (x - mean) / sqrt(variance + eps) + beta, channel by channel: with stored statistics, or the batch's own.

Channels are the columns of a matrix (height = width = 1) or planes (NCHW). A variance below -eps gives NaN.
"""

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

# Bound by memory: 8 bytes an element at the copy rate; eight rows a thread share one fetch of the channels' parameters.
ROWS_PER_THREAD = 8
MOST_BLOCKS = 2048


def plane_block(spatial):
    """Threads of a block, chosen to waste few on a plane's end, and how many blocks a plane takes."""
    groups = spatial // 4 if spatial % 4 == 0 else spatial
    threads = min((256, 224, 192, 160, 128, 96, 64, 32), key=lambda threads: -(-groups // threads) * threads)
    return threads, -(-groups // threads)


def column_tiles(batch, channels):
    """Blocks of 256 threads as wide as the rows, and the grid of them."""
    width = 4 if channels % 4 == 0 else 1
    across = min(256, 1 << max(0, channels // width - 1).bit_length())
    grid = (-(-batch // (ROWS_PER_THREAD * 256 // across)), -(-channels // (width * across)))
    return {"grid": grid, "block": (across, 256 // across)}


def launch_of(form):
    """Four columns, or neighbours in a plane, per thread where rows, or planes, are whole groups of four."""

    def launch(batch, channels, spatial, parts):
        if spatial == 1:
            return Launch(**column_tiles(batch, channels), entry=f"{form}<{4 if channels % 4 == 0 else 1}, false>")
        entry = f"{form}<{4 if spatial % 4 == 0 else 1}, true>"
        return Launch(batch * channels * parts, plane_block(spatial)[0], entry=entry)

    return launch


def by_channel(values):
    return values.reshape(1, -1, 1, 1)


def reference(x, gamma, beta, mean, variance, eps, xp):
    scale = gamma / xp.sqrt(variance + eps)
    return (x - by_channel(mean)) * by_channel(scale) + by_channel(beta)


def torch_batch_norm(torch, x, gamma, beta, mean, variance, eps, spatial):
    matrix = x.flatten(1) if spatial == 1 else x
    return torch.nn.functional.batch_norm(matrix, mean, variance, gamma, beta, training=False, eps=eps)


def shares_of(batch, channels, spatial):
    """How many blocks share a channel's values when their moments are taken: two thousand in all, if possible."""
    if spatial > 1:
        return max(1, min(batch, MOST_BLOCKS // max(1, channels)))
    return max(1, min(-(-batch // 128), MOST_BLOCKS // max(1, -(-channels // 128))))


def launch_training(batch, channels, spatial, parts, shares):
    """The moments of the shares, the statistics, and batch_norm with these."""
    if spatial == 1:
        width = 4 if channels % 4 == 0 else 1
        grid, block, entry = (shares, -(-channels // (32 * width))), (32, 8), f"column_moments<{width}>"
    else:
        grid, block = (channels, shares), plane_block(spatial)[0]
        entry = f"plane_moments<{4 if spatial % 4 == 0 else 1}>"
    moments = ("x", "partial", "batch", "channels", "spatial")[: 4 if spatial == 1 else 5]
    found = ("running_mean", "running_variance", "batch_mean", "batch_variance", "batch_shift")
    statistics = ("partial", "gamma", "beta", *found, "eps", "momentum", "channels", "shares")
    last = launch_of("batch_norm")(batch, channels, spatial, parts)
    sizes = ("batch", "channels", "spatial", "parts")
    names = ("x", "gamma", "batch_shift", "batch_mean", "batch_variance", "y", "eps", *sizes)
    return (
        Launch(grid, block, entry=entry, arguments=moments),
        Launch(-(-channels // 64), 64, entry="batch_statistics", arguments=statistics),
        Launch(last.grid, last.block, entry=last.entry, arguments=names),
    )


def reference_training(x, gamma, beta, running_mean, running_variance, eps, momentum, xp):
    """The running statistics and y: biased variance for y, unbiased for the running estimate."""
    axes = (0, 2, 3)
    mean = x.mean(axis=axes)
    squares = ((x - by_channel(mean)) ** 2).sum(axis=axes)
    count = x.size // max(1, x.shape[1])
    y = reference(x, gamma, beta, mean, squares / count, eps, xp)
    kept = 1 - momentum
    return kept * running_mean + momentum * mean, kept * running_variance + momentum * squares / (count - 1), y


def torch_training(torch, x, gamma, beta, running_mean, running_variance, eps, momentum, spatial):
    matrix, mean, variance = x.flatten(1) if spatial == 1 else x, running_mean.clone(), running_variance.clone()
    y = torch.nn.functional.batch_norm(matrix, mean, variance, gamma, beta, training=True, momentum=momentum, eps=eps)
    return mean, variance, y


IMAGE = "batch channels height width"
PARAMETERS = (
    In("gamma", "channels"), In("beta", "channels"), In("mean", "channels"),
    In("variance", "channels", fill=uniform(0.2, 2.0)),
)  # fmt: skip
SIZES = (Scalar("eps"), Size("batch", "int64"), Size("channels"), Size("spatial"), Size("parts"))

matrices = ((0, 5), (5, 0), (1, 1), (1037, 1), (1, 1037), (70, 6), (33, 130), (3, 1028))
images = ((2, 3, 1, 7), (3, 5, 4, 9), (2, 130, 2, 2), (1, 2, 40, 53), (2, 2, 36, 60), (0, 3, 4, 4), (2, 3, 0, 4))

far_means = Golden(
    Workload(batch=4, channels=4),
    inputs={
        "x": lambda: 1e4 + np.arange(16).reshape(4, 4, 1, 1) % 5,
        "gamma": 1,
        "beta": -0.5,
        "mean": 1e4 + 1,
        "variance": 4,
    },
    expected={},
    source="a mean of 10,001 with deviation 2: folding it into the shift would lose four digits",
)
odd_variances = Golden(
    Workload(batch=1, channels=4, eps=0.25),
    inputs={
        "x": np.array([3, 3, 3, np.nan]).reshape(1, 4, 1, 1),
        "gamma": 2,
        "beta": 1,
        "mean": 2,
        "variance": [0, -1, 2, 2],
    },
    expected={"y": np.array([5, np.nan, 1 + 2 / 1.5, np.nan]).reshape(1, 4, 1, 1)},
    source="by hand: variance 0 leaves eps, 2 / sqrt(0.25) + 1; below -eps NaN",
)


def noise_far_away(batch, channels, height, width):
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
        {"batch": 700, "channels": 3},
        {"batch": 3, "channels": 2, "height": 12, "width": 11},
    )
)
DERIVED = {"spatial": lambda height, width: height * width, "parts": lambda spatial: plane_block(spatial)[1]}

spec = KernelSpec(
    entry="batch_norm<4, false>",
    arguments=(In("x", IMAGE), *PARAMETERS, Out("y", IMAGE), *SIZES),
    parameters={"eps": 1e-5, "height": 1, "width": 1},
    derived=DERIVED,
    rules=(Rule("eps >= 0", lambda eps: eps >= 0),),
    launch=launch_of("batch_norm"),
    reference=reference,
    tolerance=normalising(),
    peers={"torch": torch_batch_norm},
    flops=lambda batch, channels, spatial: 3 * batch * channels * spatial + 4 * channels,
    workloads={
        "S0": Workload(batch=32, channels=128),
        "S1": Workload(batch=65_536, channels=1024),
        "S2": Workload(batch=256, channels=256, height=56, width=56),
    },
    edges=(
        *(Workload(batch=b, channels=c) for b, c in matrices),
        *(Workload(batch=b, channels=c, height=h, width=w) for b, c, h, w in images),
    ),
    golden=(far_means, odd_variances),
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
                InOut("running_variance", "channels", fill=uniform(0.2, 2.0)), Out("y", IMAGE),
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
                *(Workload(batch=b, channels=c) for b, c in ((5, 0), (2, 1), (1037, 1), (300, 6), (33, 130), (9, 260))),
                *(Workload(batch=b, channels=c, height=h, width=w) for b, c, h, w in images[:4]),
                Workload(batch=1, channels=3, height=2, width=4, momentum=1.0),
            ),
            golden=far_batches,
        ),
    },
)  # fmt: skip

"""Who launches the normalisation of batch_norm.cuh, its arguments, and data that its specs share."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Golden, In, Launch, Scalar, Size, Workload, uniform
from prism_bench.spec import AnyArray, ArrayModule, nonnegative

from ..arrays.columns import column_grid

# Memory-bound: 8 bytes an element at the copy rate; the rows of a thread share a fetch of the channels' parameters.
ROWS_PER_THREAD = 2
PLANE_THREADS = 128  # of a block, each with one group of four neighbours or one element

IMAGE = "batch channels height width"
PARAMETERS = (
    In("gamma", "channels"), In("beta", "channels"), In("mean", "channels"),
    In("variance", "channels", fill=uniform(0.2, 2.0), domain=nonnegative()),
)  # fmt: skip
SIZES = (Scalar("eps"), Size("batch", "int64"), Size("channels"), Size("spatial"))
DERIVED = {"spatial": lambda height, width: height * width}
WORKLOADS = {
    "S0": Workload(batch=32, channels=128),
    "S1": Workload(batch=65_536, channels=1024),
    "S2": Workload(batch=256, channels=256, height=56, width=56),
}
MATRICES = tuple(
    Workload(batch=b, channels=c)
    for b, c in ((0, 5), (5, 0), (1, 1), (1037, 1), (1, 1037), (70, 6), (33, 130), (3, 1028))
)
IMAGES = tuple(
    Workload(batch=b, channels=c, height=h, width=w)
    for b, c, h, w in ((2, 3, 1, 7), (3, 5, 4, 9), (2, 130, 2, 2), (1, 2, 40, 53), (2, 2, 36, 60), (0, 3, 4, 4),
                       (2, 3, 0, 4))
)  # fmt: skip


def launch_of(form: str) -> Callable[..., Any]:
    """Four columns, or neighbours in a plane, per thread where rows, or planes, are whole groups of four."""

    def launch(batch: int, channels: int, spatial: int) -> Launch:
        if spatial == 1:
            width = 4 if channels % 4 == 0 else 1
            return Launch(*column_grid(batch, channels, width, ROWS_PER_THREAD), entry=f"{form}<{width}, false>")
        width = 4 if spatial % 4 == 0 else 1
        groups = batch * channels * spatial // width
        return Launch(-(-groups // PLANE_THREADS), PLANE_THREADS, entry=f"{form}<{width}, true>")

    return launch


def by_channel(values: AnyArray) -> AnyArray:
    return values.reshape(1, -1, 1, 1)


def normalised(
    x: AnyArray, gamma: AnyArray, beta: AnyArray, mean: AnyArray, variance: AnyArray, eps: float, xp: ArrayModule
) -> AnyArray:
    scale = gamma / xp.sqrt(variance + eps)
    return (x - by_channel(mean)) * by_channel(scale) + by_channel(beta)


def torch_batch_norm(
    torch: ModuleType,
    x: AnyArray,
    gamma: AnyArray,
    beta: AnyArray,
    mean: AnyArray,
    variance: AnyArray,
    eps: float,
    spatial: int,
) -> Any:
    matrix = x.flatten(1) if spatial == 1 else x
    return torch.nn.functional.batch_norm(matrix, mean, variance, gamma, beta, training=False, eps=eps)


GOLDEN = (
    Golden(
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
    ),
    Golden(
        Workload(batch=1, channels=4, eps=0.25),
        inputs={
            "x": np.array([3, 3, 3, np.nan]).reshape(1, 4, 1, 1),
            "gamma": 2,
            "beta": 1,
            "mean": 2,
            "variance": [0, -1, 2, 2],
        },
        expected={"y": np.array([5, np.nan, 1 + 2 / 1.5, np.nan]).reshape(1, 4, 1, 1)},
        source="calculated: variance 0 leaves eps, 2 / sqrt(0.25) + 1; below -eps NaN",
    ),
)

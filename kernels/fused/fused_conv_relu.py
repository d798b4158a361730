"""max(W * X, 0): the cross-correlation of `conv2d` on one image, rectified in registers; NaN stays.

Memory-bound: a tap costs few operations for a pixel's bytes. The variant `channels` takes images of several channels,
with bias, dilation and groups; its operations limit it.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import Budget, Golden, KernelSpec, Variant, Workload, reduction
from prism_bench.spec import AnyArray, ArrayModule, Peer

from ..include.convolution.convolution import (
    DERIVED_ONE,
    ONE,
    RULES_ONE,
    correlated_channels,
    correlated_one,
    launch_one,
    magnitude_one,
    torch_channels,
    torch_shifts,
)
from ..include.convolution.convolution_window import in_floats, on_tensor_cores
from ..include.convolution.half_convolution import correlated_halves, in_halves, in_halves_by_maps, torch_halves
from ..peers.strong_peers import ready
from ..peers.torch_peers import in_tf32


def reference(
    x: AnyArray, taps: AnyArray, k: int, stride: int, padding: int, out_rows: int, out_cols: int, xp: ArrayModule
) -> AnyArray:
    return xp.maximum(correlated_one(x, taps, k, stride, padding, out_rows, out_cols, xp), 0)


def reference_channels(
    x: AnyArray,
    taps: AnyArray,
    bias: AnyArray,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
    out_rows: int,
    out_cols: int,
    xp: ArrayModule,
) -> AnyArray:
    y = correlated_channels(x, taps, bias, stride, padding, dilation, groups, out_rows, out_cols, xp)
    return xp.maximum(y, 0)


def torch_channels_relu(
    torch: ModuleType,
    x: AnyArray,
    taps: AnyArray,
    bias: AnyArray,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> Any:
    return torch.relu_(torch_channels(torch, x, taps, bias, stride, padding, dilation, groups))


def reference_halves(
    x: AnyArray,
    taps: AnyArray,
    bias: AnyArray,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
    out_rows: int,
    out_cols: int,
    xp: ArrayModule,
) -> AnyArray:
    return xp.maximum(correlated_halves(x, taps, bias, stride, padding, dilation, groups, out_rows, out_cols, xp), 0)


def torch_halves_relu(
    torch: ModuleType,
    x: AnyArray,
    taps: AnyArray,
    bias: AnyArray,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> Any:
    return torch.relu_(torch_halves(torch, x, taps, bias, stride, padding, dilation, groups))


def torch_conv_relu(torch: ModuleType, x: AnyArray, taps: AnyArray, stride: int, padding: int) -> Any:
    y = torch.nn.functional.conv2d(x[None, None], taps[None, None], stride=stride, padding=padding)
    return torch.relu_(y)[0, 0]


def torch_shifts_relu(torch: ModuleType, x: AnyArray, taps: AnyArray, stride: int, padding: int) -> Any:
    return torch.relu(torch_shifts(torch, x, taps, stride, padding))


def cudnn_relu(
    torch: ModuleType,
    x: Any,
    taps: Any,
    bias: Any,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> Callable[[], Any]:
    """cuDNN's convolution with bias and ReLU in one call, by its fastest algorithm."""
    return one_call(torch, (x, taps, bias), (stride, padding, dilation, groups), tf32=False)


def cudnn_relu_tf32(
    torch: ModuleType,
    x: Any,
    taps: Any,
    bias: Any,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> Callable[[], Any]:
    return one_call(torch, (x, taps, bias), (stride, padding, dilation, groups), tf32=True)


def cudnn_relu_halves(
    torch: ModuleType,
    x: Any,
    taps: Any,
    bias: Any,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> Callable[[], Any]:
    views = (x.permute(0, 3, 1, 2), taps.permute(0, 3, 1, 2), bias)
    call = one_call(torch, views, (stride, padding, dilation, groups), tf32=False)
    return lambda: call().permute(0, 2, 3, 1)


def one_call(torch: ModuleType, arrays: tuple[Any, Any, Any], sizes: tuple[int, ...], tf32: bool) -> Callable[[], Any]:
    """Return the call after cuDNN has tried its algorithms; `sizes` are stride, padding, dilation and groups."""
    *sides, groups = sizes
    pairs = [(side, side) for side in sides]

    def call() -> Any:
        with torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=tf32):
            return torch.cudnn_convolution_relu(*arrays, *pairs, groups)

    return ready(call)


def spotted(rows: int, cols: int) -> AnyArray:
    """Two pixels that are not finite."""
    x = np.random.default_rng(3).normal(size=(rows, cols))
    x[4, 5], x[9, 30] = np.nan, np.inf
    return x


def with_cudnn(variant: Variant, call: Callable[..., Any]) -> Variant:
    """Return the variant with cuDNN's fused call as a peer too."""
    peers = {**variant.changes["peers"], "torch_cudnn": Peer(call, prepares=True)}
    return Variant(variant.meaning, **{**variant.changes, "peers": peers})


TF32 = with_cudnn(on_tensor_cores("fused_conv_relu", reference_channels, in_tf32(torch_channels_relu)), cudnn_relu_tf32)
HALF = with_cudnn(in_halves("fused_conv_relu_half", reference_halves, torch_halves_relu), cudnn_relu_halves)

spec = KernelSpec(
    entry="fused_conv_relu<3, true>",
    arguments=ONE,
    parameters={"stride": 1, "padding": 1},
    derived=DERIVED_ONE,
    rules=RULES_ONE,
    launch=launch_one("fused_conv_relu"),
    reference=reference,
    tolerance=reduction(magnitude=magnitude_one),
    peers={
        "torch_shifts": torch_shifts_relu,
        "torch": Peer(torch_conv_relu, poor="cuDNN has no fast kernel for one channel in float32"),
    },
    flops=lambda k, out_rows, out_cols: (2 * k * k + 1) * out_rows * out_cols,
    workloads={"S0": Workload(rows=256, cols=256, k=3), "S1": Workload(rows=8192, cols=8192, k=3)},
    edges=(
        *(Workload(rows=1, cols=1, k=k, padding=p) for k, p in ((1, 0), (3, 1), (2, 1))),
        *(Workload(rows=31, cols=c, k=k, padding=k // 2) for k in (3, 5, 7) for c in (40, 131)),
        Workload(rows=30, cols=29, k=4, padding=2),
        Workload(rows=23, cols=41, k=3, stride=2),
        Workload(rows=0, cols=5, k=3, padding=2),
    ),
    golden=tuple(
        Golden(
            Workload(rows=20, cols=40, k=k, padding=k // 2),
            inputs={"x": spotted, "taps": np.full((k, k), -1.0)},
            expected={},
            source="NaN passes the maximum; windows with an infinity give 0 through negative taps",
        )
        for k in (3, 4, 5)
    ),
    budgets=(Budget("bandwidth_share", at_least=0.85, label="S1"),),
    variants={
        "channels": with_cudnn(
            in_floats("fused_conv_relu", reference_channels, torch_channels_relu), cudnn_relu
        ),
        "tf32": TF32,
        "half": HALF,
        "half_wgmma": in_halves_by_maps(HALF),
    },
)  # fmt: skip

"""Convolution of images in half precision, channels last: launches, sizes and data of half_convolution.cuh."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from prism_bench import In, Launch, Out, Rule, Size, Variant, normwise
from prism_bench.array_types import AnyArray, ArrayModule
from prism_bench.case import Device

from .convolution import (
    PARAMETERS,
    RULES,
    SIZES,
    channels,
    correlated_channels,
    images,
    span,
)

PIXELS = {"ManyPixels": (16, 32), "FewPixels": (8, 16)}  # rows and columns of a block's tile
DEPTH, CHANNELS, STAGES, MOST_SHARED = 64, 64, 4, 227 << 10

ARGUMENTS = (
    In("x", "batch rows cols channels_in", dtype="float16"),
    In("taps", "channels_out k_rows k_cols group_in", dtype="float16"),
    In("bias", "channels_out", dtype="float16"), Out("y", "batch out_rows out_cols channels_out", dtype="float16"),
    *(Size(name) for name in SIZES), Size("batch"),
)  # fmt: skip


def shared_bytes(tile: str, k_rows: int, k_cols: int, stride: int, dilation: int) -> int:
    """Eight rounds, stages of taps, and two windows of a tile's pixels."""
    height, width = (
        (count - 1) * stride + span(k, dilation) for count, k in zip(PIXELS[tile], (k_rows, k_cols), strict=True)
    )
    return 256 + 2 * DEPTH * (STAGES * CHANNELS + 2 * height * width)


def launch_of(name: str) -> Callable[..., Any]:
    """As many blocks as there are multiprocessors, with the larger tile where there are small ones for more."""

    def launch(
        batch: int,
        channels_out: int,
        groups: int,
        out_rows: int,
        out_cols: int,
        k_rows: int,
        k_cols: int,
        stride: int,
        dilation: int,
        pixel_tile: str,
        device: Device,
    ) -> Launch:
        def tiles(name: str) -> int:
            tall, wide = PIXELS[name]
            outputs = groups * -(-(channels_out // groups) // CHANNELS)
            return batch * -(-out_rows // tall) * -(-out_cols // wide) * outputs

        tile, window = pixel_tile, (k_rows, k_cols, stride, dilation)
        if tile == "auto":
            fits = shared_bytes("ManyPixels", *window) <= max(device.max_shared_bytes, 99 << 10)
            busy = tiles("FewPixels") > device.sm_count
            tile = "ManyPixels" if fits and busy else "FewPixels"
        grid = min(tiles(tile), device.sm_count)
        return Launch(grid, 256, shared=shared_bytes(tile, *window), entry=f"{name}<{tile}>")

    return launch


EIGHTS = (
    Rule("channels of a group in whole eights, in and out", lambda channels_in, channels_out, groups: (
        channels_in // groups % 8 == 0 and channels_out // groups % 8 == 0
    )),
    Rule("taps, stride and dilation whose window of 8 x 16 pixels stays on chip",
         lambda k_rows, k_cols, stride, dilation: (
             shared_bytes("FewPixels", k_rows, k_cols, stride, dilation) <= MOST_SHARED
         )),
)  # fmt: skip
EDGES = (
    images(0, 8, 8, 5, 5),
    images(1, 8, 8, 1, 1),
    images(2, 16, 24, 9, 7),
    images(3, 72, 80, 6, 6, k_rows=1, k_cols=1, padding=0),
    images(1, 136, 8, 10, 18),
    images(2, 8, 72, 8, 12, k_rows=2, k_cols=5, padding=2),
    images(2, 16, 32, 11, 13, groups=2, stride=2),
    images(1, 24, 24, 10, 12, groups=3, dilation=2, padding=2),
    images(1, 16, 8, 12, 9, stride=2, padding=4, dilation=3),
    images(2, 24, 16, 19, 40, pixel_tile="ManyPixels"),
    images(1, 72, 8, 33, 34, k_rows=1, k_cols=2, padding=0, pixel_tile="ManyPixels"),
)


def correlated_halves(
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
    planes, matrices = xp.transpose(x, (0, 3, 1, 2)), xp.transpose(taps, (0, 3, 1, 2))
    y = correlated_channels(planes, matrices, bias, stride, padding, dilation, groups, out_rows, out_cols, xp)
    return xp.transpose(y, (0, 2, 3, 1))


def torch_halves(
    torch: ModuleType,
    x: AnyArray,
    taps: AnyArray,
    bias: AnyArray,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> Any:
    """Views of the same memory: to PyTorch these are tensors in its channels-last format."""
    y = torch.nn.functional.conv2d(
        x.permute(0, 3, 1, 2), taps.permute(0, 3, 1, 2), bias, stride, padding, dilation, groups
    )
    return y.permute(0, 2, 3, 1)


def in_halves(name: str, reference: Callable[..., Any], peer: Callable[..., Any]) -> Variant:
    """Bound by arithmetic: warp-wide matrix instructions, whose rate is below that of warpgroups."""
    return channels(
        name, reference, peer, "half precision, channels last, on the tensor cores", entry=f"{name}<ManyPixels>",
        arguments=ARGUMENTS, launch=launch_of(name), tolerance=normwise(1e-3), arithmetic="tensor",
        parameters=PARAMETERS | {"pixel_tile": "auto"}, rules=(*RULES, *EIGHTS), edges=EDGES,
    )  # fmt: skip

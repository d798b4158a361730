"""Convolution of images in half precision, channels last: launches, sizes and data.

They are those of half_convolution.cuh and, by warpgroup instructions, of streamed_convolution.cuh.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from prism_bench import In, Launch, Out, Rule, Size, TensorMap, Variant, normwise
from prism_bench.spec import AnyArray, ArrayModule, Device

from ..tensor_cores.tensor_tile import WARPGROUPS
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


STREAMED, STREAMED_ROWS, STREAMED_COLS, STREAMED_STAGES = "StreamedPixels", 32, 8, 3


def streamed_bytes(channels_in: int, k_rows: int, k_cols: int, dilation: int) -> int:
    """The taps of 64 output channels, stages, two buffers of 64 pixels for each of two warpgroups, barriers."""
    taps = -(-channels_in // DEPTH) * k_rows * k_cols * CHANNELS * 2 * DEPTH
    window = (STREAMED_ROWS + span(k_rows, dilation) - 1) * STREAMED_COLS * 2 * DEPTH
    return 1024 + taps + STREAMED_STAGES * window + 4 * 64 * 2 * DEPTH + 64


def streamed_grid(pixel_tiles: int, outputs: int, device: Device) -> int:
    """Blocks that stay, as many for each 64 output channels."""
    return outputs * min(pixel_tiles, max(1, device.sm_count // outputs))


def suits_streamed(
    batch: int,
    channels_in: int,
    k_rows: int,
    k_cols: int,
    stride: int,
    dilation: int,
    groups: int,
    out_rows: int,
    out_cols: int,
) -> bool:
    """Whether tensor maps can bring the windows, and a block keeps its taps."""
    window = STREAMED_ROWS + span(k_rows, dilation) - 1
    fits = window <= 256 and streamed_bytes(channels_in, k_rows, k_cols, dilation) <= MOST_SHARED
    return stride == groups == 1 and min(batch, out_rows, out_cols) > 0 and fits


def launch_streamed(
    name: str,
    batch: int,
    channels_in: int,
    channels_out: int,
    out_rows: int,
    out_cols: int,
    k_rows: int,
    k_cols: int,
    dilation: int,
    device: Device,
) -> Launch:
    tiles = batch * -(-out_rows // STREAMED_ROWS) * -(-out_cols // STREAMED_COLS)
    maps = (
        TensorMap("x", box=(1, STREAMED_ROWS + span(k_rows, dilation) - 1, STREAMED_COLS, DEPTH)),
        TensorMap("taps", box=(CHANNELS, 1, 1, DEPTH)),
        TensorMap("y", box=(1, 8, STREAMED_COLS, CHANNELS)),
    )
    return Launch(
        streamed_grid(tiles, -(-channels_out // CHANNELS), device),
        384,
        shared=streamed_bytes(channels_in, k_rows, k_cols, dilation),
        entry=f"{name}_streamed<{STREAMED}>",
        maps=maps,
    )


def launch_of(name: str) -> Callable[..., Any]:
    """As many blocks as there are multiprocessors, with the larger tile where there are small ones for more.

    Warpgroups multiply many pixels where the device has their instructions.
    """

    def launch(
        batch: int,
        channels_in: int,
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
        many = device.compute_capability == 90 and tiles("ManyPixels") > device.sm_count
        room = streamed_bytes(channels_in, k_rows, k_cols, dilation) <= device.max_shared_bytes
        suits = room and suits_streamed(
            batch, channels_in, k_rows, k_cols, stride, dilation, groups, out_rows, out_cols
        )
        if room and (tile == STREAMED or (tile == "auto" and many and suits)):
            return launch_streamed(
                name, batch, channels_in, channels_out, out_rows, out_cols, k_rows, k_cols, dilation, device
            )
        if tile in ("auto", STREAMED):  # which a device of less shared memory does without
            fits = shared_bytes("ManyPixels", *window) <= max(device.max_shared_bytes, 99 << 10)
            busy = tiles("FewPixels") > device.sm_count
            tile = "ManyPixels" if fits and busy else "FewPixels"
        grid = min(tiles(tile), device.sm_count)
        return Launch(grid, 256, shared=shared_bytes(tile, *window), entry=f"{name}<{tile}>")

    return launch


EIGHTS = (
    Rule(f"pixel_tile is auto or one of {', '.join((*PIXELS, STREAMED))}",
         lambda pixel_tile: pixel_tile in ("auto", *PIXELS, STREAMED)),
    Rule(f"for {STREAMED} images and outputs, stride 1, one group, and taps that stay on chip",
         lambda pixel_tile, batch, channels_in, k_rows, k_cols, stride, dilation, groups, out_rows, out_cols: (
             pixel_tile != STREAMED or suits_streamed(
                 batch, channels_in, k_rows, k_cols, stride, dilation, groups, out_rows, out_cols))),
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
    """Bound by arithmetic where warps multiply, by memory where warpgroups do."""
    return channels(
        "half precision, channels last, on the tensor cores", reference, peer, entry=f"{name}<ManyPixels>",
        arguments=ARGUMENTS, launch=launch_of(name), tolerance=normwise(1e-3), arithmetic="tensor",
        parameters=PARAMETERS | {"pixel_tile": "auto"}, rules=(*RULES, *EIGHTS), edges=EDGES,
    )  # fmt: skip


# From one tile of one chunk of channels and one tap, over the ring, to ragged sizes and several tiles a block.
STREAMED_EDGES = (
    images(1, 64, 64, 32, 8, k_rows=1, k_cols=1, padding=0),
    images(1, 16, 64, 32, 8, k_rows=1, k_cols=1, padding=0),
    images(1, 64, 64, 32, 8, k_rows=3, k_cols=1, padding=0),
    images(1, 64, 64, 32, 8, k_rows=1, k_cols=3, padding=1),
    images(1, 64, 64, 32, 8),
    images(1, 8, 8, 1, 1),
    images(2, 16, 24, 9, 7),
    images(3, 72, 80, 6, 6, k_rows=1, k_cols=1, padding=0),
    images(2, 8, 72, 40, 19, k_rows=2, k_cols=5, padding=2),
    images(2, 24, 136, 33, 12, dilation=3, padding=4),
    images(5, 64, 64, 65, 130),
    images(2, 40, 200, 100, 60, padding=0),
)


def in_halves_by_maps(half: Variant) -> Variant:
    """The variant that is pinned to warpgroup instructions."""
    return Variant(
        "half precision by warpgroup instructions (wgmma), copied by the tensor memory accelerator, compute capability "
        "9.0 only",
        **{
            **half.changes,
            "parameters": PARAMETERS | {"pixel_tile": STREAMED},
            "edges": STREAMED_EDGES,
            "only_labels": ("S0",),
            "requires": WARPGROUPS,
            "budgets": (),
        },
    )

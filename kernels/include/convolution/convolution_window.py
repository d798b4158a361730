"""Convolution of images with 3 x 3 taps by windows in shared memory: which images get them, launches and edges.

They are those of convolution_window.cuh, and of float_window.cuh, tensor_window.cuh and warpgroup_window.cuh.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prism_bench import Launch, Requirement, Rule, Tune, Variant, Workload, normwise
from prism_bench.spec import Device

from ..tensor_cores.tensor_tile import WARPGROUPS
from .convolution import EDGES, RULES, channels, images, launch_of, launch_tf32, magnitude_channels

COLS, CHANNELS, STAGES, EIGHT = 32, 64, 3, 8  # columns and output channels of a block, stages, input channels of a step
LEAST_SHARED = 99 << 10  # of a block, on every device


@dataclass(frozen=True)
class Window:
    """A form: a tile's rows, threads, floats between channels of a window, floats of a step's taps.

    `rate` is what it reaches where the tiles without windows reach 1. They have a narrow form for 16 output channels or
    less if `narrow`, which does better there. `resident` blocks take tile after tile.
    """

    rows: int
    threads: int
    plane: int
    taps: int
    rate: float
    resident: bool = True
    narrow: bool = False
    warpgroups: bool = False

    def shared_bytes(self, channels_in: int) -> int:
        """By warpgroups all taps of 64 output channels, in 32 input channels each, barriers and 1 KiB to align to."""
        kept = -(-channels_in // 32) * 32 * 9 * CHANNELS if self.warpgroups else 0
        more = 1024 + 16 * STAGES if self.warpgroups else 0
        return 4 * (STAGES * (EIGHT * self.plane + self.taps) + kept) + more

    def tiles(self, batch: int, rows: int, cols: int) -> int:
        return batch * -(-rows // self.rows) * -(-cols // COLS)

    def suits(self, channels_in: int, channels_out: int, device: Device) -> bool:
        """Whether the device has the instructions and the shared memory."""
        there = device.compute_capability == 90 or not self.warpgroups
        shared = self.shared_bytes(channels_in) <= max(device.max_shared_bytes, LEAST_SHARED)
        return there and shared and (channels_out > 16 or not self.narrow)

    def launch(self, entry: str, sizes: tuple[int, ...], device: Device) -> Launch:
        batch, channels_in, channels_out, rows, cols = sizes
        outs, tiles = -(-channels_out // CHANNELS), self.tiles(batch, rows, cols)
        across = min(tiles, max(1, device.sm_count // max(1, outs))) if self.resident else tiles
        return Launch(
            (across, outs),
            self.threads,
            shared=self.shared_bytes(channels_in),
            entry=entry,
            arguments=("x", "taps", "bias", "y", "channels_in", "channels_out", "rows", "cols", "pixels"),
        )


WINDOWS = {
    "FloatWindow": Window(16, 256, 18 * 36, 72 * 68, 1.17, resident=False, narrow=True),
    "WarpgroupWindow": Window(16, 384, 728, 0, 4.1, warpgroups=True),
    "TallWindow": Window(16, 256, 728, 64 * 76, 2.5),
    "ShortWindow": Window(8, 256, 408, 64 * 76, 2.1),
}
IN_FLOATS, IN_TF32 = ("FloatWindow",), ("WarpgroupWindow", "TallWindow", "ShortWindow")


def windowed(
    channels_in: int, groups: int, cols: int, k_rows: int, k_cols: int, stride: int, padding: int, dilation: int
) -> bool:
    """Whether windows serve: 3 x 3 taps around each pixel, one group, and rows and channels copied in whole pieces."""
    usual = (k_rows, k_cols, stride, padding, dilation, groups) == (3, 3, 1, 1, 1, 1)
    return usual and channels_in > 0 and channels_in % EIGHT == cols % 4 == 0


def fastest(among: tuple[str, ...], sizes: tuple[int, ...], device: Device) -> str | None:
    """Return the form whose rounds over the multiprocessors take the least time; None where general tiles take less."""
    batch, channels_in, channels_out, rows, cols = sizes
    outs = -(-channels_out // CHANNELS)

    def time(name: str) -> float:
        window = WINDOWS[name]
        rounds = -(-window.tiles(batch, rows, cols) * outs // device.sm_count)
        return rounds * device.sm_count * window.rows * COLS / window.rate

    fitting = [name for name in among if WINDOWS[name].suits(channels_in, channels_out, device)]
    best = min(fitting, key=time, default=None)
    return best if best and time(best) <= batch * rows * cols * outs else None


def launch_by_windows(name: str, among: tuple[str, ...], general: Callable[..., Launch]) -> Callable[..., Any]:
    """The launch of a kernel by windows, or by the tiles for all images that `general` launches."""

    def launch(
        batch: int,
        channels_in: int,
        channels_out: int,
        groups: int,
        rows: int,
        cols: int,
        k_rows: int,
        k_cols: int,
        stride: int,
        padding: int,
        dilation: int,
        pixels: int,
        window: str,
        device: Device,
    ) -> Launch:
        sizes = (batch, channels_in, channels_out, rows, cols)
        can = windowed(channels_in, groups, cols, k_rows, k_cols, stride, padding, dilation)
        chosen = fastest(among, sizes, device) if window == "auto" and can else window
        if chosen in WINDOWS:
            return WINDOWS[chosen].launch(f"{name}_window<{chosen}>", sizes, device)
        return general(channels_out, groups, pixels)

    return launch


def possible(
    channels_in: int,
    channels_out: int,
    groups: int,
    cols: int,
    k_rows: int,
    k_cols: int,
    stride: int,
    padding: int,
    dilation: int,
    window: str,
    device: Device,
) -> bool:
    can = windowed(channels_in, groups, cols, k_rows, k_cols, stride, padding, dilation)
    return window not in WINDOWS or (can and WINDOWS[window].suits(channels_in, channels_out, device))


def required(window: str) -> Requirement | None:
    return WARPGROUPS if window == "WarpgroupWindow" else None


# From one tile and one step, over the ring of stages, to ragged sizes and several tiles a block.
SIZES = ((1, 8, 64, 16, 32), (1, 40, 64, 16, 32), (1, 8, 8, 1, 4), (2, 16, 70, 33, 36), (3, 24, 20, 9, 68))
LARGE = ((1, 64, 64, 16, 32), (3, 40, 72, 100, 200), (2, 64, 130, 70, 100))


def edges(among: tuple[str, ...]) -> tuple[Workload, ...]:
    """Pinned to each of the windows; large ones only where no emulator runs them."""
    return tuple(
        images(*sizes, window=name) for name in among for sizes in SIZES + (LARGE if WINDOWS[name].warpgroups else ())
    )


def by_windows(among: tuple[str, ...]) -> dict[str, Any]:
    """What a variant that may have these windows adds to one for images of several channels."""
    names = ("auto", "none", *among)
    return {
        "rules": (
            *RULES,
            Rule(f"window is one of {', '.join(names)}", lambda window: window in names),
            Rule("for a window 3 x 3 taps, stride 1, padding 1, no dilation, one group, eights of input channels and "
                 "fours of columns",
                 lambda channels_in, groups, cols, k_rows, k_cols, stride, padding, dilation, window: (
                     window not in WINDOWS
                     or windowed(channels_in, groups, cols, k_rows, k_cols, stride, padding, dilation))),
        ),
        "tune": Tune(window=names, rules=(Rule("a window that suits images, taps and device", possible),)),
        "edges": (*EDGES, *edges(among)),
    }  # fmt: skip


def in_floats(name: str, reference: Callable[..., Any], peer: Callable[..., Any]) -> Variant:
    """The variant in FP32."""
    return channels(
        "images of several channels, with bias",
        reference,
        peer,
        entry=f"{name}_channels<WideConvolution>",
        launch=launch_by_windows(name, IN_FLOATS, launch_of(f"{name}_channels")),
        **by_windows(IN_FLOATS),
    )


def on_tensor_cores(name: str, reference: Callable[..., Any], peer: Callable[..., Any]) -> Variant:
    """The variant with operands rounded to TF32.

    Without windows copies are of 4 bytes, as planes of shifted pixels are not aligned.
    """
    return channels(
        "on the tensor cores: operands rounded to TF32, FP32 sums",
        reference,
        peer,
        entry=f"{name}_tf32<TensorConvolution>",
        launch=launch_by_windows(name, IN_TF32, launch_tf32(f"{name}_tf32")),
        tolerance=normwise(1e-3, magnitude_channels, lambda group_in, k_rows, k_cols: group_in * k_rows * k_cols + 1),
        arithmetic="tf32",
        budgets=(),
        requires=required,
        **by_windows(IN_TF32),
    )

"""Convolutions by windows and warpgroups: what Python knows of their tiles is what kernels have, and who gets them."""

import re
from pathlib import Path

import pytest

from prism_bench import Workload
from prism_bench.spec.case import Case, Device
from tests.built_in import CATALOGUE

INCLUDE = Path(__file__).parents[2] / "kernels/include"
HOPPER = Device(sm_count=132, max_shared_bytes=227 << 10, compute_capability=90)
AMPERE = Device(sm_count=108, max_shared_bytes=163 << 10, compute_capability=80)
ADA = Device(sm_count=128, max_shared_bytes=99 << 10, compute_capability=89)


def constants(header, tile, known=()):
    """The whole numbers that the tile's struct names, sums and products of earlier ones and of `known` included."""
    opening = rf"struct {tile}(?: : \w+(?:<\w+>)?)?"
    body = re.search(rf"{opening} \{{(.*?)\n\}};", (INCLUDE / header).read_text(), re.DOTALL)[1]
    known = dict(known)
    for name, value in re.findall(r"\b([A-Z_]+) = ([\w +*%():-]+)[,;]", body):
        whole = value.replace("Base::", "")
        if set(re.findall(r"[A-Za-z_]\w*", whole)) <= set(known):
            known[name] = eval(whole, {}, known)  # noqa: S307 - the project's own source
    return known


def launch_of(kernel, device, label="S2", **changed):
    case = next(case for case in CATALOGUE.cases((kernel,)) if case.label == label)
    (step,) = case.plan.steps(device)
    return step


@pytest.mark.parametrize("kernel", ["conv2d:half", "fused_conv_relu:half"])
def test_windows_of_halves_are_those_of_the_kernel(kernel):
    tile = constants("convolution/streamed_convolution.cuh", "StreamedPixels")
    step = launch_of(kernel, HOPPER)
    boxes = {one.name: one.box for one in step.maps}
    window = tile["ROWS"] + 2
    assert boxes == {
        "x": (1, window, tile["COLS"], tile["DEPTH"]),
        "taps": (tile["CHANNELS"], 1, 1, tile["DEPTH"]),
        "y": (1, tile["STORED_ROWS"], tile["COLS"], tile["CHANNELS"]),
    }
    parts = 9 * tile["TAP"] + tile["STAGES"] * window * tile["LINE"] + 2 * tile["BUFFERS"] * tile["BOX"]
    assert 0 <= step.shared - (1024 + parts + 16 * tile["STAGES"] + 8) < 64
    assert step.block == tile["THREADS"]


@pytest.mark.parametrize("kernel", ["conv2d:half", "fused_conv_relu:half"])
def test_other_devices_multiply_by_warps(kernel):
    assert launch_of(kernel, AMPERE).maps == ()


WINDOWS = [
    ("fused_conv_relu:channels", "FloatWindow", ("convolution/float_window.cuh", "FloatWindow"), 4),
    ("fused_conv_relu:tf32", "TallWindow", ("convolution/tensor_window.cuh", "TensorWindow"), 4),
    ("fused_conv_relu:tf32", "ShortWindow", ("convolution/tensor_window.cuh", "TensorWindow"), 2),
    ("fused_conv_relu:tf32", "WarpgroupWindow", ("convolution/tensor_window.cuh", "TensorWindow"), 4),
]


@pytest.mark.parametrize(("kernel", "window", "place", "rows"), WINDOWS, ids=[one[1] for one in WINDOWS])
def test_windows_are_those_of_the_kernel(kernel, window, place, rows):
    tile = constants(*place, constants("convolution/convolution_window.cuh", "WindowTile", {"R": rows, "R_": rows}))
    shared = 4 * tile["STAGES"] * tile["STAGE"]
    if window == "WarpgroupWindow":
        tile = constants("convolution/warpgroup_window.cuh", window, tile)
        shared = 1024 + 4 * (2 * 9 * tile["HALF"] + tile["STAGES"] * tile["WINDOW"]) + 16 * tile["STAGES"]
    edges = [one for one in CATALOGUE.edges_of(kernel) if one.workload.get("window") == window]
    assert edges
    for edge in edges:
        (step,) = edge.plan.steps(HOPPER)
        assert step.entry.endswith(f"_window<{window}>")
        assert step.block == tile["THREADS"]
    (step,) = at_s2(kernel, window=window).plan.steps(HOPPER)
    assert step.shared == shared
    tiles = 32 * 224 // tile["ROWS"] * 224 // tile["COLS"]
    assert step.grid == (tiles if window == "FloatWindow" else HOPPER.sm_count, 1)


def at_s2(kernel, **changed):
    name, _, variant = kernel.partition(":")
    spec = CATALOGUE.kernels[name].with_variant(variant)
    return Case(spec, Workload(**{**spec.workloads["S2"], **changed}), "S2")


@pytest.mark.parametrize(
    ("kernel", "device", "expected"),
    [
        ("fused_conv_relu:tf32", HOPPER, "fused_conv_relu_window<WarpgroupWindow>"),
        ("fused_conv_relu:tf32", AMPERE, "fused_conv_relu_window<TallWindow>"),
        ("fused_conv_relu:tf32", ADA, "fused_conv_relu_window<ShortWindow>"),
        ("fused_conv_relu:channels", AMPERE, "fused_conv_relu_window<FloatWindow>"),
        ("conv2d:channels", HOPPER, "conv2d_window<FloatWindow>"),
        ("conv2d:channels", ADA, "conv2d_channels<WideConvolution>"),
    ],
)
def test_a_device_gets_the_window_that_it_can_hold(kernel, device, expected):
    assert launch_of(kernel, device).entry == expected


@pytest.mark.parametrize("kernel", ["fused_conv_relu:tf32", "fused_conv_relu:channels"])
@pytest.mark.parametrize(
    ("axis", "value"),
    [
        ("k_rows", 5),
        ("stride", 2),
        ("padding", 0),
        ("groups", 2),
        ("channels_in", 60),
        ("cols", 222),
        ("window", "none"),
    ],
)
def test_other_images_are_multiplied_without_windows(kernel, axis, value):
    (step,) = at_s2(kernel, **{axis: value}).plan.steps(HOPPER)
    assert "_window" not in step.entry


def test_taps_that_do_not_stay_on_chip_are_copied_with_each_window():
    (step,) = at_s2("fused_conv_relu:tf32", channels_in=128).plan.steps(HOPPER)
    assert step.entry == "fused_conv_relu_window<TallWindow>"


@pytest.mark.parametrize(
    ("kernel", "tile"), [("fused_conv_relu:tf32", "TensorConvolution"), ("conv2d:channels", "SlimConvolution")]
)
def test_few_pixels_are_multiplied_without_windows(kernel, tile):
    assert launch_of(kernel, HOPPER, "S0").entry.endswith(f"<{tile}>")

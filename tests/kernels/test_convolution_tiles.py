"""Convolutions by warpgroups: what Python knows of their tiles is what the kernels have, and who gets them."""

import re
from pathlib import Path

import pytest

from prism_bench.case import Device
from tests.built_in import CATALOGUE

INCLUDE = Path(__file__).parents[2] / "kernels/include"
HOPPER = Device(sm_count=132, max_shared_bytes=227 << 10, compute_capability=90)
AMPERE = Device(sm_count=108, max_shared_bytes=163 << 10, compute_capability=80)


def constants(header, tile):
    """The whole numbers that the tile's struct names, sums and products of earlier ones included."""
    body = re.search(rf"struct {tile} \{{(.*?)\n\}};", (INCLUDE / header).read_text(), re.DOTALL)[1]
    known = {}
    for name, value in re.findall(r"\b([A-Z_]+) = ([A-Z_\d +*-]+)[,;]", body):
        known[name] = eval(value, {}, known)  # noqa: S307 - the project's own source
    return known


def launch_of(kernel, device, label="S2", **changed):
    case = next(case for case in CATALOGUE.cases((kernel,)) if case.label == label)
    (step,) = case.plan.steps(device)
    return step


@pytest.mark.parametrize("kernel", ["conv2d:half", "fused_conv_relu:half"])
def test_windows_of_halves_are_those_of_the_kernel(kernel):
    tile = constants("streamed_convolution.cuh", "StreamedPixels")
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

"""e4m3 and e5m2 on the emulator and on a GPU: every pattern, and rounding against the tables of the specs' types."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from prism_bench.spec.dtypes import PRECISIONS
from tests.emulator.on_device import ON_DEVICE, build

SOURCE = Path(__file__).parent / "kernels" / "eight_bit.cu"
NAMES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
ENTRIES = [
    *(f"{name}<__nv_fp8_{kind}>" for kind in NAMES for name in ("widen", "narrow")),
    *(f"together<__nv_fp8x2_{kind}, __nv_fp8x4_{kind}>" for kind in NAMES),
    "unsaturated",
]
ALL = np.arange(256, dtype=np.uint8)
# Every finite half: each number of 8 bits, each midpoint of two, and the neighbours of both.
HALVES = np.arange(65536, dtype=np.uint16).view(np.float16)
VALUES = HALVES[np.isfinite(HALVES)].astype(np.float64)


@pytest.fixture(scope="module", params=["fast", "address", ON_DEVICE])
def module(request):
    with closing(build(SOURCE, ENTRIES, request.param)) as built:
        yield built


@pytest.fixture(params=NAMES)
def kind(request):
    return request.param


def run(module, entry, *arrays, n):
    report = module.launch(entry, -(-n // 256), 256, [*arrays, np.int32(n)])
    assert report.is_clean, str(report)


def rounded(kind, values):
    """The nearest pattern, with the largest number where it is beyond it, as CUDA's types have it."""
    precision = PRECISIONS[NAMES[kind]]
    return precision.narrowed(np.clip(values, -precision.largest, precision.largest))


def test_every_pattern_is_widened(module, kind):
    wide, half = np.zeros(256, np.float32), np.zeros(256, np.float16)
    run(module, f"widen<__nv_fp8_{kind}>", ALL, wide, half, n=256)
    expected = PRECISIONS[NAMES[kind]].values(ALL)
    np.testing.assert_array_equal(expected, wide)
    np.testing.assert_array_equal(expected, half)


def test_every_number_is_rounded_once_and_saturates(module, kind):
    bits = [np.zeros(VALUES.size, np.uint8) for _ in range(3)]
    run(module, f"narrow<__nv_fp8_{kind}>", VALUES, *bits, n=VALUES.size)
    for found in bits:
        np.testing.assert_array_equal(rounded(kind, VALUES), found)


def test_a_double_between_a_midpoint_and_its_float_is_rounded_once(module, kind):
    midpoint = 1.0625 if kind == "e4m3" else 1.125
    values = np.array([np.nextafter(midpoint, 2), midpoint, np.nextafter(midpoint, 0)])
    bits = [np.zeros(3, np.uint8) for _ in range(3)]
    run(module, f"narrow<__nv_fp8_{kind}>", values, *bits, n=3)
    first = int(rounded(kind, np.ones(1))[0])
    assert [first + 1, first, first] == bits[0].tolist()


def test_what_is_not_finite(module, kind):
    values = np.array([np.inf, -np.inf, np.nan])
    bits = [np.zeros(3, np.uint8) for _ in range(3)]
    run(module, f"narrow<__nv_fp8_{kind}>", values, *bits, n=3)
    largest = PRECISIONS[NAMES[kind]].largest
    for found in bits:
        wide = PRECISIONS[NAMES[kind]].values(found)
        assert [largest, -largest] == wide[:2].tolist()
        assert np.isnan(wide[2])


def test_without_saturation_what_overflows_is_nan_or_infinite(module):
    values = np.array([464, 464.1, -1e9, 61439, 61440, -np.inf], np.float32)
    e4m3, e5m2 = np.zeros(6, np.uint8), np.zeros(6, np.uint8)
    run(module, "unsaturated", values, e4m3, e5m2, n=6)
    wide, wider = PRECISIONS["float8_e4m3fn"].values(e4m3), PRECISIONS["float8_e5m2"].values(e5m2)
    assert wide[0] == 448
    assert np.isnan(wide[1:]).all()
    assert [448, 448, -np.inf, 57344, np.inf, -np.inf] == wider.tolist()


def test_pairs_and_fours_hold_the_same_patterns(module, kind):
    values = np.random.default_rng(0).normal(size=4096).astype(np.float32)
    pairs, fours, back = np.zeros(2048, np.uint16), np.zeros(1024, np.uint32), np.zeros(4096, np.float32)
    run(module, f"together<__nv_fp8x2_{kind}, __nv_fp8x4_{kind}>", values, pairs, fours, back, n=1024)
    expected = rounded(kind, values.astype(np.float64))
    np.testing.assert_array_equal(expected, pairs.view(np.uint8))
    np.testing.assert_array_equal(expected, fours.view(np.uint8))
    np.testing.assert_array_equal(PRECISIONS[NAMES[kind]].values(expected), back)

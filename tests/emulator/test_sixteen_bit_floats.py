"""half against NumPy's float16, on all patterns and on random ones; bfloat16 against rounded float64."""

from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.on_device import ON_DEVICE, build

SOURCE = Path(__file__).parent / "kernels" / "sixteen_bit.cu"
HALF, BFLOAT = "__half", "__nv_bfloat16"
_BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "maximum_nan", "saturated")
ALL = np.arange(65536, dtype=np.uint16)
PAIRS = 200_000


ENTRIES = [
    *(
        f"{name}<{kind}>"
        for kind in (HALF, BFLOAT)
        for name in (*_BINARY, "widen", "narrow", "narrow_double", "fused", "compare")
    ),
    "half_directed",
    "half_pairs",
]


@pytest.fixture(scope="module", params=["fast", "address", ON_DEVICE])
def module(request):
    with closing(build(SOURCE, ENTRIES, request.param)) as built:
        yield built


def run(module, entry, inputs, *outputs):
    n = len(inputs[0])
    report = module.launch(entry, -(-n // 256), 256, [*inputs, *outputs, np.int32(n)])
    assert report.is_clean, str(report)
    return outputs[0] if len(outputs) == 1 else outputs


def random_bits(seed):
    return np.random.default_rng(seed).integers(0, 65536, PAIRS).astype(np.uint16)


def bfloat_bits(values):
    """The nearest bfloat16, ties to even, of float64 values: an exact definition through integers of the last place."""
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.asarray(values, np.float64)
        exponent = np.maximum(np.frexp(wide)[1] - 1, -126)
        unit = np.ldexp(1.0, exponent - 7)
        rounded = np.where(np.isfinite(wide), np.rint(wide / unit) * unit, wide).astype(np.float32)
    return (rounded.view(np.uint32) >> 16).astype(np.uint16)


def bfloat_values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def assert_same(bits, expected, is_nan):
    """Equal bits, but any NaN for a NaN."""
    np.testing.assert_array_equal(is_nan(bits), is_nan(expected))
    numbers = ~is_nan(expected)
    np.testing.assert_array_equal(bits[numbers], expected[numbers])


def half_is_nan(bits):
    return (bits & 0x7FFF) > 0x7C00


def bfloat_is_nan(bits):
    return (bits & 0x7FFF) > 0x7F80


def as_half(values):
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(np.float16).view(np.uint16)


def test_every_half_widens_as_numpy_says(module):
    wide = run(module, f"widen<{HALF}>", [ALL], np.zeros(65536, np.float32))
    np.testing.assert_array_equal(wide, ALL.view(np.float16).astype(np.float32))


def test_every_half_survives_the_way_there_and_back(module):
    with np.errstate(invalid="ignore"):
        wide = ALL.view(np.float16).astype(np.float32)
    bits = run(module, f"narrow<{HALF}>", [wide], np.zeros(65536, np.uint16))
    assert_same(bits, ALL, half_is_nan)


def test_every_nan_becomes_the_devices(module):
    nans = np.array([0x7F800001, 0xFFC00000, 0x7FFFFFFF, 0xFF812345], np.uint32).view(np.float32)
    for kind in (HALF, BFLOAT):
        assert run(module, f"narrow<{kind}>", [nans], np.zeros(4, np.uint16)).tolist() == [0x7FFF] * 4


def test_half_rounds_random_floats_as_numpy_does(module):
    floats = np.random.default_rng(1).integers(0, 2**32, PAIRS).astype(np.uint32).view(np.float32)
    near = np.random.default_rng(2).normal(0, 1e-5, PAIRS).astype(np.float32)
    values = np.concatenate([floats, near, near * 1e9])
    bits = run(module, f"narrow<{HALF}>", [values], np.zeros(len(values), np.uint16))
    assert_same(bits, as_half(values), half_is_nan)


def test_half_rounds_doubles_once(module):
    # Just beside a tie, nearer than a float can tell: rounding to float first would go wrong.
    ties = (ALL[:0x7BFF].view(np.float16).astype(np.float64) + ALL[1:0x7C00].view(np.float16).astype(np.float64)) / 2
    values = np.concatenate([np.nextafter(ties, 1e9), np.nextafter(ties, 0), ties])
    bits = run(module, f"narrow_double<{HALF}>", [values], np.zeros(len(values), np.uint16))
    np.testing.assert_array_equal(bits, as_half(values))


@pytest.mark.parametrize(
    ("name", "operation"),
    [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide)],
)
def test_half_arithmetic_on_random_patterns(module, name, operation):
    x, y = random_bits(5), random_bits(6)
    bits = run(module, f"{name}<{HALF}>", [x, y], np.zeros(PAIRS, np.uint16))
    with np.errstate(all="ignore"):
        expected = operation(x.view(np.float16), y.view(np.float16)).view(np.uint16)
    assert_same(bits, expected, half_is_nan)


@pytest.mark.parametrize(
    ("name", "operation"),
    [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide)],
)
def test_bfloat_arithmetic_on_random_patterns(module, name, operation):
    x, y = random_bits(7), random_bits(8)
    bits = run(module, f"{name}<{BFLOAT}>", [x, y], np.zeros(PAIRS, np.uint16))
    with np.errstate(all="ignore"):
        exact = operation(bfloat_values(x).astype(np.float64), bfloat_values(y).astype(np.float64))
        nan = np.isnan(exact)
    assert_same(bits, np.where(nan, 0x7FFF, bfloat_bits(exact)).astype(np.uint16), bfloat_is_nan)


def test_every_bfloat_widens_and_returns(module):
    wide = run(module, f"widen<{BFLOAT}>", [ALL], np.zeros(65536, np.float32))
    np.testing.assert_array_equal(wide.view(np.uint32) >> 16, ALL)
    assert_same(run(module, f"narrow<{BFLOAT}>", [wide], np.zeros(65536, np.uint16)), ALL, bfloat_is_nan)


def test_half_fma_rounds_once(module):
    rng = np.random.default_rng(9)
    x, y, z = (
        rng.integers(0, 0x7C00, 3000).astype(np.uint16) | (rng.integers(0, 2, 3000) << 15).astype(np.uint16)
        for _ in range(3)
    )
    bits = run(module, f"fused<{HALF}>", [x, y, z], np.zeros(3000, np.uint16))
    a, b, c = (v.view(np.float16) for v in (x, y, z))
    for i in range(3000):
        exact = Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
        assert is_nearest_half(bits[i], exact), (a[i], b[i], c[i])


def is_nearest_half(bits, exact):
    """Whether no other half is nearer to the rational number; the largest stands for infinity too."""
    bits = int(bits)
    if bits & 0x7FFF == 0x7C00:
        return abs(exact) >= 65520
    value = Fraction(float(np.uint16(bits).view(np.float16)))
    neighbours = [np.uint16(bits + step) for step in (-1, 1) if (bits & 0x7FFF) + step in range(0x7C00)]
    return all(abs(value - exact) <= abs(Fraction(float(other.view(np.float16))) - exact) for other in neighbours)


def test_directed_conversions_bracket_the_value(module):
    values = np.random.default_rng(10).normal(0, 300, 20_000).astype(np.float32)
    down, up, zero = run(module, "half_directed", [values], *(np.zeros(20_000, np.uint16) for _ in range(3)))
    low, high = down.view(np.float16).astype(np.float64), up.view(np.float16).astype(np.float64)
    assert (low <= values).all() and (values <= high).all()
    np.testing.assert_array_equal(
        np.nextafter(down.view(np.float16), np.float16(np.inf))[low < high], up.view(np.float16)[low < high]
    )
    np.testing.assert_array_equal(zero, np.where(values > 0, down, up))


def test_maximum_ignores_nan_unless_told_otherwise(module):
    nan, one, two = 0x7E00, 0x3C00, 0x4000
    x, y = np.array([nan, one, nan, one], np.uint16), np.array([one, nan, nan, two], np.uint16)
    assert run(module, f"maximum<{HALF}>", [x, y], np.zeros(4, np.uint16)).tolist() == [one, one, 0x7FFF, two]
    assert run(module, f"maximum_nan<{HALF}>", [x, y], np.zeros(4, np.uint16)).tolist() == [0x7FFF, 0x7FFF, 0x7FFF, two]
    assert run(module, f"minimum<{HALF}>", [x, y], np.zeros(4, np.uint16)).tolist() == [one, one, 0x7FFF, one]


def test_saturation_stays_between_nought_and_one(module):
    values = np.array([0.25, 0.9, -3, np.nan], np.float16)
    total = run(module, f"saturated<{HALF}>", [values.view(np.uint16), values.view(np.uint16)], np.zeros(4, np.uint16))
    assert total.view(np.float16).tolist() == [0.5, 1, 0, 0]


@pytest.mark.parametrize(("kind", "widen"), [(HALF, lambda b: b.view(np.float16)), (BFLOAT, bfloat_values)])
def test_comparisons_and_their_unordered_kin(module, kind, widen):
    x, y = random_bits(11), random_bits(12)
    y[::7] = x[::7]
    bits = run(module, f"compare<{kind}>", [x, y], np.zeros(PAIRS, np.uint16))
    a, b = widen(x), widen(y)
    unordered = np.isnan(a) | np.isnan(b)
    ordered = [np.equal(a, b), np.not_equal(a, b), a < b, a <= b, a > b, a >= b]
    expected = sum((told & ~unordered).astype(np.uint16) << k for k, told in enumerate(ordered))
    expected += sum((told | unordered).astype(np.uint16) << (6 + k) for k, told in enumerate(ordered))
    np.testing.assert_array_equal(bits, expected)


def test_pairs_do_to_both_what_the_single_function_does(module):
    x, y = random_bits(13), random_bits(14)
    total, product = run(
        module,
        "half_pairs",
        [x.view(np.uint32), y.view(np.uint32)],
        np.zeros(PAIRS // 2, np.uint32),
        np.zeros(PAIRS // 2, np.uint32),
    )
    with np.errstate(all="ignore"):
        assert_same(total.view(np.uint16), (x.view(np.float16) + y.view(np.float16)).view(np.uint16), half_is_nan)
        expected = (x.view(np.float16) * y.view(np.float16)).view(np.uint16)
    assert_same(product.view(np.uint16), expected, half_is_nan)

"""Floating-point intrinsics: roundings against exact rational arithmetic, functions against SciPy in double."""

import re
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.special as special

from tests.emulator import documented_errors
from tests.emulator.on_device import ON_DEVICE, build, is_device

SOURCE = Path(__file__).parent / "kernels" / "float_functions.cu"
_TEXT = SOURCE.read_text()
_ROUNDED = [
    f"{kind}{name}_{mode}"
    for kind in "fd"
    for name in ("add", "sub", "mul", "div")
    for mode in ("rn", "rz", "ru", "rd")
]
ENTRIES = [
    *_ROUNDED,
    *re.findall(r"^(?:ONE|TWO|THREE)\((\w+)", _TEXT, re.MULTILINE),
    *re.findall(r"^__global__ void (\w+)", _TEXT, re.MULTILINE),
]
OPERATIONS = {"add": Fraction.__add__, "sub": Fraction.__sub__, "mul": Fraction.__mul__, "div": Fraction.__truediv__}


@pytest.fixture(scope="module", params=["fast", "address", ON_DEVICE])
def module(request):
    with closing(build(SOURCE, ENTRIES, request.param)) as built:
        yield built


def run(module, entry, inputs, *dtypes):
    n = len(inputs[0])
    outputs = [np.zeros(n, dtype) for dtype in dtypes]
    assert module.launch(entry, -(-n // 128), 128, [*inputs, *outputs, np.int32(n)]).is_clean
    return outputs[0] if len(outputs) == 1 else outputs


def is_rounded(value, exact, mode):
    """Whether `value` is the number of its type that `mode` picks for the rational number `exact`."""
    here = Fraction(float(value))
    down, up = (Fraction(float(np.nextafter(value, value.dtype.type(end)))) for end in (-np.inf, np.inf))
    if mode == "rz":
        mode = "rd" if exact >= 0 else "ru"
    if mode == "rd":
        return here <= exact < up
    if mode == "ru":
        return down < exact <= here
    return abs(here - exact) <= min(abs(down - exact), abs(up - exact))


def moderate(dtype, seed, n=300):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=n) * 2.0 ** rng.integers(-20, 20, n)).astype(dtype)


@pytest.mark.parametrize("name", _ROUNDED)
def test_arithmetic_rounds_as_named(module, name):
    dtype, operation, mode = {"f": np.float32, "d": np.float64}[name[0]], OPERATIONS[name[1:4]], name[-2:]
    a, b = moderate(dtype, 1), moderate(dtype, 2)
    values = run(module, name, [a, b], dtype)
    assert all(
        is_rounded(v, operation(Fraction(float(x)), Fraction(float(y))), mode)
        for v, x, y in zip(values, a, b, strict=True)
    )


@pytest.mark.parametrize("mode", ["rn", "rz", "ru", "rd"])
def test_fma_rounds_once(module, mode):
    a, b = moderate(np.float32, 3), moderate(np.float32, 4)
    c = (-a.astype(np.float64) * b).astype(np.float32)
    values = run(module, f"fma_{mode}", [a, b, c], np.float32)
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    assert all(is_rounded(v, e, mode) for v, e in zip(values, exact, strict=True))


@pytest.mark.parametrize(("mode", "rounding"), [("rn", np.rint), ("rz", np.trunc), ("ru", np.ceil), ("rd", np.floor)])
def test_conversion_to_int_rounds_and_saturates(module, mode, rounding):
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e30, -1e30, np.nan, np.inf, 2147483520, -2147483648], np.float32)
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num(rounding(x.astype(np.float64)), nan=0).clip(-(2**31), 2**31 - 1).astype(np.int32)
    np.testing.assert_array_equal(run(module, f"to_int_{mode}", [x], np.int32), expected)


def test_conversions_to_other_integers(module):
    x = np.array([-1.5, 3e9, 5e9, np.nan, 1.9, 1e19, -1e19], np.float32)
    assert run(module, "to_uint_rz", [x], np.uint32).tolist() == [0, 3_000_000_000, 2**32 - 1, 0, 1, 2**32 - 1, 0]
    expected = [-1, 3_000_000_000, 5_000_000_000, -(2**63), 1, 2**63 - 1, -(2**63)]
    assert run(module, "to_ll_rz", [x], np.int64).tolist() == expected
    assert run(module, "double_to_int_rz", [x.astype(np.float64)], np.int32).tolist() == [
        -1,
        2**31 - 1,
        2**31 - 1,
        -(2**31),
        1,
        2**31 - 1,
        -(2**31),
    ]


@pytest.mark.parametrize("mode", ["rn", "rz", "ru", "rd"])
def test_conversion_from_int_rounds_as_named(module, mode):
    x = np.random.default_rng(5).integers(-(2**31), 2**31, 500).astype(np.int32)
    values = run(module, f"from_int_{mode}", [x], np.float32)
    assert all(is_rounded(v, Fraction(int(i)), mode) for v, i in zip(values, x, strict=True))


@pytest.mark.parametrize("mode", ["rz", "ru"])
def test_conversion_from_double_rounds_as_named(module, mode):
    x = moderate(np.float64, 6)
    values = run(module, f"to_float_{mode}", [x], np.float32)
    assert all(is_rounded(v, Fraction(float(d)), mode) for v, d in zip(values, x, strict=True))


def spread(low, high, n=2001):
    return np.linspace(low, high, n)


FUNCTIONS = {
    "fast_exp": (np.exp, spread(-80, 80)),
    "fast_exp10": (lambda x: 10.0**x, spread(-30, 30)),
    "fast_log": (np.log, spread(0.01, 1000)),
    "fast_log2": (np.log2, spread(0.01, 1000)),
    "fast_log10": (np.log10, spread(0.01, 1000)),
    "fast_sin": (np.sin, spread(-3, 3)),
    "fast_cos": (np.cos, spread(-3, 3)),
    "fast_tan": (np.tan, spread(-1.5, 1.5)),
    "reciprocal_root": (lambda x: 1 / np.sqrt(x), spread(0.001, 1e6)),
    "rounded_reciprocal_root": (lambda x: 1 / np.sqrt(x), spread(0.001, 1e6)),
    "reciprocal_cube_root": (lambda x: 1 / np.cbrt(x), spread(0.001, 1e6)),
    "sine_of_pi": (lambda x: np.sin(np.pi * x), spread(-3.9, 3.9)),
    "cosine_of_pi": (lambda x: np.cos(np.pi * x), spread(-3.9, 3.9)),
    "error": (special.erf, spread(-4, 4)),
    "complementary_error": (special.erfc, spread(-4, 9)),
    "scaled_complementary_error": (special.erfcx, spread(-5, 100)),
    "inverse_error": (special.erfinv, spread(-0.99999, 0.99999)),
    "inverse_complementary_error": (special.erfcinv, np.concatenate([spread(0.001, 1.999), 10.0 ** -spread(1, 300)])),
    "normal": (special.ndtr, spread(-10, 10)),
    "inverse_normal": (special.ndtri, np.concatenate([spread(0.001, 0.999), 10.0 ** -spread(1, 300)])),
    "bessel_i0": (special.i0, spread(-20, 20)),
    "bessel_i1": (special.i1, spread(-20, 20)),
    "log_gamma": (special.gammaln, spread(0.1, 50)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_of_one_number(module, name):
    function, points = FUNCTIONS[name]
    is_double = re.search(rf"ONE\({name}, double", _TEXT)
    dtype = np.float64 if is_double else np.float32
    x = points.astype(dtype)
    expected = function(x.astype(np.float64))
    values = run(module, name, [x], dtype)
    if is_device(module) and name in documented_errors.FUNCTIONS:
        assert_within(values, expected, documented_errors.FUNCTIONS[name](x.astype(np.float64), expected))
        return
    relative = 5e-12 if is_double else 5e-7
    np.testing.assert_allclose(values, expected, rtol=relative, atol=relative * 0.1 if not is_double else 1e-15)


def assert_within(values, expected, bound):
    """Every value within its own bound, counted from the exact result."""
    excess = np.abs(values - expected) - bound
    assert excess.max() <= 0, f"{excess.max():.3g} beyond the documented error, at {int(excess.argmax())}"


def test_limits_of_inverse_functions(module):
    assert run(module, "inverse_error", [np.array([1.0, -1.0, 1.5, 0.0])], np.float64).tolist()[:2] == [np.inf, -np.inf]
    assert np.isnan(run(module, "inverse_error", [np.array([1.5])], np.float64)[0])
    assert run(module, "inverse_complementary_error", [np.array([0.0, 2.0, 1.0])], np.float64).tolist() == [
        np.inf,
        -np.inf,
        0,
    ]


def test_functions_of_several_numbers(module):
    a, b, c = (np.abs(moderate(np.float32, seed)) for seed in (7, 8, 9))
    wide = [v.astype(np.float64) for v in (a, b, c)]
    np.testing.assert_allclose(run(module, "fast_divide", [a, b], np.float32), wide[0] / wide[1], rtol=1e-6)
    small = np.clip(b, 0, 3)
    powers, expected = run(module, "fast_pow", [a, small], np.float32), wide[0] ** small.astype(np.float64)
    if is_device(module):
        assert_within(powers, expected, documented_errors.power(wide[0], small.astype(np.float64), expected))
    else:
        np.testing.assert_allclose(powers, expected, rtol=1e-6)
    np.testing.assert_allclose(
        run(module, "norm3", [a, b, c], np.float32), np.sqrt(sum(v * v for v in wide)), rtol=1e-6
    )
    np.testing.assert_allclose(run(module, "reciprocal_hypot", [a, b], np.float32), 1 / np.hypot(*wide[:2]), rtol=1e-6)


def test_sine_and_cosine_together(module):
    x = spread(-3, 3).astype(np.float32)
    for entry, scale in (("sine_and_cosine", 1), ("sine_and_cosine_of_pi", np.pi)):
        s, c = run(module, entry, [x], np.float32, np.float32)
        is_fast = is_device(module) and scale == 1
        sine, cosine = (documented_errors.SINE, documented_errors.COSINE) if is_fast else (2e-7, 2e-7)
        np.testing.assert_allclose(s, np.sin(scale * x.astype(np.float64)), atol=sine)
        np.testing.assert_allclose(c, np.cos(scale * x.astype(np.float64)), atol=cosine)


def test_whole_multiples_of_pi_are_exact(module):
    x = np.array([-2, -1, 0, 1, 2, 1e6, 0.5, 1.5, 2.5], np.float32)
    assert np.abs(run(module, "sine_of_pi", [x], np.float32)).tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1]
    assert run(module, "cosine_of_pi", [x], np.float32).tolist() == [1, -1, 1, -1, 1, 1, 0, 0, 0]


def test_extremes_return_the_number_beside_a_nan(module):
    a, b = np.array([1, np.nan, np.nan, 2], np.float32), np.array([np.nan, 1, np.nan, 3], np.float32)
    for entry, last in (("larger", 3), ("larger_overload", 3), ("smaller_overload", 2)):
        np.testing.assert_array_equal(
            run(module, entry, [a, b], np.float32), np.array([1, 1, np.nan, last], np.float32)
        )


def test_saturate_takes_nan_to_nought(module):
    x = np.array([-1, 0.25, 7, np.nan], np.float32)
    assert run(module, "saturated", [x], np.float32).tolist() == [0, 0.25, 1, 0]


def test_cached_accesses_move_whole_vectors(module):
    x = np.arange(32, dtype=np.float32)
    y = np.zeros_like(x)
    assert module.launch("cached_accesses", 1, 8, [x, y, np.int32(8)]).is_clean
    np.testing.assert_array_equal(y.reshape(-1, 4), x.reshape(-1, 4)[:, [1, 0, 3, 2]])

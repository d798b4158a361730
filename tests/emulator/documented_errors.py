"""How far the device's functions may be from their definitions: the error tables of the CUDA C++ Programming Guide.

Each bound takes the arguments and the exact result in double, and gives the largest absolute error. The tables count
units from the correctly rounded result, which itself is up to half a unit from the exact one. Functions that are
missing here keep the emulator's own bound on the device too.
"""

import numpy as np

SINE, COSINE = 2**-21.41, 2**-21.19  # __sinf and __cosf: largest absolute error within [-pi, pi]


def ulp(result):
    """The last place of a float as large as `result`."""
    return np.spacing(np.abs(result).astype(np.float32)).astype(np.float64)


def _near_one(absolute, ulps):
    """Logarithms: absolute within [0.5, 2], in units of the last place elsewhere."""
    return lambda x, result: np.where((x >= 0.5) & (x <= 2), absolute, (ulps + 0.5) * ulp(result))


def _growing(factor):
    """Exponentials: 2 + floor(|factor * x|) units of the last place."""
    return lambda x, result: (2.5 + np.floor(np.abs(factor * x))) * ulp(result)


def _units(count):
    return lambda x, result: (count + 0.5) * ulp(result)


def tangent(x, result):
    """__tanf is __sinf(x) * (1 / __cosf(x)): both errors carried through the quotient, and three roundings."""
    cosine = np.abs(np.cos(x)) - COSINE
    return (SINE + np.abs(result) * COSINE) / cosine + 3 * ulp(result)


def power(x, y, result):
    """__powf is exp2f(y * __log2f(x)): the exponent's error, times ln 2, and exp2f's 2 units."""
    logarithm = np.log2(x)
    exponent = np.abs(y) * FUNCTIONS["fast_log2"](x, logarithm) + 0.5 * ulp(y * logarithm)
    return np.abs(result) * np.expm1(np.log(2) * exponent) + 2 * ulp(result)


FUNCTIONS = {
    "fast_exp": _growing(1.173),
    "fast_exp10": _growing(2.97),
    "fast_log": _near_one(2**-21.41, 3),
    "fast_log2": _near_one(2**-22, 2),
    "fast_log10": _near_one(2**-24, 3),
    "fast_sin": lambda x, result: np.full_like(x, SINE),
    "fast_cos": lambda x, result: np.full_like(x, COSINE),
    "fast_tan": tangent,
    "reciprocal_root": _units(2),
    "reciprocal_cube_root": _units(1),
    "complementary_error": _units(4),
    "error": _units(2),
    "normal": _units(5),
    "log_gamma": _units(6),
}
DIVISION = _units(2)  # __fdividef, divisors within [2^-126, 2^126]

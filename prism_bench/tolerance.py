"""How far an output may be from its float64 reference, and the comparison itself.

The classes are those of the project's catalogue: exact, element-wise (ulp), normalising, reduction, product, normwise.
Arrays may live on NumPy or CuPy; the caller hands in the module that owns them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

UNIT_ROUNDOFF = {"float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
_SMALLEST_EXPONENT = {"float16": -24, "float32": -149, "float64": -1074}


@dataclass(frozen=True)
class Tolerance:
    """An element passes within the largest of its allowances; `normwise` bounds the whole output besides.

    `terms` is a share of `magnitude` (the sum of the absolute terms that made the element); both may be functions
    that ask for inputs and axes by name.
    """

    name: str
    relative: float = 0.0
    ulps: float = 0.0
    floor: float = 0.0
    floor_of_peak: float = 0.0
    terms: float | Callable = 0.0
    magnitude: Callable | None = None
    normwise: float | None = None

    def loosened(self, **changes) -> "Tolerance":
        """A copy with other allowances, for a variant whose arithmetic differs by design."""
        return replace(self, **changes)


def exact() -> Tolerance:
    """Bit-identical to the reference rounded to the output's dtype."""
    return Tolerance("exact")


def elementwise(ulps: float = 4, floor: float = 1e-7) -> Tolerance:
    """Within `ulps` units in the last place, or within `floor` near zero."""
    return Tolerance("elementwise", ulps=ulps, floor=floor)


def normalising() -> Tolerance:
    """Softmax and norms: 1e-5 relative, with a floor of 1e-6 of the largest output."""
    return Tolerance("normalising", relative=1e-5, floor_of_peak=1e-6)


def reduction(magnitude: Callable, terms: float = 1e-6) -> Tolerance:
    """Within `terms` of the sum of absolute terms; never relative to a sum that cancels."""
    return Tolerance("reduction", terms=terms, magnitude=magnitude)


def product(magnitude: Callable, depth: Callable) -> Tolerance:
    """FP32 products: 1e-5 normwise and gamma_K |A||B| componentwise, K from `depth` by name."""

    def gamma(**names):
        k_u = depth(**names) * UNIT_ROUNDOFF["float32"]
        return k_u / (1 - k_u)

    gamma.__signature__ = _signature(depth)
    return Tolerance("product", terms=gamma, magnitude=magnitude, normwise=1e-5)


def normwise(limit: float) -> Tolerance:
    """||actual - expected|| / ||expected|| at most `limit`: low-precision products."""
    return Tolerance("normwise", relative=float("inf"), normwise=limit)


def absolute(limit: float) -> Tolerance:
    """Within `limit` everywhere."""
    return Tolerance("absolute", floor=limit)


def _signature(function):
    from inspect import signature

    return signature(function)


@dataclass(frozen=True)
class Comparison:
    """What a comparison found: errors are absolute; `place` is the index of the worst element."""

    passed: bool
    compared: int
    differing: int
    max_error: float
    max_relative: float
    norm_error: float
    place: tuple[int, ...]
    actual: float
    expected: float


@np.errstate(over="ignore", invalid="ignore")  # infinities and NaN are values here
def compare(actual, expected, tolerance: Tolerance, xp, *, terms=0.0, magnitude=None) -> Comparison:
    """Compare an output with its reference; `terms` and `magnitude` are the tolerance's, already evaluated."""
    if actual.size == 0:
        return Comparison(True, 0, 0, 0.0, 0.0, 0.0, (), 0.0, 0.0)
    dtype = actual.dtype
    wanted = expected.astype(dtype) if tolerance.name == "exact" else expected
    wide = "float64" if dtype.kind == "f" else dtype
    got, want = actual.astype(wide), wanted.astype(wide)
    error = _error(got, want, xp)
    allowed = _allowed(want, dtype, tolerance, xp, terms=terms, magnitude=magnitude)
    bad = ~(error <= allowed)
    differing = int(bad.sum())
    worst = _worst(error, allowed, xp)
    norm = _norm_error(error, want, xp)
    within_norm = tolerance.normwise is None or norm <= tolerance.normwise
    magnitude_there = abs(float(want.reshape(-1)[worst]))
    worst_error = float(error.reshape(-1)[worst])
    return Comparison(
        passed=differing == 0 and within_norm,
        compared=int(actual.size),
        differing=differing,
        max_error=float(error.max()),
        max_relative=worst_error / magnitude_there if magnitude_there > 0 else worst_error,
        norm_error=norm,
        place=_unravel(worst, actual.shape),
        actual=float(got.reshape(-1)[worst]),
        expected=float(want.reshape(-1)[worst]),
    )


def _error(got, want, xp):
    """|got - want|; 0 where both are NaN or the same infinity, infinite where only one is."""
    if got.dtype.kind != "f":
        apart = xp.abs(got.astype("float64") - want.astype("float64"))
        return xp.where(got == want, 0.0, xp.maximum(apart, 1.0))  # a float64 cannot tell all 64-bit integers apart
    same = (got == want) | (xp.isnan(got) & xp.isnan(want))
    finite = xp.isfinite(got) & xp.isfinite(want)
    difference = xp.abs(xp.where(finite, got, 0.0) - xp.where(finite, want, 0.0))
    return xp.where(same, 0.0, xp.where(finite, difference, xp.inf))


def _allowed(want, dtype, tolerance, xp, *, terms, magnitude):
    if want.dtype.kind != "f":
        return xp.full(want.shape, tolerance.floor)
    size = xp.where(xp.isfinite(want), xp.abs(want), 0.0)
    if tolerance.relative == float("inf"):
        return xp.where(xp.isfinite(want), xp.inf, 0.0)
    rounding = 2.0 ** (_SMALLEST_EXPONENT[dtype.name] - 1)  # no number of this type can be nearer to what underflows
    allowed = xp.maximum(tolerance.relative * size, max(tolerance.floor, rounding))
    allowed = xp.maximum(allowed, tolerance.floor_of_peak * size.max())
    if tolerance.ulps:
        allowed = xp.maximum(allowed, tolerance.ulps * _ulp(size, dtype, xp))
    if magnitude is not None:
        summed = terms * xp.broadcast_to(xp.asarray(magnitude), want.shape)
        allowed = xp.maximum(allowed, xp.where(xp.isfinite(summed), summed, 0.0))
    return allowed


def _ulp(size, dtype, xp):
    """The gap to the next float of `dtype` above `size`."""
    digits = {"float16": 11, "float32": 24, "float64": 53}[dtype.name]
    smallest = _SMALLEST_EXPONENT[dtype.name]
    exponent = xp.where(size > 0, xp.frexp(size)[1] - digits, smallest)
    return xp.ldexp(1.0, xp.maximum(exponent, smallest))


def _worst(error, allowed, xp):
    """The flat index of the element that most exceeds its allowance, or has the largest error."""
    over = (error / xp.where(allowed > 0, allowed, 1e-30)).reshape(-1)
    finite = xp.where(xp.isnan(over), 0.0, over)
    return int(finite.argmax()) if float(finite.max()) > 0 else int(error.reshape(-1).argmax())


def _norm_error(error, want, xp):
    if want.dtype.kind != "f":
        return 0.0
    finite = xp.isfinite(want)
    scale = float(xp.sqrt((xp.where(finite, want, 0.0) ** 2).sum()))
    total = float(xp.sqrt((xp.where(finite, error, 0.0) ** 2).sum()))
    return total / scale if scale > 0 else total


def _unravel(flat, shape):
    place = []
    for extent in reversed(shape):
        place.append(flat % extent)
        flat //= extent
    return tuple(reversed(place))

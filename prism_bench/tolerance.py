"""How far an output may be from its float64 reference, and the comparison itself.

The classes are those of the project's catalogue: exact, element-wise (ulp), normalising, reduction, product, normwise.
Arrays may live on NumPy or CuPy; the caller hands in the module that owns them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

UNIT_ROUNDOFF = {"float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
PIECE = 1 << 26  # elements compared at a time: half a gigabyte for each float64 copy
_SMALLEST_EXPONENT = {"float16": -24, "float32": -149, "float64": -1074}


@dataclass(frozen=True)
class Tolerance:
    """An element passes within the largest of its allowances; `normwise` bounds the whole output besides.

    `underflows` are the products that make an element: each is off by half of the smallest number where it underflows.
    `period` is a turn of what goes in a circle: an error of a whole turn is none.

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
    underflows: float | Callable = 0.0
    period: float | None = None

    def loosened(self, **changes) -> "Tolerance":
        """A copy with other allowances, for a variant whose arithmetic differs by design."""
        return replace(self, **changes)


def exact() -> Tolerance:
    """Bit-identical to the reference rounded to the output's dtype."""
    return Tolerance("exact")


def exact_except(where: Callable) -> Tolerance:
    """Bit-identical but for elements for which `where` (asks for inputs and axes by name) is true.

    For labels: a value that lies on a cut as far as rounding can tell may go either way.
    """
    return Tolerance("exact except", terms=float("inf"), magnitude=where)


def elementwise(ulps: float = 4, floor: float = 1e-7) -> Tolerance:
    """Within `ulps` units in the last place, or within `floor` near zero."""
    return Tolerance("elementwise", ulps=ulps, floor=floor)


def normalising() -> Tolerance:
    """Softmax and norms: 1e-5 relative, with a floor of 1e-6 of the largest output."""
    return Tolerance("normalising", relative=1e-5, floor_of_peak=1e-6)


def reduction(magnitude: Callable, terms: float | Callable = 1e-6, underflows: float | Callable = 0.0) -> Tolerance:
    """Within `terms` of the sum of absolute terms, and of what `underflows` products may lose; never relative to a sum
    that cancels."""
    return Tolerance("reduction", terms=terms, magnitude=magnitude, underflows=underflows)


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


@dataclass(frozen=True)
class _Part:
    """What a comparison found in one piece of the output; `excess` is the worst error over its allowance."""

    differing: int
    max_error: float
    squared_error: float
    squared_size: float
    excess: float
    worst: int
    actual: float
    expected: float
    error: float


@np.errstate(over="ignore", invalid="ignore")  # infinities and NaN are values here
def compare(actual, expected, tolerance: Tolerance, xp, *, terms=0.0, magnitude=None) -> Comparison:
    """Compare an output with its reference; `terms` and `magnitude` are the tolerance's, already evaluated.

    Goes through the output in pieces of `PIECE` elements: float64 copies of all of it may not fit beside it.
    """
    if actual.size == 0:
        return Comparison(True, 0, 0, 0.0, 0.0, 0.0, (), 0.0, 0.0)
    got, want = actual.reshape(-1), expected.reshape(-1)
    limits = _Limits(tolerance, terms, _flat(magnitude, expected.shape, xp), _peak(want, tolerance, xp))
    parts = [_part(got, want, slice(at, at + PIECE), limits, xp) for at in range(0, got.size, PIECE)]
    worst = max(parts, key=lambda part: (part.excess, part.error))
    differing, norm = sum(part.differing for part in parts), _norm_error(parts)
    return Comparison(
        passed=differing == 0 and (tolerance.normwise is None or norm <= tolerance.normwise),
        compared=int(actual.size),
        differing=differing,
        max_error=max(part.max_error for part in parts),
        max_relative=worst.error / abs(worst.expected) if abs(worst.expected) > 0 else worst.error,
        norm_error=norm,
        place=_unravel(worst.worst, actual.shape),
        actual=worst.actual,
        expected=worst.expected,
    )


@dataclass(frozen=True)
class _Limits:
    """A tolerance with what it needs evaluated: `magnitude` flat, `peak` the largest finite size of the reference."""

    tolerance: Tolerance
    terms: float
    magnitude: object
    peak: float


def _part(actual, expected, piece, limits, xp):
    dtype = actual.dtype
    wanted = expected[piece].astype(dtype) if limits.tolerance.name.startswith("exact") else expected[piece]
    wide = "float64" if dtype.kind == "f" else dtype
    got, want = _overflown(actual[piece].astype(wide), wanted.astype(wide), dtype, xp)
    error = _around(_error(got, want, xp), limits.tolerance.period, xp)
    allowed = _allowed(want, dtype, limits, piece, xp)
    at, excess = _worst(error, allowed, xp)
    squares = _squares(xp.maximum(error - underflow(dtype), 0.0), want, xp)
    return _Part(
        differing=int((~(error <= allowed)).sum()), max_error=float(error.max()), squared_error=squares[0],
        squared_size=squares[1], excess=excess, worst=piece.start + at, actual=float(got[at]), expected=float(want[at]),
        error=float(error[at]),
    )  # fmt: skip


def _flat(magnitude, shape, xp):
    """The magnitude of every element, flat; a single number stays one."""
    if magnitude is None or getattr(magnitude, "size", 1) == 1:
        return magnitude if magnitude is None else xp.asarray(magnitude).reshape(1)
    return xp.broadcast_to(xp.asarray(magnitude), shape).reshape(-1)


def _peak(want, tolerance, xp):
    if not tolerance.floor_of_peak:
        return 0.0
    pieces = [want[at : at + PIECE] for at in range(0, want.size, PIECE)]
    return max(float(xp.where(xp.isfinite(one), xp.abs(one), 0.0).max()) for one in pieces)


def _overflown(got, want, dtype, xp):
    """Both with what the type cannot hold in the place of the infinity that it is rounded to, from the least number
    on that is; an infinity in the reference itself stays one, and only that is equal to it.
    """
    if dtype.kind != "f":
        return got, want
    most = float(np.finfo(dtype).max) * (1 + UNIT_ROUNDOFF[dtype.name] if dtype.name != "float64" else 1)
    finite = xp.isfinite(want)
    rounded = xp.where(finite & xp.isinf(got), xp.copysign(most, got), got)
    return rounded, xp.where(finite, xp.clip(want, -most, most), want)


def underflow(dtype) -> float:
    """Half of the smallest number of the type, as near as one can be to what underflows; 0 for integers."""
    return 2.0 ** (_SMALLEST_EXPONENT[dtype.name] - 1) if dtype.kind == "f" else 0.0


def _error(got, want, xp):
    """|got - want|; 0 where both are NaN or the same infinity, infinite where only one is."""
    if got.dtype.kind != "f":
        apart = xp.abs(got.astype("float64") - want.astype("float64"))
        return xp.where(got == want, 0.0, xp.maximum(apart, 1.0))  # a float64 cannot tell all 64-bit integers apart
    same = (got == want) | (xp.isnan(got) & xp.isnan(want))
    finite = xp.isfinite(got) & xp.isfinite(want)
    difference = xp.abs(xp.where(finite, got, 0.0) - xp.where(finite, want, 0.0))
    return xp.where(same, 0.0, xp.where(finite, difference, xp.inf))


def _around(error, period, xp):
    """The error the shorter way round."""
    return error if period is None else xp.where(xp.isfinite(error), xp.minimum(error, xp.abs(period - error)), error)


def _allowed(want, dtype, limits, piece, xp):
    tolerance = limits.tolerance
    if tolerance.name == "exact except":
        return xp.where(limits.magnitude[piece], limits.terms, 0.0)
    if want.dtype.kind != "f":
        return xp.full(want.shape, tolerance.floor)
    size = xp.where(xp.isfinite(want), xp.abs(want), 0.0)
    if tolerance.relative == float("inf"):
        return xp.where(xp.isfinite(want), xp.inf, 0.0)
    allowed = xp.maximum(tolerance.relative * size, max(tolerance.floor, underflow(dtype)))
    allowed = xp.maximum(allowed, tolerance.floor_of_peak * limits.peak)
    if tolerance.ulps:
        allowed = xp.maximum(allowed, tolerance.ulps * _ulp(size, dtype, xp))
    if limits.magnitude is not None:
        summed = limits.terms * (limits.magnitude if limits.magnitude.size == 1 else limits.magnitude[piece])
        allowed = xp.maximum(allowed, xp.where(xp.isfinite(summed), summed, 0.0))
    return allowed


def _ulp(size, dtype, xp):
    """The gap to the next float of `dtype` above `size`."""
    digits = {"float16": 11, "float32": 24, "float64": 53}[dtype.name]
    smallest = _SMALLEST_EXPONENT[dtype.name]
    exponent = xp.where(size > 0, xp.frexp(size)[1] - digits, smallest)
    return xp.ldexp(1.0, xp.maximum(exponent, smallest))


def _worst(error, allowed, xp):
    """The index of the element that most exceeds its allowance, or has the largest error; and the excess."""
    over = error / xp.where(allowed > 0, allowed, 1e-30)
    finite = xp.where(xp.isnan(over), 0.0, over)
    at = int(finite.argmax())
    excess = float(finite[at])
    return (at, excess) if excess > 0 else (int(error.argmax()), 0.0)


def _squares(error, want, xp):
    """The sums of squares of error and reference over what is finite in the reference."""
    if want.dtype.kind != "f":
        return 0.0, 0.0
    finite = xp.isfinite(want)
    return tuple(float((xp.where(finite, values, 0.0) ** 2).sum()) for values in (error, want))


def _norm_error(parts):
    scale = sum(part.squared_size for part in parts) ** 0.5
    total = sum(part.squared_error for part in parts) ** 0.5
    return total / scale if scale > 0 else total


def _unravel(flat, shape):
    place = []
    for extent in reversed(shape):
        place.append(flat % extent)
        flat //= extent
    return tuple(reversed(place))

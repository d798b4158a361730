"""Tolerances: how far an output may be from its float64 reference, and the comparison with it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np

from prism_bench.spec.dtypes import UNIT_ROUNDOFF, Precision, precision_of, stored, values_of
from prism_bench.spec.inputs import AnyArray, ArrayModule
from prism_bench.spec.kinds import Noun, checked

# Tolerances: how far an output may be from its float64 reference, and the comparison with it.
#
# The classes are those of the project's catalogue: exact, element-wise (ulp), normalising, reduction, product,
# normwise. In comparisons arrays belong to NumPy or CuPy; the caller passes the module that owns them.


@dataclass(frozen=True)
class Tolerance(Noun):
    """Allowances: an element passes within the largest of them; `normwise` also bounds the whole output.

    `underflows` are the products that make an element: each is off by half of the smallest number where it underflows.
    `period` is a turn of an angle: a whole turn is no error.

    `share` is the most of the elements that may differ at all, one always may; the others are exact.

    `among` is for indices: it returns the rows that they select from. Of equal elements of a row either index is right.

    `terms` is a share of `magnitude` (the sum of the absolute terms that made the element); both may be functions
    that ask for inputs and axes by name.

    `depth` is the number of those terms, by name too. With it the norm of the reference counts as at least
    ||magnitude|| / sqrt(depth): by Cauchy and Schwarz, no more than its root mean square over all signs of the terms.
    So a result of few elements that happens to cancel is not held to the rounding of its last digits. Values that a
    regime or golden data choose are not independent, and lose alike: for them the depth counts as 1.
    """

    name: str
    relative: float = 0.0
    ulps: float = 0.0
    floor: float = 0.0
    floor_of_peak: float = 0.0
    terms: float | Callable[..., Any] = 0.0
    magnitude: Callable[..., Any] | None = None
    depth: Callable[..., float] | None = None
    normwise: float | None = None
    underflows: float | Callable[..., Any] = 0.0
    period: float | None = None
    among: Callable[..., Any] | None = None
    share: float = 1.0

    def loosened(self, **changes: Any) -> "Tolerance":
        """Return a copy with other allowances, for a variant whose arithmetic differs by design."""
        return replace(self, **changes)


def exact() -> Tolerance:
    """Return a tolerance for outputs that are bit-identical to the reference, rounded to the output's dtype."""
    return Tolerance("exact")


def exact_except(where: Callable[..., Any]) -> Tolerance:
    """Return the same but for elements for which `where` (asks for inputs and axes by name) is true.

    For labels: a value that is on a cut within rounding may go either way.
    """
    return Tolerance("exact except", terms=float("inf"), magnitude=where)


def selection(among: Callable[..., Any]) -> Tolerance:
    """Return a tolerance for indices that select from the rows of `among`: exact, but equal elements change places."""
    return Tolerance("exact selection", among=among)


def elementwise(ulps: float = 4, floor: float = 1e-7) -> Tolerance:
    """Return a tolerance of `ulps` units in the last place, or of `floor` near zero."""
    return Tolerance("elementwise", ulps=ulps, floor=floor)


def normalising() -> Tolerance:
    """Return a tolerance for softmax and norms: 1e-5 relative, and at least 1e-6 of the largest output."""
    return Tolerance("normalising", relative=1e-5, floor_of_peak=1e-6)


def reduction(
    magnitude: Callable[..., Any],
    terms: float | Callable[..., Any] = 1e-6,
    underflows: float | Callable[..., Any] = 0.0,
) -> Tolerance:
    """Return a tolerance of `terms` of the sum of absolute terms, never relative to a sum that cancels.

    `underflows` products may each lose what underflows.
    """
    return Tolerance("reduction", terms=terms, magnitude=magnitude, underflows=underflows)


@checked
def product(magnitude: Callable[..., Any], depth: Callable[..., float]) -> Tolerance:
    """Return a tolerance for FP32 products: 1e-5 normwise and gamma_K |A||B| componentwise, K from `depth` by name."""

    def gamma(**names: Any) -> float:
        k_u = depth(**names) * UNIT_ROUNDOFF["float32"]
        return k_u / (1 - k_u)

    setattr(gamma, "__signature__", signature(depth))  # noqa: B010 - a function type has no such attribute
    return Tolerance("product", terms=gamma, magnitude=magnitude, depth=depth, normwise=1e-5)


@checked
def normwise(
    limit: float, magnitude: Callable[..., Any] | None = None, depth: Callable[..., float] | None = None
) -> Tolerance:
    """Return a tolerance of ||actual - expected|| / ||expected|| at most `limit`, for low-precision products.

    With `magnitude` and `depth` the divisor is at least ||magnitude|| / sqrt(depth), as in `Tolerance`.
    """
    return Tolerance("normwise", relative=float("inf"), magnitude=magnitude, depth=depth, normwise=limit)


def absolute(limit: float, share: float = 1.0) -> Tolerance:
    """Return a tolerance of `limit` everywhere, or in at most a `share` of the elements.

    For floats rounded to integers: rounding is monotone, so a float that is off by less than 1 changes its integer by
    1 at most, and only near a cut.
    """
    return Tolerance("absolute", floor=limit, share=share)


def underflow(precision: Precision | None) -> float:
    """Return half of the smallest number of the format, the largest error of what underflows; 0 for integers."""
    return 2.0 ** (precision.smallest - 1) if precision else 0.0


_PIECE = 1 << 26  # elements compared at a time on a device: half a gigabyte for each float64 copy
HOST_PIECE = 1 << 15  # on the host, where the copies then stay in a core's cache


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison: errors are absolute; `place` is the index of the worst element.

    `norm_error` is ||actual - expected|| over the norm of the reference, which `Tolerance.depth` bounds from below.
    """

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
class _PieceResult:
    """Result of one piece of the output; `excess` is the worst error over its allowance."""

    differing: int
    unequal: int
    max_error: float
    squared_error: float
    squared_size: float
    excess: float
    worst: int
    actual: float
    expected: float
    error: float


@np.errstate(over="ignore", invalid="ignore")  # infinities and NaN are values here
def compare(
    actual: AnyArray,
    expected: AnyArray,
    tolerance: Tolerance,
    xp: ArrayModule,
    *,
    terms: Any = 0.0,
    magnitude: AnyArray = None,
    depth: float = 0.0,
    dtype: str = "",
) -> Comparison:
    """Compare an output with its reference; `terms`, `magnitude` and `depth` are the tolerance's, already evaluated.

    `dtype` is the type of the output's elements where the array has their bits. Floats are compared in float64. The
    output is read in pieces: float64 copies of all of it may not fit into memory with it.
    """
    dtype = dtype or actual.dtype.name
    if actual.size == 0:
        return Comparison(True, 0, 0, 0.0, 0.0, 0.0, (), 0.0, 0.0)
    got, want = actual.reshape(-1), expected.reshape(-1)
    flat = _flat(magnitude, expected.shape, xp)
    peak = _peak(want, tolerance, xp)
    step = HOST_PIECE if xp is np else _PIECE
    pieces = [slice(at, at + step) for at in range(0, got.size, step)]
    limits = {"terms": terms, "magnitude": flat, "peak": peak}
    parts = [_part(got, want, piece, tolerance, xp, dtype=dtype, **limits) for piece in pieces]
    worst = max(parts, key=lambda part: (part.excess, part.error))
    differing, unequal = sum(part.differing for part in parts), sum(part.unequal for part in parts)
    if unequal > max(1, tolerance.share * got.size):
        differing = unequal
    norm = _norm_error(parts, _least_norm(flat, depth, got.size, xp))
    return Comparison(
        passed=differing == 0 and (tolerance.normwise is None or norm <= tolerance.normwise),
        compared=int(actual.size),
        differing=differing,
        max_error=max(part.max_error for part in parts),
        max_relative=worst.error / abs(worst.expected) if abs(worst.expected) > 0 else worst.error,
        norm_error=norm,
        place=tuple(map(int, np.unravel_index(worst.worst, actual.shape))),
        actual=worst.actual,
        expected=worst.expected,
    )


def _part(
    actual: AnyArray,
    expected: AnyArray,
    piece: slice,
    tolerance: Tolerance,
    xp: ArrayModule,
    *,
    dtype: str,
    terms: Any,
    magnitude: AnyArray,
    peak: float,
) -> _PieceResult:
    """Compare one piece; `magnitude` is flat, `peak` is the largest finite size of the reference."""
    precision, want = precision_of(dtype), expected[piece]
    got = values_of(actual[piece], dtype, xp)
    if tolerance.name.startswith("exact"):
        want = values_of(stored(want, dtype, xp), dtype, xp)
    if precision:
        got, want = _overflown(got, want.astype("float64"), precision, xp)
    else:
        want = want.astype(got.dtype)
    error, period = _error(got, want, xp), tolerance.period
    if period is not None:  # the shorter direction around a circle
        error = xp.where(xp.isfinite(error), xp.minimum(error, xp.abs(period - error)), error)
    if magnitude is not None and magnitude.size > 1:
        magnitude = magnitude[piece]
    allowed = _allowed(want, precision, tolerance, xp, terms=terms, magnitude=magnitude, peak=peak)
    at, excess = _worst(error, allowed, xp)
    squares = _squares(xp.maximum(error - underflow(precision), 0.0), want, xp)
    return _PieceResult(
        differing=int((~(error <= allowed)).sum()),
        unequal=int((error != 0).sum()) if tolerance.share < 1 else 0,
        max_error=float(error.max()),
        squared_error=squares[0],
        squared_size=squares[1],
        excess=excess,
        worst=piece.start + at,
        actual=float(got[at]),
        expected=float(want[at]),
        error=float(error[at]),
    )


def _flat(magnitude: AnyArray, shape: tuple[int, ...], xp: ArrayModule) -> AnyArray:
    """Return the magnitude of every element, flat; a single number stays one."""
    if magnitude is None or getattr(magnitude, "size", 1) == 1:
        return magnitude if magnitude is None else xp.asarray(magnitude).reshape(1)
    return xp.broadcast_to(xp.asarray(magnitude), shape).reshape(-1)


def _peak(want: AnyArray, tolerance: Tolerance, xp: ArrayModule) -> float:
    if not tolerance.floor_of_peak:
        return 0.0
    pieces = [want[at : at + _PIECE] for at in range(0, want.size, _PIECE)]
    return max(float(xp.where(xp.isfinite(piece), xp.abs(piece), 0.0).max()) for piece in pieces)


def _overflown(got: AnyArray, want: AnyArray, precision: Precision, xp: ArrayModule) -> tuple[AnyArray, AnyArray]:
    """Return both with the least number that overflows instead of the infinity that it is rounded to.

    An infinity in the reference itself stays one, and only an infinity is equal to it; of 8 bits the largest number
    is, too, to which conversions of CUDA saturate.
    """
    most = precision.largest * (1 + UNIT_ROUNDOFF[precision.name] if precision.name != "float64" else 1)
    if precision.eight:
        end = xp.copysign(precision.largest, want)
        want = xp.where(xp.isinf(want) & ((got == end) | (not precision.has_infinity)), end, want)
    finite = xp.isfinite(want)
    if not _all_finite(got, xp):
        got = xp.where(finite & xp.isinf(got), xp.copysign(most, got), got)
    clipped = xp.clip(want, -most, most)
    return got, clipped if bool(finite.all()) else xp.where(finite, clipped, want)


def _error(got: AnyArray, want: AnyArray, xp: ArrayModule) -> AnyArray:
    """Return |got - want|; 0 where both are NaN or the same infinity, infinite where only one is."""
    if got.dtype.kind != "f":
        apart = xp.abs(got.astype("float64") - want.astype("float64"))
        return xp.where(got == want, 0.0, xp.maximum(apart, 1.0))  # a float64 does not hold all 64-bit integers
    if _all_finite(got, xp) and _all_finite(want, xp):  # as most are: a third of the passes
        return xp.abs(got - want)
    same = (got == want) | (xp.isnan(got) & xp.isnan(want))
    finite = xp.isfinite(got) & xp.isfinite(want)
    difference = xp.abs(xp.where(finite, got, 0.0) - xp.where(finite, want, 0.0))
    return xp.where(same, 0.0, xp.where(finite, difference, xp.inf))


def _all_finite(values: AnyArray, xp: ArrayModule) -> bool:
    return bool(xp.isfinite(values).all())


def _allowed(
    want: AnyArray,
    precision: Precision | None,
    tolerance: Tolerance,
    xp: ArrayModule,
    *,
    terms: Any,
    magnitude: AnyArray,
    peak: float,
) -> AnyArray:
    if tolerance.name == "exact except":
        return xp.where(magnitude, terms, 0.0)
    if precision is None:
        return xp.full(want.shape, tolerance.floor)
    size = xp.where(xp.isfinite(want), xp.abs(want), 0.0)
    if tolerance.relative == float("inf"):
        return xp.where(xp.isfinite(want), xp.inf, 0.0)
    allowed = xp.maximum(tolerance.relative * size, max(tolerance.floor, underflow(precision)))
    allowed = xp.maximum(allowed, tolerance.floor_of_peak * peak)
    if tolerance.ulps:
        allowed = xp.maximum(allowed, tolerance.ulps * _ulp(size, precision, xp))
    if magnitude is not None:
        summed = terms * magnitude
        allowed = xp.maximum(allowed, xp.where(xp.isfinite(summed), summed, 0.0))
    return allowed


def _ulp(size: AnyArray, precision: Precision, xp: ArrayModule) -> AnyArray:
    """Return the gap to the next number of the format above `size`."""
    exponent = xp.where(size > 0, xp.frexp(size)[1] - precision.digits, precision.smallest)
    return xp.ldexp(1.0, xp.maximum(exponent, precision.smallest))


def _worst(error: AnyArray, allowed: AnyArray, xp: ArrayModule) -> tuple[int, float]:
    """Return the index of the element that most exceeds its allowance, or has the largest error; and the excess."""
    over = error / xp.where(allowed > 0, allowed, 1e-30)
    finite = xp.where(xp.isnan(over), 0.0, over)
    at = int(finite.argmax())
    excess = float(finite[at])
    return (at, excess) if excess > 0 else (int(error.argmax()), 0.0)


def _squares(error: AnyArray, want: AnyArray, xp: ArrayModule) -> tuple[float, float]:
    """Return the sums of squares of error and reference over what is finite in the reference."""
    if want.dtype.kind != "f":
        return 0.0, 0.0
    finite = xp.isfinite(want)
    squares = [float((xp.where(finite, values, 0.0) ** 2).sum()) for values in (error, want)]
    return squares[0], squares[1]


def _least_norm(magnitude: AnyArray, depth: float, elements: int, xp: ArrayModule) -> float:
    """Return ||magnitude|| / sqrt(depth) over what is finite, 0 without a depth; one number is every element's."""
    if not depth or magnitude is None:
        return 0.0
    pieces = [magnitude[at : at + _PIECE] for at in range(0, magnitude.size, _PIECE)]
    squared = sum(float((xp.where(xp.isfinite(piece), piece, 0.0) ** 2).sum()) for piece in pieces)
    return float((squared * (elements // magnitude.size) / depth) ** 0.5)


def _norm_error(parts: list[_PieceResult], least: float) -> float:
    scale = max(sum(part.squared_size for part in parts) ** 0.5, least)
    total = sum(part.squared_error for part in parts) ** 0.5
    return total / scale if scale > 0 else total

"""Tolerances: how far an output may be from its float64 reference, and precisions that values are rounded to."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_bench.spec.inputs import AnyArray, ArrayModule, DType

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Tolerances: how far an output may be from its float64 reference, and the comparison with it.
#
# The classes are those of the project's catalogue: exact, element-wise (ulp), normalising, reduction, product,
# normwise. In comparisons arrays belong to NumPy or CuPy; the caller passes the module that owns them.

UNIT_ROUNDOFF = {"float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
_SMALLEST_EXPONENT = {"float16": -24, "float32": -149, "float64": -1074}


@dataclass(frozen=True)
class Tolerance:
    """Allowances: an element passes within the largest of them; `normwise` also bounds the whole output.

    `underflows` are the products that make an element: each is off by half of the smallest number where it underflows.
    `period` is a turn of an angle: a whole turn is no error.

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


def product(magnitude: Callable[..., Any], depth: Callable[..., float]) -> Tolerance:
    """Return a tolerance for FP32 products: 1e-5 normwise and gamma_K |A||B| componentwise, K from `depth` by name."""

    def gamma(**names: Any) -> float:
        k_u = depth(**names) * UNIT_ROUNDOFF["float32"]
        return k_u / (1 - k_u)

    setattr(gamma, "__signature__", signature(depth))  # noqa: B010 - a function type has no such attribute
    return Tolerance("product", terms=gamma, magnitude=magnitude, depth=depth, normwise=1e-5)


def normwise(
    limit: float, magnitude: Callable[..., Any] | None = None, depth: Callable[..., float] | None = None
) -> Tolerance:
    """Return a tolerance of ||actual - expected|| / ||expected|| at most `limit`, for low-precision products.

    With `magnitude` and `depth` the divisor is at least ||magnitude|| / sqrt(depth), as in `Tolerance`.
    """
    return Tolerance("normwise", relative=float("inf"), magnitude=magnitude, depth=depth, normwise=limit)


def absolute(limit: float) -> Tolerance:
    """Return a tolerance of `limit` everywhere."""
    return Tolerance("absolute", floor=limit)


def underflow(dtype: DType) -> float:
    """Return half of the smallest number of the type, the largest error of what underflows; 0 for integers."""
    return 2.0 ** (_SMALLEST_EXPONENT[dtype.name] - 1) if dtype.kind == "f" else 0.0


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
) -> Comparison:
    """Compare an output with its reference; `terms`, `magnitude` and `depth` are the tolerance's, already evaluated.

    The output is read in pieces: float64 copies of all of it may not fit into memory with it.
    """
    if actual.size == 0:
        return Comparison(True, 0, 0, 0.0, 0.0, 0.0, (), 0.0, 0.0)
    got, want = actual.reshape(-1), expected.reshape(-1)
    flat = _flat(magnitude, expected.shape, xp)
    peak = _peak(want, tolerance, xp)
    step = HOST_PIECE if xp is np else _PIECE
    pieces = [slice(at, at + step) for at in range(0, got.size, step)]
    parts = [_part(got, want, piece, tolerance, xp, terms=terms, magnitude=flat, peak=peak) for piece in pieces]
    worst = max(parts, key=lambda part: (part.excess, part.error))
    differing = sum(part.differing for part in parts)
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
    terms: Any,
    magnitude: AnyArray,
    peak: float,
) -> _PieceResult:
    """Compare one piece; `magnitude` is flat, `peak` is the largest finite size of the reference."""
    dtype = actual.dtype
    wanted = expected[piece].astype(dtype) if tolerance.name.startswith("exact") else expected[piece]
    wide = "float64" if dtype.kind == "f" else dtype
    got, want = _overflown(actual[piece].astype(wide), wanted.astype(wide), dtype, xp)
    error, period = _error(got, want, xp), tolerance.period
    if period is not None:  # the shorter direction around a circle
        error = xp.where(xp.isfinite(error), xp.minimum(error, xp.abs(period - error)), error)
    if magnitude is not None and magnitude.size > 1:
        magnitude = magnitude[piece]
    allowed = _allowed(want, dtype, tolerance, xp, terms=terms, magnitude=magnitude, peak=peak)
    at, excess = _worst(error, allowed, xp)
    squares = _squares(xp.maximum(error - underflow(dtype), 0.0), want, xp)
    return _PieceResult(
        differing=int((~(error <= allowed)).sum()),
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


def _overflown(got: AnyArray, want: AnyArray, dtype: DType, xp: ArrayModule) -> tuple[AnyArray, AnyArray]:
    """Return both with the least number that overflows instead of the infinity that it is rounded to.

    An infinity in the reference itself stays one, and only an infinity is equal to it.
    """
    if dtype.kind != "f":
        return got, want
    most = float(np.finfo(dtype).max) * (1 + UNIT_ROUNDOFF[dtype.name] if dtype.name != "float64" else 1)
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
    want: AnyArray, dtype: DType, tolerance: Tolerance, xp: ArrayModule, *, terms: Any, magnitude: AnyArray, peak: float
) -> AnyArray:
    if tolerance.name == "exact except":
        return xp.where(magnitude, terms, 0.0)
    if want.dtype.kind != "f":
        return xp.full(want.shape, tolerance.floor)
    size = xp.where(xp.isfinite(want), xp.abs(want), 0.0)
    if tolerance.relative == float("inf"):
        return xp.where(xp.isfinite(want), xp.inf, 0.0)
    allowed = xp.maximum(tolerance.relative * size, max(tolerance.floor, underflow(dtype)))
    allowed = xp.maximum(allowed, tolerance.floor_of_peak * peak)
    if tolerance.ulps:
        allowed = xp.maximum(allowed, tolerance.ulps * _ulp(size, dtype, xp))
    if magnitude is not None:
        summed = terms * magnitude
        allowed = xp.maximum(allowed, xp.where(xp.isfinite(summed), summed, 0.0))
    return allowed


def _ulp(size: AnyArray, dtype: DType, xp: ArrayModule) -> AnyArray:
    """Return the gap to the next float of `dtype` above `size`."""
    digits = {"float16": 11, "float32": 24, "float64": 53}[dtype.name]
    smallest = _SMALLEST_EXPONENT[dtype.name]
    exponent = xp.where(size > 0, xp.frexp(size)[1] - digits, smallest)
    return xp.ldexp(1.0, xp.maximum(exponent, smallest))


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


# Precisions of numbers: how values are rounded to each, the type that carries their bits, and back.
#
# float16, bfloat16 and e4m3 (`float8`: 4 bits of exponent, 3 of fraction, largest value 448, no infinity) are those of
# IEEE 754, of Google's TPUs and of the OCP's 8-bit floating point specification; tf32 is a float32 of which a product
# uses 10 bits of the fraction, and three_bfloat16 one that is the sum of three bfloat16, exactly. NumPy has neither
# bfloat16 nor e4m3: unsigned integers carry their bits.

_CODES = np.arange(127)  # of what is not negative in e4m3, in order; 127 is the NaN
_E4M3 = np.where(_CODES < 8, _CODES * 2.0**-9, (8 + _CODES % 8) * 2.0 ** (_CODES // 8 - 10.0))
_E4M3_ALL = np.concatenate([_E4M3, [np.nan], -_E4M3, [np.nan]])


@dataclass(frozen=True)
class Precision:
    """Format of numbers. `dtype` is the NumPy type that carries them, `bits` is the size of one in memory."""

    name: str
    dtype: str
    bits: int

    def narrowed(self, values: "NDArray[Any]") -> "NDArray[Any]":
        """Return the nearest numbers of this precision, ties to even, in `dtype`; e4m3 stops at its largest."""
        if self.name == "float8":
            return _to_e4m3(np.asarray(values, "float64"))
        if self.name in ("bfloat16", "tf32"):
            kept = _cut(np.asarray(values, "float32"), 16 if self.name == "bfloat16" else 13)
            return (kept >> 16).astype("uint16") if self.name == "bfloat16" else kept.view("float32")
        with np.errstate(over="ignore"):
            return np.asarray(values).astype(self.dtype)


PRECISIONS = MappingProxyType({
    name: Precision(name, dtype, np.dtype(dtype).itemsize * 8)
    for name, dtype in (("float64", "float64"), ("float32", "float32"),
                        ("three_bfloat16", "float32"), ("tf32", "float32"), ("float16", "float16"),
                        ("bfloat16", "uint16"), ("float8", "uint8"))
})  # fmt: skip


def widened(array: AnyArray, xp: ArrayModule) -> AnyArray:
    """Return the values of bits, by their type (uint16: bfloat16, uint8: e4m3), and other arrays as they are."""
    if array.dtype == np.uint16:
        return (array.astype("uint32") << 16).view(xp.float32).astype("float64")
    return xp.asarray(_E4M3_ALL)[array] if array.dtype == np.uint8 else array


def _cut(values: "NDArray[np.float32]", bits: int) -> "NDArray[np.uint32]":
    """Return float32 bits rounded to nearest even where the last `bits` are cut off; infinities and NaN stay."""
    raw = values.view("uint32")
    odd = raw >> np.uint32(bits) & np.uint32(1)
    rounded = raw + np.uint32((1 << bits - 1) - 1) + odd
    kept = np.where(np.isfinite(values), rounded, raw) & ~np.uint32((1 << bits) - 1)
    return np.where(np.isnan(values), np.uint32(0x7FC00000), kept)


def _to_e4m3(values: "NDArray[np.float64]") -> "NDArray[np.uint8]":
    size = np.abs(values)
    above = np.clip(np.searchsorted(_E4M3, size), 1, 126)
    up, down = _E4M3[above] - size, size - _E4M3[above - 1]
    code = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, above - 1)
    code = np.where(size >= _E4M3[-1], 126, code)
    return np.where(np.isnan(values), 127, code + np.where(np.signbit(values), 128, 0)).astype("uint8")

"""Tolerances: how far an output may be from its float64 reference; `deviation` compares.

The classes are those of the project's catalogue: exact, element-wise (ulp), normalising, reduction, product, normwise.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

from prism_bench.spec.array_types import DType

UNIT_ROUNDOFF = {"float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
SMALLEST_EXPONENT = {"float16": -24, "float32": -149, "float64": -1074}


@dataclass(frozen=True)
class Tolerance:
    """Allowances: an element passes within the largest of them; `normwise` also bounds the whole output.

    `underflows` are the products that make an element: each is off by half of the smallest number where it underflows.
    `period` is a turn of an angle: an error of a whole turn is none.

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
    return 2.0 ** (SMALLEST_EXPONENT[dtype.name] - 1) if dtype.kind == "f" else 0.0

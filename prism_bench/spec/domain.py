"""The values for which a kernel's definition holds, as an argument declares them. Input regimes follow from it."""

from dataclasses import dataclass, replace
from math import inf


@dataclass(frozen=True)
class Domain:
    """Values from `low` to `high`, whole numbers alone where `whole`.

    A bound may be an axis's name. `most` bounds the magnitudes that are drawn where the domain itself has no end: up to
    it no term of the definition leaves the range of the type. `open_low` leaves `low` itself out. `finite` leaves
    infinities out, `numbers` leaves NaN out. `fixed` are values with a structure that only their fill knows.
    """

    low: float | str = -inf
    high: float | str = inf
    most: float | None = None
    whole: bool = False
    open_low: bool = False
    finite: bool = False
    numbers: bool = False
    fixed: bool = False

    def with_finite_numbers(self) -> "Domain":
        """Return the domain without infinities and NaN, for definitions that need an order or a distance."""
        return replace(self, finite=True, numbers=True)


def real(most: float | None = None) -> Domain:
    """Return the domain of all numbers, infinities and NaN too."""
    return Domain(most=most)


def nonnegative(most: float | None = None) -> Domain:
    """Return the domain of zero and more, such as masses and counts that need not be whole."""
    return Domain(low=0.0, most=most)


def positive(most: float | None = None) -> Domain:
    """Return the domain of what is more than zero and finite, such as variances and precisions."""
    return Domain(low=0.0, most=most, open_low=True, finite=True, numbers=True)


def interval(low: float, high: float) -> Domain:
    """Return the domain from `low` to `high`, both included."""
    return Domain(low=low, high=high, finite=True, numbers=True)


def whole(low: float | str, high: float | str) -> Domain:
    """Return the domain of whole numbers from `low` up to `high`, itself left out; a bound may be an axis's name."""
    return Domain(low=low, high=high, whole=True, finite=True, numbers=True)


def as_drawn() -> Domain:
    """Return the domain of values whose structure only their fill knows, such as permutations: it has no regimes."""
    return Domain(fixed=True)

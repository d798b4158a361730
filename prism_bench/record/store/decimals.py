"""Times as whole numbers of a decimal unit, as compact as the digits that they have.

A point's value has SHOWN digits at most; medians of its processes and quartiles have those of its unit, and are kept as
differences from the value.
"""

from typing import Any

import numpy
from numpy.typing import NDArray

SHOWN = 7  # digits of a value: samples have four, and a median of medians of an even number of them some more
_FEWEST = 5  # digits that the unit of a point leaves at least
_MOST = 2**31 - 1


def shown(value: float) -> float:
    """Return the value with SHOWN digits; 0 for what is not finite."""
    short = float(f"{value:.{SHOWN}g}")
    return short if abs(short) < float("inf") else 0.0


def units_of(values: NDArray[Any]) -> NDArray[Any]:
    """Return the exponents of ten of the largest units of which all values, as `shown` returns them, are multiples."""
    known = values != 0
    sizes = numpy.floor(numpy.log10(numpy.abs(values, where=known, out=numpy.ones(len(values)))))
    finest = numpy.where(known, sizes - SHOWN + 1, 0).astype("i4")
    counts = counted(values, finest)
    found = finest.copy()
    for digits in range(SHOWN - 1, _FEWEST - 1, -1):
        step = SHOWN - digits
        found[known & (counts % 10**step == 0)] = finest[known & (counts % 10**step == 0)] + step
    return found.astype("i2")


def counted(values: NDArray[Any], units: NDArray[Any]) -> NDArray[Any]:
    """Return the values as rounded numbers of units."""
    numbers = numpy.rint(numpy.where(units < 0, values * _powers(-units), values / _powers(units)))
    return numpy.clip(numbers, -_MOST, _MOST).astype("i4")


def seconds(counts: NDArray[Any], units: NDArray[Any]) -> NDArray[Any]:
    """Return the inverse of `counted`: the number that is nearest to the decimal one."""
    return numpy.where(units < 0, counts / _powers(-units), counts * _powers(units))


def _powers(exponents: NDArray[Any]) -> NDArray[Any]:
    """Return powers of ten, exact up to 22; 1 for negative exponents."""
    return numpy.array([10.0**power for power in range(309)])[numpy.clip(exponents, 0, 308).astype("i4")]

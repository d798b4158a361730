"""Statistics of one process's samples, without assumptions about their distribution."""

from collections.abc import Sequence
from functools import cache
from math import comb
from statistics import median


@cache
def _interval_ranks(count: int, confidence: float) -> tuple[int, int] | None:
    """Return the ranks (from 0) of the order statistics around the median; None for too few samples.

    The number of samples below the median is binomial(count, 1/2): David and Nagaraja, Order Statistics, 7.1.
    """
    tail, total = 0.0, 2.0**count
    lower = -1
    for rank in range(count // 2):
        tail += comb(count, rank) / total
        if tail > (1 - confidence) / 2:
            break
        lower = rank
    return None if lower < 0 else (lower, count - 1 - lower)


def median_interval(samples: Sequence[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """Return a distribution-free interval for the median; None where there are too few samples for `confidence`."""
    ranks = _interval_ranks(len(samples), confidence) if samples else None
    if ranks is None:
        return None
    ordered = sorted(samples)
    return ordered[ranks[0]], ordered[ranks[1]]


def relative_half_width(samples: Sequence[float], confidence: float = 0.95) -> float:
    """Return half the median's interval over the median; infinite where there is no interval yet."""
    interval = median_interval(samples, confidence)
    centre = median(samples) if samples else 0.0
    if interval is None or centre <= 0:
        return float("inf")
    return (interval[1] - interval[0]) / 2 / centre

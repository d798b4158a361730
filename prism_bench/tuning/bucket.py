"""Sizes in classes: what was found out at one workload holds for those near it."""

from collections.abc import Mapping
from math import inf, log2

REACH = 2.0  # doublings: a workload four times as large on some axis has another best configuration


def bucket(size: int) -> int:
    """The design documents' classes: steps of 100 below 1000, of 1000 below 10,000, of 10,000 below 100,000, then of
    100,000.
    """
    step = next((step for step in (100, 1000, 10_000) if size < 10 * step), 100_000)
    return size // step * step


def bucket_of(workload: Mapping) -> dict:
    """The classes of a workload's axes. What is below the first class stands for itself: nine taps are not 60."""
    return {axis: bucket(value) or value if _is_size(value) else value for axis, value in workload.items()}


def distance(one: Mapping, other: Mapping) -> float:
    """The doublings between two workloads on the axis where they differ most; infinite where they are not of a kind."""
    if set(one) != set(other):
        return inf
    return max((_apart(one[axis], other[axis]) for axis in one), default=0.0)


def _apart(one, other):
    if one == other:
        return 0.0
    if not (_is_size(one) and _is_size(other)) or min(one, other) <= 0:
        return inf
    return abs(log2(one / other))


def _is_size(value):
    return isinstance(value, int) and not isinstance(value, bool)

"""Sizes in classes: what was found out at one workload holds for those near it."""

from collections.abc import Mapping
from math import inf, log2
from typing import Any

REACH = 2.0  # doublings: a workload four times as large on some axis has another best configuration


def bucket(size: int) -> int:
    """Return the class of a size by the design documents.

    Steps are 100 below 1000, 1000 below 10,000, 10,000 below 100,000, then 100,000.
    """
    step = next((step for step in (100, 1000, 10_000) if size < 10 * step), 100_000)
    return size // step * step


def bucket_of(workload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the classes of a workload's axes. A size below the first class is its own class: nine taps are not 60."""
    return {axis: bucket(value) or value if _is_size(value) else value for axis, value in workload.items()}


def distance(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the doublings between two workloads on the axis where they differ most; infinite for different axes."""
    if set(one) != set(other):
        return inf
    return max((_apart(one[axis], other[axis]) for axis in one), default=0.0)


def _apart(one: Any, other: Any) -> float:
    if one == other:
        return 0.0
    if not (_is_size(one) and _is_size(other)) or min(one, other) <= 0:
        return inf
    return abs(log2(one / other))


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

"""Samples as a record's file keeps them: whole counts of one decimal unit."""

import math
from collections.abc import Sequence
from typing import TypedDict

_SMALLEST, _MOST_COUNTS = -30, 2**53


class PackedSamples(TypedDict):
    """Samples of one process: `counts` of `unit` seconds."""

    unit: float
    counts: list[int]


def packed(samples: Sequence[float]) -> PackedSamples:
    """Return samples as counts of one decimal unit that leaves the smallest at least four digits.

    A sample that is no number becomes a count of 0, which no reader takes for a time.
    """
    positive = [sample for sample in samples if 0 < sample < math.inf]
    exponent = math.floor(math.log10(min(positive))) - 3 if positive else 0
    unit = float(f"1e{max(exponent, _SMALLEST)}")
    return {"unit": unit, "counts": [whole(sample / unit) for sample in samples]}


def whole(ratio: float) -> int:
    """Return the ratio rounded; 0 where it is no number, or larger than a float counts exactly."""
    return round(ratio) if abs(ratio) < _MOST_COUNTS else 0

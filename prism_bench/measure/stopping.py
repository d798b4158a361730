"""Stopping rule: the median is known well enough, or the limit of samples or time is reached."""

from collections.abc import Sequence
from dataclasses import dataclass

from prism_bench.measure.statistics import relative_half_width


@dataclass(frozen=True)
class Criterion:
    """Stop when the median's 95 % interval is within `precision` of it (half-width), or at a limit."""

    precision: float = 0.005
    min_samples: int = 12
    max_samples: int = 60
    seconds: float = 0.4

    def finished(self, samples: Sequence[float], elapsed: float) -> bool:
        """Return whether these samples, taken in `elapsed` seconds, are enough. At least one sample is always taken."""
        if not samples:
            return False
        if elapsed >= self.seconds or len(samples) >= self.max_samples:
            return True
        return len(samples) >= self.min_samples and relative_half_width(samples) <= self.precision

"""The profiling guide's rules for sizes that change the result or the waiting time, as named policies.

Entropy window: 8, 16 or 32 by the number of pixels. LSTM batch: 8, 32 or 64 by the latency that is allowed. Neither is
free: another window is another result, and a larger batch is a longer wait.
"""

from collections.abc import Mapping
from dataclasses import dataclass

WINDOWS = (8, 16, 32)
BATCHES = (8, 16, 32, 64)
TARGETS = (5e-3, 10e-3)  # seconds
IMAGES = ((200, 200), (256, 256), (512, 512), (1024, 1024))


def window_of(pixels: int) -> int:
    """The guide's window for an image of so many pixels."""
    return 8 if pixels > 200_000 else 16 if pixels > 50_000 else 32


def batch_of(latency: float) -> int:
    """The guide's batch where an answer may take `latency` seconds."""
    return 8 if latency < 5e-3 else 32 if latency < 10e-3 else 64


def largest_within(seconds: Mapping[int, float], latency: float) -> int | None:
    """The measured policy: the largest batch whose time stays below `latency`; None where none does."""
    able = [batch for batch, took in seconds.items() if took < latency]
    return max(able, default=None)


@dataclass(frozen=True)
class Window:
    """One image at one window: seconds, the mean entropy in bits, how far entropies are from those of window 16 (mean
    absolute difference, bits), and the share of pixels that another segment would be cut into.
    """

    rows: int
    cols: int
    window: int
    seconds: float
    entropy: float
    difference: float
    moved: float


@dataclass(frozen=True)
class Batch:
    """An LSTM's sequence at one batch: seconds of all steps, and the largest relative error of its output."""

    batch: int
    steps: int
    seconds: float
    error: float

    @property
    def rate(self) -> float:
        """Samples a second, each with all of its steps."""
        return self.batch / self.seconds

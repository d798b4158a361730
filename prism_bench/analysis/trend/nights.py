"""The nights of one series: which stand alone, what scatter they have, and how much a level of several is worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import sqrt

import numpy
from scipy.ndimage import median_filter

NEIGHBOURS = 5  # nights whose median a lonely night is held against: what lasts longer than two is no outlier
LONELY = 5.0  # robust standard deviations from that median
UNSURE = 8.0  # a scatter learned from n independent nights is taken to be 1 + UNSURE / n times as large
TICKS = 4  # differences that a clock's tick is learned from, and a tenth of all
FINEST = 1e-4  # relative: samples are kept to four digits, so no series is known better


@dataclass(frozen=True)
class Scatter:
    """How nights scatter about their level: `sigma` (robust), and `memory`, the correlation of a night with the next.

    Fast drift makes neighbours alike; ten such nights tell less about a level than ten independent ones. `nights` is
    from how many the scatter was learned.
    """

    sigma: float
    memory: float
    nights: int

    @property
    def doubt(self) -> float:
        """How much larger than `sigma` the scatter is taken to be, learned from so few nights: falls towards 1."""
        return 1 + UNSURE * (1 + self.memory) / (1 - self.memory) / self.nights

    def variance_of_level(self, count: int) -> float:
        """The variance of the mean of `count` nights in a row whose correlation fades as memory**distance."""
        return (self.sigma * self.doubt) ** 2 * _inflation(count, round(self.memory, 3)) / count


@lru_cache(4096)
def _inflation(count, memory):
    distance = numpy.arange(1, count)
    return 1.0 + 2.0 * float(numpy.sum((1 - distance / count) * memory**distance))


@dataclass(frozen=True, eq=False)
class Nights:
    """Values of one series, oldest first (logarithms, so that differences are relative), and which of them are `odd`.

    Odd nights count neither for a level nor for the scatter, but they tell how far the series strays.
    """

    values: numpy.ndarray
    odd: numpy.ndarray

    @classmethod
    def of(cls, values: Sequence[float], floor: float) -> "Nights":
        """The nights with those set apart that stand alone (Hampel's filter): far from all neighbours, for two at most.

        The two newest are never odd: nobody knows yet whether they are alone.
        """
        values = numpy.asarray(values, float)
        away = numpy.abs(values - median_filter(values, NEIGHBOURS, mode="nearest"))
        odd = away > max(LONELY * 1.4826 * float(numpy.median(away)), 2 * floor)
        odd[-(NEIGHBOURS // 2) :] = False
        return cls(values, odd)

    @cached_property
    def quantum(self) -> float:
        """The typical difference of neighbours that differ: the tick of a clock that is coarser than the noise.

        0 where nearly all neighbours are the same: their few differences are steps, and no ticks.
        """
        steps = numpy.abs(numpy.diff(self.values[~self.odd]))
        differing = steps[steps > FINEST / 10]
        return float(numpy.median(differing)) if len(differing) >= max(TICKS, len(steps) / 10) else 0.0

    def level(self, start: int, end: int) -> float:
        """The median of the nights from `start` to before `end`, odd ones left out."""
        return float(numpy.median(self.usual(start, end)))

    def usual(self, start: int, end: int) -> numpy.ndarray:
        """The nights from `start` to before `end` that are not odd; all of them where all are."""
        piece = self.values[start:end]
        usual = piece[~self.odd[start:end]]
        return usual if len(usual) else piece

    def residuals(self, bounds: Sequence[int]) -> numpy.ndarray:
        """Nights less the level of their piece, for the pieces between successive `bounds`; odd ones too."""
        return numpy.concatenate([self.values[a:b] - self.level(a, b) for a, b in pairwise(bounds)])

    def scatter(self, bounds: Sequence[int], apart: tuple[int, int] = (0, 0)) -> Scatter:
        """The scatter about the levels of the pieces, of all runs but those from the first of `apart` to the second.

        A correlation estimated from n nights is (1 + 4 r) / n too low on average: M. G. Kendall, "Note on bias in the
        estimation of autocorrelation", Biometrika 41, 1954.
        """
        counted = ~self.odd[bounds[0] : bounds[-1]]
        counted[max(apart[0] - bounds[0], 0) : max(apart[1] - bounds[0], 0)] = False
        rest = self.residuals(bounds)[counted]
        sigma = max(1.4826 * float(numpy.median(numpy.abs(rest - numpy.median(rest)))), self.quantum / sqrt(12), FINEST)
        tame = numpy.clip(rest, -3 * sigma, 3 * sigma)
        power = float(tame @ tame)
        memory = float(tame[1:] @ tame[:-1]) / power if power else 0.0
        memory += (1 + 4 * memory) / len(rest)
        return Scatter(sigma, min(max(memory, 0.0), 0.95), len(rest))

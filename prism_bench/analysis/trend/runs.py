"""Runs of one series: which are outliers, what scatter they have, and how well a level of several is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import sqrt
from typing import Literal

import numpy
from numpy.typing import ArrayLike, NDArray

NEIGHBOURS = 5  # runs whose median an outlier is compared with: what lasts longer than two is no outlier
LONELY = 5.0  # robust standard deviations from that median
UNSURE = 8.0  # a scatter learned from n independent runs is taken to be 1 + UNSURE / n times as large
TICKS = 4  # differences that a clock's tick is learned from, and a tenth of all
FINEST = 1e-4  # relative: samples are kept to four digits, so no series is known better

Floats = NDArray[numpy.float64]


def middle(values: Floats) -> float:
    """Return the median of the values, of which none is missing; as `numpy.median` does, without its preparations."""
    low, high = (len(values) - 1) // 2, len(values) // 2
    ordered = numpy.partition(values, (low, high))
    return (float(ordered[low]) + float(ordered[high])) / 2


def filtered(values: Floats, size: int, mode: Literal["nearest", "reflect"] = "nearest") -> Floats:
    """Return at each run the median of `size` runs around it, the upper one of two.

    Beyond its ends the series goes on with its outermost value ("nearest"), or backwards ("reflect").
    """
    if not len(values):
        return numpy.empty(0)
    before, after = size // 2, (size - 1) // 2
    if len(values) < size:  # too few to go backwards in one go
        padded = numpy.pad(values, (before, after), mode="edge" if mode == "nearest" else "symmetric")
    elif mode == "nearest":
        padded = numpy.concatenate([values[:1].repeat(before), values, values[-1:].repeat(after)])
    else:
        padded = numpy.concatenate([values[:before][::-1], values, values[len(values) - after :][::-1]])
    if size == NEIGHBOURS:
        return _middle_of_five(*(padded[place : place + len(values)] for place in range(size))).astype(float)
    windows = numpy.ndarray((len(values), size), padded.dtype, padded, strides=padded.strides * 2)
    return numpy.partition(windows, size // 2, axis=1)[:, size // 2].astype(float)


def _middle_of_five(a: Floats, b: Floats, c: Floats, d: Floats, e: Floats) -> Floats:
    """Return the median of five values at each place; sorting each five takes four times as long."""
    low = numpy.maximum(numpy.minimum(a, b), numpy.minimum(c, d))
    high = numpy.minimum(numpy.maximum(a, b), numpy.maximum(c, d))
    return numpy.maximum(numpy.minimum(low, high), numpy.minimum(numpy.maximum(low, high), e))


def jitter(values: Floats) -> float:
    """Return somewhat less than the standard deviation of a run.

    From differences of neighbours, in which levels and drift cancel.
    """
    return 0.8 * 1.4826 * middle(numpy.abs(values[1:] - values[:-1])) / sqrt(2)


@dataclass(frozen=True)
class Scatter:
    """Scatter of runs about their level: `sigma` (robust), and `memory`, the correlation of a run with the next.

    Fast drift makes neighbours alike; ten such runs show less of a level than ten independent ones. `runs` is from how
    many the scatter was learned.
    """

    sigma: float
    memory: float
    runs: int

    @property
    def doubt(self) -> float:
        """How much larger than `sigma` the scatter is taken to be, learned from so few runs: falls towards 1."""
        return 1 + UNSURE * (1 + self.memory) / (1 - self.memory) / self.runs

    def variance_of_level(self, count: int) -> float:
        """Return the variance of the mean of `count` runs in a row whose correlation fades as memory**distance."""
        return (self.sigma * self.doubt) ** 2 * _inflation(count, round(self.memory, 3)) / count


@lru_cache(4096)
def _inflation(count: int, memory: float) -> float:
    distance = numpy.arange(1, count)
    return 1.0 + 2.0 * float(numpy.sum((1 - distance / count) * memory**distance))


@dataclass(frozen=True, eq=False)
class SeriesRuns:
    """Values of one series, oldest first (logarithms, so that differences are relative), and which of them are `odd`.

    Odd runs count neither for a level nor for the scatter, but they show how far the series strays. `near` are the
    medians of each run's neighbours, odd ones too.
    """

    values: Floats
    odd: NDArray[numpy.bool_]
    near: Floats

    @classmethod
    def of(cls, logs: ArrayLike, floor: float) -> "SeriesRuns":
        """Return the runs, outliers set apart (Hampel's filter): far from all neighbours, for two runs at most.

        The two newest are never odd: it is unknown yet whether the next ones are alike.
        """
        values: Floats = numpy.asarray(logs, float)
        near = filtered(values, NEIGHBOURS)
        away = numpy.abs(values - near)
        odd = away > max(LONELY * 1.4826 * middle(away), 2 * floor)
        odd[-(NEIGHBOURS // 2) :] = False
        return cls(values, odd, near)

    @cached_property
    def kept(self) -> NDArray[numpy.intp]:
        """The places of the runs that are not odd."""
        return numpy.flatnonzero(~self.odd)

    @cached_property
    def plain(self) -> Floats:
        """The runs that are not odd."""
        return self.values[self.kept]

    @cached_property
    def middles(self) -> Floats:
        """The median of the neighbours of each run that is not odd, without odd ones."""
        return self.near if len(self.kept) == len(self.values) else filtered(self.plain, NEIGHBOURS)

    @cached_property
    def jitter(self) -> float:
        """That of the runs that are not odd."""
        return jitter(self.plain)

    @cached_property
    def quantum(self) -> float:
        """The typical difference of neighbours that differ: the tick of a clock that is coarser than the noise.

        0 where nearly all neighbours are the same: their few differences are steps, and no ticks.
        """
        steps = numpy.abs(numpy.diff(self.plain))
        differing = steps[steps > FINEST / 10]
        return middle(differing) if len(differing) >= max(TICKS, len(steps) / 10) else 0.0

    def level(self, start: int, end: int) -> float:
        """Return the median of the runs from `start` to before `end`, odd ones left out."""
        return middle(self.usual(start, end))

    def usual(self, start: int, end: int) -> Floats:
        """Return the runs from `start` to before `end` that are not odd; all of them where all are."""
        piece = self.values[start:end]
        usual = piece[~self.odd[start:end]]
        return usual if len(usual) else piece

    def residuals(self, bounds: Sequence[int]) -> Floats:
        """Return runs less the level of their piece, for the pieces between successive `bounds`; odd ones too."""
        return numpy.concatenate([self.values[a:b] - self.level(a, b) for a, b in pairwise(bounds)])

    def scatter(self, bounds: Sequence[int], apart: tuple[int, int] = (0, 0)) -> Scatter:
        """Return the scatter about the levels of the pieces, without the runs from the first to the second of `apart`.

        A correlation estimated from n runs is (1 + 4 r) / n too low on average: M. G. Kendall, "Note on bias in the
        estimation of autocorrelation", Biometrika 41, 1954.
        """
        counted = ~self.odd[bounds[0] : bounds[-1]]
        counted[max(apart[0] - bounds[0], 0) : max(apart[1] - bounds[0], 0)] = False
        rest = self.residuals(bounds)[counted]
        sigma = max(1.4826 * middle(numpy.abs(rest - middle(rest))), self.quantum / sqrt(12), FINEST)
        tame = numpy.clip(rest, -3 * sigma, 3 * sigma)
        power = float(tame @ tame)
        memory = float(tame[1:] @ tame[:-1]) / power if power else 0.0
        memory += (1 + 4 * memory) / len(rest)
        return Scatter(sigma, min(max(memory, 0.0), 0.95), len(rest))

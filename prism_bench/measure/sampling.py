"""Loop of a measurement: order of cases, samples, the stopping rule, and the statistics of one process."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import comb
from random import Random
from statistics import median
from time import perf_counter, sleep
from typing import TypeVar

from prism_bench.measure.call_checks import keep, refuse_replaced
from prism_bench.record.measurement import CLOCK_SHARE, Sample

# Statistics of one process's samples, without assumptions about their distribution.


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
    """Return a distribution-free interval for the median; None with too few samples for `confidence`."""
    ranks = _interval_ranks(len(samples), confidence) if samples else None
    if ranks is None:
        return None
    ordered = sorted(samples)
    return ordered[ranks[0]], ordered[ranks[1]]


def relative_half_width(samples: Sequence[float], confidence: float = 0.95) -> float:
    """Return half the median's interval over the median; infinite without an interval."""
    interval = median_interval(samples, confidence)
    centre = median(samples) if samples else 0.0
    if interval is None or centre <= 0:
        return float("inf")
    return (interval[1] - interval[0]) / 2 / centre


# Stopping rule: the median is precise enough, or the limit of samples or time is reached.


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


# Loop of a measurement: take a sample, check its clock, keep it, until the criterion is met.

OWN_DOING = 3


@dataclass
class Series:
    """The kept samples, and the number of samples that were repeated because the clock was throttled.

    `limited` means that the work itself holds the clock down: the device is at its best as soon as it does less.
    """

    samples: list[Sample] = field(default_factory=list[Sample])
    throttled: int = 0
    gave_up: bool = False
    limited: bool = False


class ClockGate:
    """Gate by the fastest clock of the session; a sample far below it ran throttled (or before the clock woke)."""

    def __init__(
        self,
        share: float = CLOCK_SHARE,
        patience: int = 20,
        rest: float = 0.05,
        pause: Callable[[float], object] = sleep,
    ) -> None:
        self.share, self._patience, self._rest, self._pause = share, patience, rest, pause
        self.fastest = 0.0

    def accepts(self, sample: Sample) -> bool:
        """Return whether the sample's clock is at least the share of the fastest; samples without a clock pass."""
        if not sample.clock:
            return True
        self.fastest = max(self.fastest, sample.clock)
        return sample.clock >= self.share * self.fastest

    def is_awake(self, light: Callable[[], Sample] | None) -> bool:
        """Return whether a launch without work runs at the device's best clock after a rest."""
        if light is None:
            return False
        self._pause(self._rest)
        taken = light()
        return bool(taken.clock) and self.accepts(taken)

    def patience_left(self, repeated: int) -> bool:
        """Rest before a repetition; return False after too many repetitions."""
        if repeated >= self._patience:
            return False
        self._pause(self._rest)
        return True


def sample(
    once: Callable[[], Sample], criterion: Criterion, gate: ClockGate, clock: Callable[[], float] = perf_counter
) -> Series:
    """Call `once` until the criterion is met; throttled samples are repeated and counted, never dropped silently.

    When throttling outlasts the gate's patience, samples are kept as they are and the series has `gave_up` set. If
    `once.light` offers launches without work, and these run at the best clock `OWN_DOING` times in turn with samples
    that do not, the work itself draws too much power: its samples are kept, and the series is `limited`.
    Raise MeasurementInvalid if a function that reads or counts times was replaced.
    """
    series, started, own_doing = Series(), clock(), 0
    light: Callable[[], Sample] | None = getattr(once, "light", None)
    while not criterion.finished([kept.seconds for kept in series.samples], clock() - started):
        taken = once()
        if not (series.gave_up or series.limited or gate.accepts(taken)):
            series.throttled += 1
            own_doing = own_doing + 1 if gate.is_awake(light) else 0
            series.limited = own_doing >= OWN_DOING
            series.gave_up = not own_doing and not gate.patience_left(series.throttled)
            if not (series.gave_up or series.limited):
                continue
        if series.limited and own_doing:
            series.throttled, own_doing = series.throttled - own_doing, 0
        series.samples.append(taken)
        if not (series.gave_up or series.limited):
            # Repeat samples from before the clock woke: they passed while no faster clock was known.
            awake = [kept for kept in series.samples if gate.accepts(kept)]
            series.throttled += len(series.samples) - len(awake)
            series.samples = awake
    refuse_replaced()
    return series


keep("time", time, ("perf_counter",))
keep("statistics", statistics, ("median",))


# Order of cases in one process: shuffled, so that drift does not always meet the same case.

Item = TypeVar("Item")


def shuffled(items: Sequence[Item], seed: int, process: int) -> list[Item]:
    """Return the items in an order that depends on the run's seed and the process."""
    order = list(items)
    Random(f"{seed}/{process}").shuffle(order)
    return order

"""Loop of a measurement: take a sample, check its clock, keep it, until the criterion is met."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter, sleep

from prism_bench.evidence import CLOCK_SHARE
from prism_bench.measure.stopping import Criterion
from prism_bench.measurement import Sample
from prism_bench.originals import keep, refuse_replaced


@dataclass
class Series:
    """The samples kept, and how many were repeated because the clock was throttled."""

    samples: list[Sample] = field(default_factory=list[Sample])
    throttled: int = 0
    gave_up: bool = False


class ClockGate:
    """Knows the fastest clock of this session; a sample far below it ran throttled (or on a clock not yet awake)."""

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
        """Whether the sample's clock is at least the share of the fastest seen; samples without a clock pass."""
        if not sample.clock:
            return True
        self.fastest = max(self.fastest, sample.clock)
        return sample.clock >= self.share * self.fastest

    def patience_left(self, repeated: int) -> bool:
        """Rest before a repetition; False once there were too many."""
        if repeated >= self._patience:
            return False
        self._pause(self._rest)
        return True


def sample(
    once: Callable[[], Sample], criterion: Criterion, gate: ClockGate, clock: Callable[[], float] = perf_counter
) -> Series:
    """Call `once` until the criterion is met; throttled samples are repeated and counted, never dropped in silence.

    When throttling outlasts the gate's patience, samples are kept as they are and the series has `gave_up` set.
    Raise MeasurementInvalid where a function that times are read or counted with was replaced.
    """
    series, started = Series(), clock()
    while not criterion.finished([one.seconds for one in series.samples], clock() - started):
        taken = once()
        if not series.gave_up and not gate.accepts(taken):
            series.throttled += 1
            series.gave_up = not gate.patience_left(series.throttled)
            if not series.gave_up:
                continue
        series.samples.append(taken)
        if not series.gave_up:
            _repeat_sleepers(series, gate)
    refuse_replaced()
    return series


def _repeat_sleepers(series: Series, gate: ClockGate) -> None:
    """Drop samples from before the clock woke, so that they are repeated: they passed as nothing faster was known."""
    awake = [one for one in series.samples if gate.accepts(one)]
    series.throttled += len(series.samples) - len(awake)
    series.samples = awake


keep("time", time, ("perf_counter",))
keep("statistics", statistics, ("median",))

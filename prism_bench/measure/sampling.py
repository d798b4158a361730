"""Loop of a measurement: take a sample, check its clock, keep it, until the criterion is met."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter, sleep

from prism_bench.measure.clock_guard import keep, refuse_replaced
from prism_bench.measure.stopping import Criterion
from prism_bench.record.measurement import CLOCK_SHARE, Sample

OWN_DOING = 3


@dataclass
class Series:
    """The samples kept, and how many were repeated because the clock was throttled.

    `limited` is set where the work itself holds the clock down: the device is at its best as soon as it does less.
    """

    samples: list[Sample] = field(default_factory=list[Sample])
    throttled: int = 0
    gave_up: bool = False
    limited: bool = False


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

    def is_awake(self, light: Callable[[], Sample] | None) -> bool:
        """Return whether a launch without work runs at the device's best clock after a rest."""
        if light is None:
            return False
        self._pause(self._rest)
        taken = light()
        return bool(taken.clock) and self.accepts(taken)

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

    When throttling outlasts the gate's patience, samples are kept as they are and the series has `gave_up` set. Where
    `once.light` offers launches without work and these run at the best clock, `OWN_DOING` times in turn with samples
    that do not, the work itself draws so much power: its samples are kept, and the series is `limited`.
    Raise MeasurementInvalid where a function that times are read or counted with was replaced.
    """
    series, started, own_doing = Series(), clock(), 0
    light: Callable[[], Sample] | None = getattr(once, "light", None)
    while not criterion.finished([one.seconds for one in series.samples], clock() - started):
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

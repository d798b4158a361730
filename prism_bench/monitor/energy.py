"""Energy of one launch: from the board's counter, held against integrated power, with its interval and its scope.

The counter does not change for tens of milliseconds and then jumps, so only whole steps count: a window opens at a jump
and closes at a later one, and the launches in it follow from the readings between. Windows share no jump, so that their
errors are independent, and their scatter contains all noise of the counter: the mean of the windows has the interval of
Student's t. The sensor behind the counter has an error that no repetition shows: on some boards it samples only a
quarter of the time (Z. Yang, K. Adamek, W. Armour, "Part-time power measurements", SC 2024).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import hypot, sqrt
from statistics import fmean, median, stdev
from time import perf_counter, sleep
from typing import Protocol

from prism_bench.errors import MeasurementInvalid
from prism_bench.measure import Criterion
from prism_bench.monitor.nvml import DeviceLost
from prism_bench.record.measurement import Energy, Measurement
from prism_bench.units import count_text, share_text

METRIC = "energy"

# NVML states that power readings are within 5 % (nvml.h, nvmlDeviceGetPowerUsage, of its first boards; of later ones it
# states nothing). Two figures that are each off by 5 % differ by 10 % at most; what differs by more is not explained by
# the sensor, so one of the two does not show this load.
MOST_DISAGREEMENT = 0.10
_SETTLING = 0.3  # seconds: power rises for two or three steps of an H200's counter after the device was idle
_WINDOW = 0.2  # seconds, or two steps: a jump is seen some milliseconds late, which is a percent of it
_KNOWN_STEPS = 3  # after which the counter's step counts as known
_LEAST_WINDOWS = 3
_WORST = 0.25  # an energy less certain is not reported
_STILL = 10  # steps without a jump: the counter has stopped
_IDLE_STEPS, _IDLE_WINDOW = 2, 0.15  # of the idle device: the least steps and seconds that are counted
_IDLE_HOLDS = 60.0  # seconds for which the idle power is taken to stay: a warmer board draws more
_IDLE_SECONDS, _LOOK = 1.0, 2e-3  # after which the idle power stays unknown; between two readings
_NORMAL = 1.96
_RESOLUTION = 1e-3  # joules: the counter is in millijoules
_WRAPS = (2**32 * _RESOLUTION, 2**64 * _RESOLUTION)
# 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom.
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


class Meter(Protocol):
    """What reads a board."""

    def energy(self) -> float | str:
        """Return the energy counter in joules, or why it is unknown."""
        ...

    def power(self) -> Mapping[str, float]:
        """Return the power in watts of each scope that the board offers."""
        ...


@dataclass(frozen=True)
class _Jump:
    """Jump of the counter: it read `joules` and `launches` were done at `at`; it read less at `before`."""

    before: float
    at: float
    joules: float
    launches: float
    power: Mapping[str, float] = field(default_factory=dict[str, float])


class _Counter:
    """The counter's jumps, as far as they were seen. Raise MeasurementInvalid for a counter that cannot be used."""

    def __init__(self, meter: Meter, clock: Callable[[], float]) -> None:
        self.jumps: list[_Jump] = []
        self._meter, self._clock = meter, clock
        self.began = self._at = clock()
        self._joules = self._read("no energy counter")

    def look(self, launches: float = 0.0, *, power: bool = False) -> float:
        """Read the counter after so many launches, and after a jump the power, too; return the time."""
        now, joules = self._clock(), self._read("the energy counter does not answer any more")
        if joules < self._joules:
            wrapped = joules < self._joules / 2 and any(0.9 * end < self._joules <= end for end in _WRAPS)
            raise MeasurementInvalid(
                f"the energy counter {'wrapped' if wrapped else 'was reset'}: it went from {self._joules:.6g} J to "
                f"{joules:.6g} J"
            )
        if joules > self._joules:  # the next jump is a step away, so reading the power delays no jump
            self.jumps.append(_Jump(self._at, now, joules, launches, self._meter.power() if power else {}))
        elif len(self.jumps) > _KNOWN_STEPS and now - self.jumps[-1].at > _STILL * self.step:
            still = f"it has not moved for {now - self.jumps[-1].at:.2g} s"
            raise MeasurementInvalid(f"the energy counter stopped: {still}, its step is {self.step:.2g} s")
        self._at, self._joules = now, joules
        return now

    @property
    def step(self) -> float:
        """The median time between two jumps."""
        return median(later.at - earlier.at for earlier, later in pairwise(self.jumps))

    def _read(self, fault: str) -> float:
        joules = self._meter.energy()
        if isinstance(joules, str):
            raise MeasurementInvalid(f"{fault}: {joules}")
        return joules


class IdlePower:
    """Idle power of a board and its error in watts, which is measured anew after a minute."""

    def __init__(self) -> None:
        self._known: tuple[float, tuple[float, float] | None] | None = None

    def of(
        self, meter: Meter, clock: Callable[[], float], pause: Callable[[float], None]
    ) -> tuple[float, float] | None:
        """Return it; None if the counter moves too rarely."""
        if self._known is None or clock() - self._known[0] > _IDLE_HOLDS:
            measured = _idle_power(meter, clock, pause)
            self._known = clock(), measured
        return self._known[1]


def energy_per_launch(
    replays: Iterator[int],
    meter: Meter,
    criterion: Criterion,
    idle: IdlePower | None = None,
    *,
    clock: Callable[[], float] = perf_counter,
    pause: Callable[[float], None] = sleep,
) -> Measurement:
    """Return the energy of one launch in each window in joules, with its interval and scope, or why it is unknown.

    The device rests until the first of the `replays`, which then keep it busy and yield the launches done so far. The
    time between two yields must be shorter than a step of the counter. A measurement that integrated power contradicts
    is invalid. The `idle` power of the board is measured before, unless it is known.
    """
    try:
        idle_power = (idle or IdlePower()).of(meter, clock, pause)
        counter = _Counter(meter, clock)
        return _judged(_windows(replays, counter, criterion), counter, idle_power)
    except MeasurementInvalid as error:
        return unknown(str(error))
    except DeviceLost as error:
        return unknown(f"lost: {error}")


def unknown(reason: str) -> Measurement:
    """Return a measurement without an energy, and why."""
    return Measurement(METRIC, "kernel", (), reason=reason, energy=Energy(reason=reason))


def _idle_power(meter: Meter, clock: Callable[[], float], pause: Callable[[float], None]) -> tuple[float, float] | None:
    """Return the idle device's power by the counter and its error, in watts; None if the counter moves too rarely."""
    counter = _Counter(meter, clock)
    while len(counter.jumps) <= _IDLE_STEPS or counter.jumps[-1].at - counter.jumps[0].at < _IDLE_WINDOW:
        if counter.look() - counter.began > _IDLE_SECONDS:
            return None
        pause(_LOOK)
    first, last = counter.jumps[0], counter.jumps[-1]
    watts = (last.joules - first.joules) / (last.at - first.at)
    return watts, _NORMAL * sqrt(_seen_variance(first, last)) * watts


_Window = tuple[_Jump, _Jump]


def _windows(replays: Iterator[int], counter: _Counter, criterion: Criterion) -> list[_Window]:
    """Return the windows that are certain enough by the criterion, or all that its time allows."""
    length = jumps = 0
    for launches in replays:
        now = counter.look(launches, power=True)
        if len(counter.jumps) == jumps and now - counter.began < criterion.seconds:
            continue
        jumps = len(counter.jumps)
        if not length and len(counter.jumps) > _KNOWN_STEPS:
            length = max(2, round(_WINDOW / counter.step))
        settled = [jump for jump in counter.jumps if jump.at >= counter.began + _SETTLING]
        windows = [
            (settled[start], settled[start + length]) for start in range(0, len(settled) - length, length + 1) if length
        ]
        enough = len(windows) >= criterion.min_samples
        if enough and (len(windows) >= criterion.max_samples or _is_within(windows, criterion.precision)):
            return windows
        if now - counter.began >= criterion.seconds:
            if len(windows) >= _LEAST_WINDOWS and _is_within(windows, _WORST):
                return windows
            moved = f"moved {count_text(len(counter.jumps), 'time')}" if counter.jumps else "did not move"
            seconds = now - counter.began
            raise MeasurementInvalid(f"the energy counter {moved} in {seconds:.2g} s, too coarse for one launch")
    raise MeasurementInvalid("the kernel could not be repeated")


def _each(window: _Window) -> float:
    """Return the joules of one launch in the window."""
    first, last = window
    if last.launches <= first.launches:
        raise MeasurementInvalid("no launch ended between two jumps of the energy counter")
    return (last.joules - first.joules) / (last.launches - first.launches)


def _mean(windows: Sequence[_Window]) -> tuple[float, float]:
    """Return the mean joules of a launch and the half-width of its 95 % interval.

    The windows' scatter gives it by Student's t. Few windows may agree by luck, so it is at least what the times
    between two readings of the counter allow, which is known without any scatter.
    """
    values = [_each(window) for window in windows]
    mean, quantile = fmean(values), _STUDENT[min(len(values) - 1, len(_STUDENT)) - 1]
    least = _NORMAL * mean * sqrt(fmean(_seen_variance(*window) for window in windows))
    return mean, max(quantile * stdev(values), least) / sqrt(len(values))


def _seen_variance(first: _Jump, last: _Jump) -> float:
    """Return the relative variance of a window: each jump is anywhere between two readings of the counter."""
    gaps = hypot(first.at - first.before, last.at - last.before) / (last.at - first.at)
    return (gaps**2 + 2 * (_RESOLUTION / (last.joules - first.joules)) ** 2) / 12


def _is_within(windows: Sequence[_Window], share: float) -> bool:
    mean, half = _mean(windows)
    return half <= share * mean


def _judged(windows: Sequence[_Window], counter: _Counter, idle: tuple[float, float] | None) -> Measurement:
    """Return the measurement of these windows; invalid where integrated power contradicts the counter."""
    mean, half = _mean(windows)
    seconds = sum(last.at - first.at for first, last in windows)
    launches = sum(last.launches - first.launches for first, last in windows)
    jumps = [jump for jump in counter.jumps if windows[0][0].at <= jump.at <= windows[-1][1].at]
    watts = (jumps[-1].joules - jumps[0].joules) / (jumps[-1].at - jumps[0].at)
    apart = {scope: watts / power - 1 for scope, power in _integrated(jumps).items()}
    scope = min(apart, key=lambda name: abs(apart[name])) if apart else None
    energy = Energy(
        joules=mean,
        uncertainty=half,
        window=seconds,
        launches=round(launches),
        idle_power=idle[0] if idle else None,
        net_joules=max(mean - idle[0] * seconds / launches, 0.0) if idle else None,
        net_uncertainty=hypot(half, idle[1] * seconds / launches) if idle else None,
        step=counter.step,
        scope=scope,
        disagreement=apart[scope] if scope else None,
    )
    measured = Measurement(METRIC, "kernel", (tuple(_each(window) for window in windows),), energy=energy)
    if scope is None:
        return measured
    if abs(apart[scope]) <= MOST_DISAGREEMENT:
        return measured
    reason = f"the energy counter shows {watts:.0f} W and integrated power {watts / (1 + apart[scope]):.0f} W: "
    limit = share_text(MOST_DISAGREEMENT)
    reason += f"{share_text(abs(apart[scope]))} apart, and more than {limit} is not the sensor's error"
    refused = Energy(reason=reason, scope=scope, disagreement=apart[scope], step=counter.step)
    return Measurement(METRIC, "kernel", measured.processes, valid=False, reason=reason, energy=refused)


def _integrated(jumps: Sequence[_Jump]) -> dict[str, float]:
    """Return the mean power of each scope that was read at every jump, by the trapezoidal rule.

    NVML offers the counter without a scope, and on Grace Hopper it counts the whole module (ml-energy/zeus, pull
    request 172), where power has both scopes (nvml.h, NVML_POWER_SCOPE_GPU and _MODULE). So the counter's scope is the
    one whose power agrees with it; of two that agree equally the GPU's.
    """
    whole = jumps[-1].at - jumps[0].at
    scopes = [scope for scope in jumps[0].power if all(jump.power.get(scope, 0.0) > 0 for jump in jumps)]
    return {
        scope: sum(
            (later.at - earlier.at) * (earlier.power[scope] + later.power[scope]) / 2
            for earlier, later in pairwise(jumps)
        )
        / whole
        for scope in scopes
    }

"""Energy of one launch: from the board's counter, held against integrated power, with its interval and its scope.

The counter does not change for tens of milliseconds and then jumps. Only at a jump is its value that of this moment, so
the energy of a launch is the slope of the least-squares line of the counter over the launches, through the jumps. How
far the jumps are from it gives the interval. The sensor behind the counter has an error that no repetition shows: on
some boards it samples only a quarter of the time (Z. Yang, K. Adamek, W. Armour, "Part-time power measurements",
SC 2024).

It ends as soon as that is certain enough, because a board that draws more than its limit is throttled, an H200 after
0.8 s, and from then on takes less energy for a launch than while it was timed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import hypot, sqrt
from operator import itemgetter
from statistics import fmean, median
from time import perf_counter, sleep
from typing import Protocol

from prism_bench.errors import BackendUnavailable, MeasurementInvalid
from prism_bench.measure import Criterion
from prism_bench.measure.distributions import student_quantile
from prism_bench.monitor.nvml import DeviceLost, by_uuid, devices, opened
from prism_bench.monitor.probe import Probe
from prism_bench.record.measurement import Energy, Measurement
from prism_bench.units import count_text, share_text

METRIC = "energy"

# NVML states that power readings are within 5 % (nvml.h, nvmlDeviceGetPowerUsage, of its first boards; of later ones it
# states nothing). Two figures that are each off by 5 % differ by 10 % at most; what differs by more is not explained by
# the sensor, so one of the two does not show this load.
MOST_DISAGREEMENT = 0.10
_SETTLING = 0.1  # seconds: the step of an H200's counter in which the device begins to work
_KNOWN_STEPS = 3  # after which the counter's step counts as known
_LEAST_JUMPS, _LEAST_SPAN = 6, 0.5  # seconds: few jumps may be near a line by luck
_WORST = 0.25  # an energy less certain is not reported
_STILL = 10  # steps without a jump: the counter has stopped
_IDLE_STEPS, _IDLE_WINDOW = 2, 0.15  # of the idle device: the least steps and seconds that are counted
_IDLE_HOLDS = 60.0  # seconds for which the idle power is taken to stay: a warmer board draws more
_IDLE_SECONDS, _LOOK = 1.0, 2e-3  # after which the idle power stays unknown; between two readings
_NORMAL = 1.96
_RESOLUTION = 1e-3  # joules: the counter is in millijoules
_WRAPS = (2**32 * _RESOLUTION, 2**64 * _RESOLUTION)

SLICE = "the energy counter is the whole GPU's, and this is a slice of it"


def missing_counter(backend: str, uuid: str | None) -> str | None:
    """Return why the energy of launches on the backend's device, a GPU with that UUID, is unknown; None if it is read.

    The null backend's script has a counter for each case.
    """
    if backend == "null":
        return None
    if backend != "cuda":
        return f"only a GPU has an energy counter, not the backend {backend}"
    try:
        with opened() as pynvml:
            device = by_uuid(devices(pynvml), uuid) if uuid else None
            if device is None:
                return "no energy counter: NVML does not list this GPU"
            joules = Probe(pynvml, device).energy()
    except (BackendUnavailable, DeviceLost) as error:
        return f"no energy counter: {error}"
    return SLICE if device.is_slice else f"no energy counter: {joules}" if isinstance(joules, str) else None


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
    """Return the energy of one launch in joules, with its interval and scope, or why it is unknown.

    The device rests until the first of the `replays`, which then keep it busy and yield the launches done so far. The
    time between two yields must be shorter than a step of the counter. A measurement that integrated power contradicts
    is invalid. The `idle` power of the board is measured before, unless it is known.
    """
    try:
        idle_power = (idle or IdlePower()).of(meter, clock, pause)
        counter = _Counter(meter, clock)
        return _judged(_jumps(replays, counter, criterion), counter, idle_power)
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
    return watts, _NORMAL * sqrt(2 * _late_variance((first, last), watts)) / (last.at - first.at)


def _jumps(replays: Iterator[int], counter: _Counter, criterion: Criterion) -> list[_Jump]:
    """Return the jumps whose line is certain enough by the criterion, else the most certain ones in its time.

    These may be the first ones: no line fits a board that is throttled in between.
    """
    known, best = 0, (_WORST, list[_Jump]())
    for launches in replays:
        now = counter.look(launches, power=True)
        is_over = now - counter.began >= criterion.seconds
        if len(counter.jumps) == known and not is_over:
            continue
        known = len(counter.jumps)
        jumps = [jump for jump in counter.jumps if jump.at >= counter.began + _SETTLING]
        is_enough = len(jumps) >= criterion.min_samples and jumps[-1].at - jumps[0].at >= _LEAST_SPAN
        if is_enough or (is_over and len(jumps) >= _LEAST_JUMPS):
            joules, half = _line(jumps)
            best = min(best, (half / joules, jumps), key=itemgetter(0))
        if is_enough and (best[0] <= criterion.precision or len(jumps) >= criterion.max_samples):
            return best[1]
        if is_over:
            if best[1]:
                return best[1]
            moved = f"moved {count_text(len(counter.jumps), 'time')}" if counter.jumps else "did not move"
            seconds = now - counter.began
            raise MeasurementInvalid(f"the energy counter {moved} in {seconds:.2g} s, too coarse for one launch")
    raise MeasurementInvalid("the kernel could not be repeated")


def _line(jumps: Sequence[_Jump]) -> tuple[float, float]:
    """Return the joules of a launch and the half-width of their 95 % interval, by Student's t.

    Errors of two kinds are looked for, and the wider interval is taken. A jump that is seen late is off the line alone;
    by how much, the times between two readings allow without any scatter. Noise of a step stays in all later jumps: it
    is what the scatter of the steps has beyond that. Two readings are late in a step; one is subtracted, for with both
    subtracted too many intervals miss the mean in simulations (88 to 80 % hold it where the noise is 2 % of a step).
    """
    first, last = jumps[0], jumps[-1]
    if last.launches <= first.launches:
        raise MeasurementInvalid("no launch ended between two jumps of the energy counter")
    launches, joules = fmean(jump.launches for jump in jumps), fmean(jump.joules for jump in jumps)
    aside = [jump.launches - launches for jump in jumps]
    spread = sum(each**2 for each in aside)
    slope = sum(each * jump.joules for each, jump in zip(aside, jumps, strict=True)) / spread
    misses = [jump.joules - joules - slope * each for each, jump in zip(aside, jumps, strict=True)]
    freedom = len(jumps) - 2
    quantile = student_quantile(freedom, 0.975)
    watts = (last.joules - first.joules) / (last.at - first.at)
    late = _late_variance(jumps, watts)
    alone = max(quantile * sqrt(sum(each**2 for each in misses) / freedom), _NORMAL * sqrt(late)) / sqrt(spread)
    of_steps = max(sum((after - before) ** 2 for before, after in pairwise(misses)) / freedom - late, 0.0)
    later = [*accumulate(reversed(aside))][:-1]  # how much the slope grows by a joule more in each of the steps
    return slope, max(alone, quantile * sqrt(of_steps * sum(each**2 for each in later)) / spread)


def _late_variance(jumps: Sequence[_Jump], watts: float) -> float:
    """Return the variance of a jump's joules: at that power it was anywhere between two readings of the counter."""
    return fmean((watts * (jump.at - jump.before)) ** 2 + _RESOLUTION**2 for jump in jumps) / 12


def _samples(jumps: Sequence[_Jump]) -> tuple[float, ...]:
    """Return the joules of a launch between jumps of the first and of the last third; each jump is in one of them."""
    third = len(jumps) // 3
    pairs = zip(jumps[:third], jumps[-third:], strict=True)
    return tuple((last.joules - first.joules) / (last.launches - first.launches) for first, last in pairs)


def _judged(jumps: Sequence[_Jump], counter: _Counter, idle: tuple[float, float] | None) -> Measurement:
    """Return the measurement by these jumps; invalid where integrated power contradicts the counter."""
    (joules, half), first, last = _line(jumps), jumps[0], jumps[-1]
    seconds, launches = last.at - first.at, last.launches - first.launches
    watts = (last.joules - first.joules) / seconds
    apart = {scope: watts / power - 1 for scope, power in _integrated(jumps).items()}
    scope = min(apart, key=lambda name: abs(apart[name])) if apart else None
    energy = Energy(
        joules=joules,
        uncertainty=half,
        window=seconds,
        launches=round(launches),
        idle_power=idle[0] if idle else None,
        net_joules=max(joules - idle[0] * seconds / launches, 0.0) if idle else None,
        net_uncertainty=hypot(half, idle[1] * seconds / launches) if idle else None,
        step=counter.step,
        scope=scope,
        disagreement=apart[scope] if scope else None,
    )
    measured = Measurement(METRIC, "kernel", (_samples(jumps),), energy=energy)
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
    """Return the mean power of each scope that was read at every jump; it is taken for that of the step that ended.

    NVML offers the counter without a scope, and on Grace Hopper it counts the whole module (ml-energy/zeus, pull
    request 172), where power has both scopes (nvml.h, NVML_POWER_SCOPE_GPU and _MODULE). So the counter's scope is the
    one whose power agrees with it; of two that agree equally the GPU's.
    """
    whole = jumps[-1].at - jumps[0].at
    scopes = [scope for scope in jumps[0].power if all(jump.power.get(scope, 0.0) > 0 for jump in jumps)]
    return {
        scope: sum((later.at - earlier.at) * later.power[scope] for earlier, later in pairwise(jumps)) / whole
        for scope in scopes
    }

"""Measurement of one prepared case, watched and timed step by step."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from time import perf_counter, sleep
from typing import Any

from prism_bench.backends import Backend, Runnable
from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.errors import MeasurementInvalid
from prism_bench.measure import ClockGate, Criterion, sample
from prism_bench.monitor import Blind, Rules, Sampler, energy_per_launch, remarks
from prism_bench.monitor.nvml import DeviceLost
from prism_bench.record.measurement import Energy, Evidence, Measurement, Sample
from prism_bench.run.settings import Settings
from prism_bench.run.timed_launches import TimedLaunches
from prism_bench.spec.metric import MEASURED
from prism_bench.units import share_text, time_text

# Stopwatch of a case: the seconds that a worker process spends on it, by phase.
#
# `phase` is called deep inside a measurement, where no argument can carry the stopwatch, so the one that runs is kept
# in a context variable. The phases of a process that times are `preparing` (inputs, buffers, loading), `verifying`
# (also of timed launches), `kernel`, `energy`, one `peer:<name>` for each peer, `peers importing` (libraries), `peers
# forms` (the names of all forms), `peers state` (global state and memory before and after a peer), and `cpu`. A process
# that times nothing spends all of it `untimed`.

_PREPARING, VERIFYING, KERNEL, CPU, UNTIMED = "preparing", "verifying", "kernel", "cpu", "untimed"
_ENERGY, IMPORTING, FORMS, STATE = "energy", "peers importing", "peers forms", "peers state"
COMPILING, TIMED = "compiling", "timed"  # stages of a run, as `untimed` is
_DIGITS = 4  # a tenth of a millisecond


class Stopwatch:
    """Seconds by phase; the time of a phase inside another one counts for the inner one only."""

    def __init__(self, timed: bool, clock: Callable[[], float] = perf_counter) -> None:
        """Without `timed`, every phase counts as `untimed`."""
        self._timed, self._clock = timed, clock
        self._open, self._since = [_PREPARING], clock()
        self._seconds: dict[str, float] = {}

    def begin(self, name: str) -> None:
        """Count what follows for the phase `name`."""
        self._settle()
        self._open.append(name)

    def end(self) -> None:
        """Count what follows for the phase around the one that ends."""
        self._settle()
        self._open.pop()

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each phase until now, those left out that took none."""
        self._settle()
        rounded = {name: round(seconds, _DIGITS) for name, seconds in self._seconds.items()}
        return {name: seconds for name, seconds in rounded.items() if seconds}

    def _settle(self) -> None:
        now, name = self._clock(), self._open[-1] if self._timed else UNTIMED
        self._seconds[name] = self._seconds.get(name, 0.0) + now - self._since
        self._since = now


_CURRENT: ContextVar[Stopwatch | None] = ContextVar("prism_bench_stopwatch", default=None)


@contextmanager
def running(timed: bool) -> Generator[Stopwatch]:
    """Yield a new stopwatch, which `phase` counts for inside the `with` block; `timed` as in `Stopwatch`."""
    stopwatch = Stopwatch(timed)
    token = _CURRENT.set(stopwatch)
    try:
        yield stopwatch
    finally:
        _CURRENT.reset(token)


@contextmanager
def phase(name: str) -> Generator[None]:
    """Count the `with` block for the phase `name` of the stopwatch that runs, if one does."""
    stopwatch = _CURRENT.get()
    if stopwatch is None:
        yield
        return
    stopwatch.begin(name)
    try:
        yield
    finally:
        stopwatch.end()


# Device watcher: samples clocks, power and other processes during a measurement and repeats disturbed ones.

_LONGEST_REPLAY = 0.05  # seconds; three of them are enqueued when the counter is first read
# What the host spends does not depend on the device's clock.
_OF_THE_HOST = ("launch_time",)


class DeviceWatcher:
    """Watches the device for one process: `gate` knows the fastest clock of the samples, the sampler the rest."""

    def __init__(
        self,
        sampler: Sampler | Blind | None = None,
        rules: Rules | None = None,
        *,
        pause: Callable[[float], None] = sleep,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._sampler, self._rules = sampler or Blind(), rules or Rules()
        self._pause, self._clock, self._spent = pause, clock, 0.0
        self.gate = ClockGate(self._rules.clock_share, pause=pause)
        self._best = 0.0

    def watched(self, measure: Callable[[], list[Measurement]]) -> list[Measurement]:
        """Return the measurements of `measure` with their evidence; repeat it within the rules' limits while in doubt.

        A measurement that stays in doubt is invalid and has the reason. A note has the reason of each earlier attempt.
        """
        reasons: list[str | None] = []
        began = 0.0
        while True:
            with self._sampler.window() as window:
                measurements = measure()
            if reasons:
                self._spent += self._clock() - began
            evidence = window.evidence
            if evidence is not None:
                self._best = max(self._best, evidence.highest("sm_clock") or 0.0)
                measurements = [self._judged(measurement, evidence) for measurement in measurements]
            doubts = [invalid.reason for invalid in measurements if invalid.samples and not invalid.valid]
            if not doubts or len(reasons) >= self._rules.repeats or self._spent >= self._rules.patience:
                notes = tuple(f"measured again, because {reason}" for reason in reasons)
                return [replace(measurement, notes=(*measurement.notes, *notes)) for measurement in measurements]
            reasons.append(doubts[0])
            began = self._clock()
            self._pause(self._rules.rest)

    def _judged(self, measurement: Measurement, evidence: Evidence) -> Measurement:
        """Return the measurement with its evidence, invalid where the device was disturbed meanwhile."""
        judged = replace(measurement, evidence=(evidence,), notes=(*measurement.notes, *remarks(evidence)))
        if not judged.valid or judged.metric in _OF_THE_HOST:
            return judged
        # Samples that carry their own clock were judged by it, one by one; the driver's clock judges the others.
        of_the_clock = MEASURED[judged.metric].clock in ("events", "graph") and not judged.clocks
        doubts = self._rules.doubts(evidence, self._best if of_the_clock else None)
        return replace(judged, valid=False, reason="; ".join(doubts)) if doubts else judged

    def energy(self, once: Any) -> Energy | None:
        """Return the energy of one launch of a hot timer that can repeat it; None without a sampler."""
        if not self._sampler.probes or not hasattr(once, "repeated"):
            return None
        probe = self._sampler.probes[0]
        if probe.device.is_slice:
            return Energy(reason="the energy counter is the whole GPU's, and this is a slice of it")
        if once.replay_seconds > _LONGEST_REPLAY:
            replay = time_text(once.replay_seconds)
            return Energy(reason=f"a replay of its graph takes {replay}, longer than a step of the energy counter")
        try:
            with closing(once.repeated()) as replays:
                return energy_per_launch(replays, probe.energy)
        except DeviceLost as error:
            return Energy(reason=f"lost: {error}")
        except MeasurementInvalid as error:
            return Energy(reason=str(error))


# Measurement of one prepared case: its metrics, those of a peer, and the CPU.

OUT_OF_MEMORY = "out of memory"
STICKY = ("illegal", "IllegalAddress", "launch failure", "LaunchFailed", "misaligned", "device-side assert")
_WARM_UP = 3
_WARM_UP_SECONDS = 0.02  # what takes longer than this is warm after one call


def measure_runnable(
    runnable: Runnable,
    subject: str,
    settings: Settings,
    watcher: DeviceWatcher,
    *,
    skipped: Sequence[str] = (),
    energy: bool = False,
    launches: TimedLaunches | None = None,
    step: Callable[[], None] = lambda: None,
) -> list[Measurement]:
    """Return every metric that the runnable offers and that is not `skipped`, and the host's launch cost.

    `subject` is `kernel`, `peer:<name>` or `cpu`. With `energy` the hot time has the energy of a launch. The outputs of
    the timed `launches` are verified, where these are given: TimedLaunchWrong. `step` is called before each metric.
    """
    measurements: list[Measurement] = []
    for metric, set_up in runnable.timers().items():
        if metric in skipped:
            continue
        step()
        try:
            once = set_up()
            timer = launches.watched(metric, once) if launches else None
            criterion = settings.criterion(metric, subject)
            series = watcher.watched(partial(measure_metric, metric, subject, timer or once, criterion, watcher.gate))
            with phase(VERIFYING):
                reason = timer.finish() if timer else None
        except MeasurementInvalid as error:
            measurements.append(empty(metric, subject, str(error)))
            continue
        if reason:
            series = [replace(entry, valid=False, reason=reason) if entry.valid else entry for entry in series]
        if energy and metric == "hot_time":
            with phase(_ENERGY):
                series[-1] = replace(series[-1], energy=watcher.energy(once))
        measurements += series
    return measurements


def measure_metric(
    metric: str, subject: str, once: Callable[[], Sample], criterion: Criterion, gate: ClockGate
) -> list[Measurement]:
    """Return a measurement of `once`, with `launch_time` where cold samples carry the host's cost."""
    if criterion.max_samples > 1:
        _warm_up(once)
    series = sample(once, criterion, gate)
    clocks = tuple(taken.clock for taken in series.samples if taken.clock)
    share = share_text(gate.share)
    reason = f"throttled throughout: the clock never came back to {share} of its best" if series.gave_up else None
    notes = (f"limited by power: its work holds the clock below {share} of its best",) if series.limited else ()
    measured = Measurement(
        metric,
        subject,
        (tuple(taken.seconds for taken in series.samples),),
        (clocks,) if clocks else (),
        series.throttled,
        valid=not series.gave_up,
        reason=reason,
        notes=notes,
    )
    launches = tuple(taken.launch_seconds for taken in series.samples if taken.launch_seconds is not None)
    if metric != "cold_time" or not launches:
        return [measured]
    of_the_host = replace(measured, metric="launch_time", processes=(launches,), clocks=(), valid=True, reason=None)
    return [measured, of_the_host]


def _warm_up(once: Callable[[], Sample]) -> None:
    started = perf_counter()
    for _ in range(_WARM_UP):
        once()
        if perf_counter() - started > _WARM_UP_SECONDS:
            return


def measure_cpu(runnable: Runnable, settings: Settings) -> list[Measurement]:
    """Return the time of the float64 NumPy reference on the same inputs, by the wall clock."""
    case = runnable.case
    if not settings.cpu_baseline or case.label != "S0" or case.variant:
        return []
    with NumpyBackend().prepare(case, case.inputs(settings.seeds[-1])) as reference:
        return measure_runnable(reference, "cpu", settings, DeviceWatcher())


def empty(metric: str, subject: str, reason: str) -> Measurement:
    """Return a measurement without samples, and why."""
    return Measurement(metric, subject, (), valid=False, reason=reason)


def is_sticky(backend: Backend, error: BaseException) -> bool:
    """Return whether a device error has made the whole process useless, so that it must end."""
    text = f"{type(error).__name__} {error}"
    return backend.name == "cuda" and (any(word in text for word in STICKY) or not backend.answers())


def lacks_memory(text: str) -> bool:
    """Return whether an error of CuPy, PyTorch or the driver is about missing memory.

    cuBLAS is not initialised where it finds no memory for itself.
    """
    return any(word in text.lower() for word in (OUT_OF_MEMORY, "out_of_memory", "alloc_failed", "not_initialized"))

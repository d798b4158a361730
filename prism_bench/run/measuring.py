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
        """Return what `measure` returns, with its evidence; measure again, within the rules' limits, while in doubt.

        What stays in doubt is invalid and has the reason. A note names the reason of each earlier measurement.
        """
        found, before = self._once(measure), []
        while self._again(found, len(before)):
            before.append(next(one.reason for one in found if one.samples and not one.valid))
            began = self._clock()
            self._pause(self._rules.rest)
            found = self._once(measure)
            self._spent += self._clock() - began
        notes = tuple(f"measured again, because {reason}" for reason in before)
        return [replace(one, notes=(*one.notes, *notes)) for one in found]

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

    def _once(self, measure: Callable[[], list[Measurement]]) -> list[Measurement]:
        with self._sampler.window() as window:
            found = measure()
        seen = window.evidence
        if seen is None:
            return found
        self._best = max(self._best, seen.highest("sm_clock") or 0.0)
        return [self._judged(one, seen) for one in found]

    def _judged(self, one: Measurement, seen: Evidence) -> Measurement:
        one = replace(one, evidence=(seen,), notes=(*one.notes, *remarks(seen)))
        if not one.valid or one.metric in _OF_THE_HOST:
            return one
        # Samples that carry their own clock were judged by it, one by one; the driver's clock judges the others.
        of_the_clock = MEASURED[one.metric].clock in ("events", "graph") and not one.clocks
        doubts = self._rules.doubts(seen, self._best if of_the_clock else None)
        return replace(one, valid=False, reason="; ".join(doubts)) if doubts else one

    def _again(self, found: list[Measurement], times: int) -> bool:
        doubtful = any(one.samples and not one.valid for one in found)
        return doubtful and times < self._rules.repeats and self._spent < self._rules.patience


# Measurement of one prepared case: its metrics, those of a peer, and the CPU.

OUT_OF_MEMORY = "out of memory"
STICKY = ("illegal", "IllegalAddress", "launch failure", "LaunchFailed", "misaligned", "device-side assert")
_WARM_UP = 3
_WARM_UP_SECONDS = 0.02  # what takes longer than this is warm after one call


def measure_kernel(
    runnable: Runnable, settings: Settings, watcher: DeviceWatcher, process: int, launches: TimedLaunches | None = None
) -> list[Measurement]:
    """Return every metric that the runnable offers, and the host's launch cost; some in the first process alone.

    There a large case has the energy of a launch too. The outputs of timed `launches` are verified, where these are
    given: TimedLaunchWrong.
    """
    watching = settings.watching
    spent = watching.energy and process == 0 and runnable.case.label in watching.energy_labels
    code = runnable.evidence().get("sass") if runnable.case.name in settings.known_code else None
    skipped = settings.left_out(runnable.case, process, code)
    return _measure(runnable, "kernel", settings, watcher, skipped=skipped, energy=spent, launches=launches)


def measure_peer(
    name: str,
    peer: Runnable,
    settings: Settings,
    watcher: DeviceWatcher,
    *,
    process: int = 0,
    step: Callable[[], None] = lambda: None,
) -> list[Measurement]:
    """Return the metrics that the peer `name` offers and this process measures, by the kernel's clocks.

    `step` is called before each of them.
    """
    skipped = settings.left_out_of_peers(process)
    return _measure(peer, f"peer:{name}", settings, watcher, skipped=skipped, step=step)


def measure_cpu(runnable: Runnable, settings: Settings) -> list[Measurement]:
    """Return the time of the float64 NumPy reference on the same inputs, by the wall clock."""
    case = runnable.case
    if not settings.cpu_baseline or case.label != "S0" or case.variant:
        return []
    with NumpyBackend().prepare(case, case.inputs(settings.seeds[-1])) as reference:
        return _measure(reference, "cpu", settings, DeviceWatcher())


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


def _measure(
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
    found: list[Measurement] = []
    for metric, set_up in runnable.timers().items():
        if metric in skipped:
            continue
        step()
        try:
            once = set_up()
            found += _series(
                metric, subject, once, settings.criterion(metric, subject), watcher=watcher, launches=launches
            )
        except MeasurementInvalid as error:
            found.append(empty(metric, subject, str(error)))
            continue
        if energy and metric == "hot_time":
            with phase(_ENERGY):
                found[-1] = replace(found[-1], energy=watcher.energy(once))
    return found


def _series(
    metric: str,
    subject: str,
    once: Callable[[], Sample],
    criterion: Criterion,
    *,
    watcher: DeviceWatcher,
    launches: TimedLaunches | None,
) -> list[Measurement]:
    """Return the samples of `once` as measurements; the outputs of each launch are checked where `launches` do."""
    watched = launches.watched(metric, once) if launches else None
    found = watcher.watched(partial(measure_metric, metric, subject, watched or once, criterion, watcher.gate))
    with phase(VERIFYING):
        reason = watched.finish() if watched else None
    return [replace(one, valid=False, reason=reason) if reason and one.valid else one for one in found]


def measure_metric(
    metric: str, subject: str, once: Callable[[], Sample], criterion: Criterion, gate: ClockGate
) -> list[Measurement]:
    """Return a measurement of `once`, with `launch_time` where cold samples carry the host's cost."""
    if criterion.max_samples > 1:
        _warm_up(once)
    series = sample(once, criterion, gate)
    seconds = tuple(one.seconds for one in series.samples)
    clocks = tuple(one.clock for one in series.samples if one.clock)
    share = share_text(gate.share)
    reason = f"throttled throughout: the clock never came back to {share} of its best" if series.gave_up else None
    notes = (f"limited by power: its work holds the clock below {share} of its best",) if series.limited else ()
    measured = Measurement(
        metric,
        subject,
        (seconds,),
        (clocks,) if clocks else (),
        series.throttled,
        valid=not series.gave_up,
        reason=reason,
        notes=notes,
    )
    launches = tuple(one.launch_seconds for one in series.samples if one.launch_seconds is not None)
    if metric != "cold_time" or not launches:
        return [measured]
    return [
        measured,
        replace(measured, metric="launch_time", processes=(launches,), clocks=(), valid=True, reason=None),
    ]


def _warm_up(once: Callable[[], Sample]) -> None:
    started = perf_counter()
    for _ in range(_WARM_UP):
        once()
        if perf_counter() - started > _WARM_UP_SECONDS:
            return

"""Measurement of one prepared case, watched, timed and checked step by step."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from random import Random, SystemRandom
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np

from prism_bench.backends import Backend, Runnable
from prism_bench.backends.base import OutputGuard, StrayElement
from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.errors import MeasurementInvalid, VerificationFailed
from prism_bench.measure import ClockGate, Criterion, sample
from prism_bench.monitor import Blind, Rules, Sampler, remarks
from prism_bench.monitor.energy import METRIC as ENERGY
from prism_bench.monitor.energy import SLICE, IdlePower, energy_per_launch, unknown
from prism_bench.record.measurement import Evidence, Measurement, Sample
from prism_bench.run.settings import Settings
from prism_bench.run.verification import Entry, compare_outputs
from prism_bench.spec.kernel import InOut
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
        self._idle = IdlePower()

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
        metric = MEASURED.get(judged.metric)
        of_the_clock = metric is not None and metric.clock in ("events", "graph") and not judged.clocks
        doubts = self._rules.doubts(evidence, self._best if of_the_clock else None)
        return replace(judged, valid=False, reason="; ".join(doubts)) if doubts else judged

    def energy(self, once: Any, criterion: Criterion) -> list[Measurement]:
        """Return the energy of one launch of a hot timer that can repeat it; nothing where nobody watches the device.

        A scripted timer brings a board, on which no time passes.
        """
        board, blind = getattr(once, "board", None), not self._sampler.probes
        if not hasattr(once, "repeated"):
            return []
        if not board and blind:
            reason = getattr(self._sampler, "reason", None)
            return [unknown(f"no energy counter: {reason}")] if reason else []
        if not board and self._sampler.probes[0].device.is_slice:
            return [unknown(SLICE)]
        if once.replay_seconds > _LONGEST_REPLAY:
            replay = time_text(once.replay_seconds)
            return [unknown(f"a replay of its graph takes {replay}, longer than a step of the energy counter")]

        def measure() -> list[Measurement]:
            with closing(once.repeated()) as replays:
                if board:
                    return [energy_per_launch(replays, board, criterion, clock=board.clock, pause=board.pause)]
                return [energy_per_launch(replays, self._sampler.probes[0], criterion, self._idle)]

        return self.watched(measure)


# Timed launches compared with the verified one: a kernel that stops working once timed is wrong, with no time.
#
# Before each of them some places of the outputs are spoiled; now and then all is overwritten at random; scratch is as
# the last launch left it or as it was when the case was prepared; and sometimes an input differs in one bit. So no
# launch knows in advance what is checked. What differs afterwards from the verified launch is judged by the reference
# and the kernel's own tolerance.

_FIRST_WHOLE, _BETWEEN_WHOLE = (1, 5), (10, 20)  # after how many samples all of the outputs are compared, from and to
_FRESH = 1 / 3  # the share of samples of one launch with an input that no launch has seen, and with cleared scratch
_CHEAP_ELEMENTS = 1 << 16
_JUDGED = 2  # how often a kernel whose bits differ from launch to launch is compared with the reference in one series
_SEEN_GAIN = 1.2  # a launch that is quicker by more where it knows its inputs keeps results
_SEEN_SECONDS = 0.5e-6
_LEAST_FRESH = 4
_IN_GRAPH = (2, 32)  # launches, as many as GRAPH_LENGTH holds
_GRAPH_LENGTH = 400e-6
_GRAPH_GAIN = 1.5  # a launch that takes longer by more where another kernel has changed something does less where not
_GRAPH_SECONDS = 3e-6
_RESTORED = 1e12  # bytes per second, far below any cache's: what putting inputs back costs a launch that follows


class TimedLaunchWrong(VerificationFailed):
    """A timed launch left other outputs than the verified one; `entry` is the place, as records keep it."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.get("error") or f"{entry['output']} is wrong")
        self.entry = entry


class TimedLaunches:
    """The launches of one prepared case that are timed; made when its outputs are those of a verified launch."""

    def __init__(self, backend: Backend, runnable: Runnable, seed: int, random: Random | None = None) -> None:
        self._backend, self.runnable, self._seed = backend, runnable, seed
        self.random = random or SystemRandom()
        self.seconds = 0.0  # that all checks took
        before = perf_counter()
        self._guard = runnable.guard(self.key())
        self._verified = self._guard.digests() if self._guard else {}
        self.is_watched = bool(self._verified)  # else nothing is written, so nothing can be left out
        self.repeatable = True
        self.in_place = any(isinstance(array, InOut) for array in runnable.case.spec.inputs)
        self.seconds += perf_counter() - before

    @property
    def guard(self) -> OutputGuard:
        """The guard of the outputs, for launches that are watched."""
        assert self._guard is not None, "nothing is written"
        return self._guard

    def require_right(self) -> None:
        """Raise TimedLaunchWrong unless the outputs as they are agree with the reference, where that costs little.

        A process that does not verify begins with this.
        """
        arrays = self.runnable.case.spec.arrays
        if (
            self.is_watched
            and sum(self.runnable.case.sizes.elements(array.name)[1] for array in arrays) <= _CHEAP_ELEMENTS
        ):
            self._require_right({})

    def watched(self, metric: str, once: Callable[[], Sample]) -> "WatchedTimer":
        """Return the timer of `metric` with checks of every launch that it times."""
        return WatchedTimer(self, metric, once)

    def key(self) -> int:
        """Return an unpredictable random number."""
        return self.random.getrandbits(63)

    def judge_whole(self, metric: str, sample: int) -> bool:
        """Return whether all outputs are bit for bit the verified ones; TimedLaunchWrong where they are wrong."""
        if self.guard.digests() == self._verified:
            return True
        strays = self.guard.strays()
        self._judge(metric, min([sample, *(stray.sample for stray in strays)]))
        self._judge_planted(metric, strays)
        return False

    def judge_strays(self, metric: str) -> None:
        """Raise TimedLaunchWrong where an output of timed launches is wrong by the reference and the tolerance."""
        self._judge_planted(metric, self.guard.strays())

    def _judge_planted(self, metric: str, strays: list[StrayElement]) -> None:
        if strays:
            self.runnable.restore()
            self.runnable()
            self._plant(strays)
            self._judge(metric, min(stray.sample for stray in strays))

    def _plant(self, strays: list[StrayElement]) -> None:
        """Put what launches left into the outputs, so that it is judged as an output is."""
        arrays = self.runnable.arrays(dict.fromkeys(stray.name for stray in strays))
        for stray in strays:
            array = arrays[stray.name]
            size = array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)
            array.reshape(-1).view(f"u{size}")[stray.index] = np.uint64(stray.bits).astype(f"u{size}")

    def _judge(self, metric: str, sample: int) -> None:
        """Judge by the reference; a kernel that passes is right, and not bitwise repeatable."""
        self._require_right({"metric": metric, "sample": sample})
        self.repeatable = False

    def _require_right(self, when: dict[str, object]) -> None:
        case = self.runnable.case
        outputs = self.runnable.arrays([output.name for output in case.spec.outputs])
        for entry in compare_outputs(self._backend, case, self.runnable.inputs, outputs, self._seed):
            if not entry["passed"]:
                raise TimedLaunchWrong(entry | when)


class WatchedTimer:
    """Timer of one series of samples; call `finish` after the last one."""

    def __init__(self, launches: TimedLaunches, metric: str, once: Callable[[], Sample]) -> None:
        self._launches, self._metric, self._once = launches, metric, once
        self._random = launches.random
        self._number, self._judged = 0, 0
        self._next_whole = self._random.randint(*_FIRST_WHOLE)
        self._chained = metric == "hot_time" and launches.in_place  # each launch works on what the last one left
        self._times: dict[bool, list[float]] = {True: [], False: []}

    @property
    def light(self) -> Callable[[], Sample] | None:
        """A sample of an empty kernel, where the timer offers one."""
        return getattr(self._once, "light", None)

    @property
    def _guard(self) -> OutputGuard:
        return self._launches.guard

    def __call__(self) -> Sample:
        if not self._launches.is_watched:
            return self._once()
        self._number += 1
        if self._chained:
            sample = self._once()
            self._times[False].append(sample.seconds)
            return sample
        whole, key = self._number == self._next_whole, self._launches.key()
        fresh = not whole and self._metric != "hot_time" and self._random.random() < _FRESH
        before = perf_counter()
        nudged = self._prepare(key, whole, fresh)
        between = perf_counter()
        try:
            sample = self._once()
        except MeasurementInvalid:
            self._guard.mend()  # another metric comes next, for which the inputs must be right
            raise
        self._times[fresh].append(sample.seconds)
        after = perf_counter()
        self._look(key, whole, nudged)
        self._launches.seconds += between - before + perf_counter() - after
        return sample

    def finish(self) -> str | None:
        """Return why the times cannot be trusted, or None; TimedLaunchWrong where a launch was wrong."""
        if not self._launches.is_watched or not any(self._times.values()):
            return None
        before = perf_counter()
        try:
            reason = self._in_a_graph() if self._metric == "hot_time" else self._keeps_results()
        except MeasurementInvalid as error:  # the samples taken so far stay
            self._guard.mend()
            reason = f"its launches could not be checked in a graph: {error}"
        self._launches.judge_strays(self._metric)
        self._launches.seconds += perf_counter() - before
        return reason

    def _prepare(self, key: int, whole: bool, fresh: bool) -> bool:
        """Spoil what the launch has to write; return whether an input was changed."""
        if self._metric not in ("cold_time", "hot_time"):  # the cold timer does it for itself
            self._launches.runnable.restore()
        if whole:
            self._guard.overwrite(key)
            return False
        self._guard.spoil(key)
        if fresh:
            self._guard.clear_scratch()
        return fresh and self._guard.nudge(key)

    def _look(self, key: int, whole: bool, nudged: bool) -> None:
        if nudged:
            self._guard.mend()
        if not whole:
            self._guard.compare(self._number, key, rewritten=nudged or not self._launches.repeatable)
            return
        if not self._launches.judge_whole(self._metric, self._number):
            self._judged += 1
        again = self._judged < _JUDGED
        self._next_whole = self._number + self._random.randint(*_BETWEEN_WHOLE) if again else 0

    def _keeps_results(self) -> str | None:
        """Return a reason where every launch on new inputs took longer than the usual one, as with kept results."""
        new, seen = self._times[True], self._times[False]
        if MEASURED[self._metric].clock != "events" or len(new) < _LEAST_FRESH or len(seen) < _LEAST_FRESH:
            return None
        usual = median(seen)
        if min(new) <= usual * _SEEN_GAIN + _SEEN_SECONDS:
            return None
        return (
            f"it keeps results: a launch on inputs that it has seen takes {time_text(usual)}, "
            f"one on inputs that differ in one bit, with cleared scratch, {time_text(median(new))}"
        )

    def _in_a_graph(self) -> str | None:
        """Time the same launches in a graph where each finds something changed; return a reason where they take longer.

        A kernel could work only in a graph's first launch, since the others find everything as it was.
        """
        if getattr(self._once, "launches", None) == 1 and not self._launches.in_place:
            return None  # a graph of one launch has no others
        guard, runnable, key = self._guard, self._launches.runnable, self._launches.key()
        in_place, hot = self._launches.in_place, median(self._times[False])

        def step() -> None:
            runnable.restore()
            guard.spoil(key)
            if not in_place:
                guard.nudge(key)

        def both() -> None:
            step()
            runnable()

        low, high = _IN_GRAPH
        times = max(low, min(high, round(_GRAPH_LENGTH / max(hot, 1e-9))))
        timers = [timer for call in (step, both) if (timer := runnable.replayed(call, times))]
        if len(timers) < 2:
            return None
        alone, together = (min(timer() for _ in range(2 if times == high else 1)) for timer in timers)
        guard.mend()
        guard.compare(self._number, key, rewritten=not in_place or not self._launches.repeatable)
        evicted = 4 * runnable.case.sizes.allocated_bytes / _RESTORED if in_place else 0.0
        if together - alone <= hot * _GRAPH_GAIN + _GRAPH_SECONDS + evicted:
            return None
        return (
            f"it does less where nothing changed: a launch in a graph takes {time_text(hot)}, "
            f"one that finds its outputs spoiled and an input changed {time_text(together - alone)}"
        )


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
    """Return every metric that the runnable offers, that has a criterion and is not `skipped`, and the launch cost.

    `subject` is `kernel`, `peer:<name>` or `cpu`. With `energy` the energy of a launch follows the hot time, whose
    graph it replays. The outputs of the timed `launches` are verified, where these are given: TimedLaunchWrong. `step`
    is called before each metric.
    """
    measurements: list[Measurement] = []
    for metric, set_up in runnable.timers().items():
        if metric in skipped or metric not in settings.criteria:
            continue
        has_energy = energy and metric == "hot_time"
        step()
        try:
            once = set_up()
            timer = launches.watched(metric, once) if launches else None
            criterion = settings.criterion(metric, subject)
            series = watcher.watched(partial(measure_metric, metric, subject, timer or once, criterion, watcher.gate))
            with phase(VERIFYING):
                reason = timer.finish() if timer else None
        except MeasurementInvalid as error:
            measurements += [empty(metric, subject, str(error)), *([unknown(str(error))] if has_energy else [])]
            continue
        if has_energy:
            with phase(_ENERGY):
                series += watcher.energy(once, settings.criterion(ENERGY, subject))
        if reason:
            series = [replace(entry, valid=False, reason=reason) if entry.valid else entry for entry in series]
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

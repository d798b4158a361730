"""Measurement of one prepared case: its metrics, those of a peer, and the CPU."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

from prism_bench.backends import Backend, Runnable
from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.errors import MeasurementInvalid
from prism_bench.measure import ClockGate, Criterion, sample
from prism_bench.record.measurement import Measurement, Sample
from prism_bench.run.settings import Settings
from prism_bench.run.stopwatch import ENERGY, VERIFYING, phase
from prism_bench.run.timed_launches import TimedLaunches
from prism_bench.run.watcher import DeviceWatcher
from prism_bench.units import share_text

OUT_OF_MEMORY = "out of memory"
STICKY = ("illegal", "IllegalAddress", "launch failure", "LaunchFailed", "misaligned", "device-side assert")
WARM_UP = 3
WARM_UP_SECONDS = 0.02  # what takes longer than this is warm after one call


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
    name: str, peer: Runnable, settings: Settings, watcher: DeviceWatcher, *, process: int = 0,
    step: Callable[[], None] = lambda: None,
) -> list[Measurement]:  # fmt: skip
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
    runnable: Runnable, subject: str, settings: Settings, watcher: DeviceWatcher, *, skipped: Sequence[str] = (),
    energy: bool = False, launches: TimedLaunches | None = None, step: Callable[[], None] = lambda: None,
) -> list[Measurement]:  # fmt: skip
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
            with phase(ENERGY):
                found[-1] = replace(found[-1], energy=watcher.energy(once))
    return found


def _series(
    metric: str, subject: str, once: Callable[[], Sample], criterion: Criterion, *, watcher: DeviceWatcher,
    launches: TimedLaunches | None,
) -> list[Measurement]:  # fmt: skip
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
    measured = Measurement(metric, subject, (seconds,), (clocks,) if clocks else (), series.throttled,
                           valid=not series.gave_up, reason=reason, notes=notes)  # fmt: skip
    launches = tuple(one.launch_seconds for one in series.samples if one.launch_seconds is not None)
    if metric != "cold_time" or not launches:
        return [measured]
    return [
        measured,
        replace(measured, metric="launch_time", processes=(launches,), clocks=(), valid=True, reason=None),
    ]


def _warm_up(once: Callable[[], Sample]) -> None:
    started = perf_counter()
    for _ in range(WARM_UP):
        once()
        if perf_counter() - started > WARM_UP_SECONDS:
            return

"""Measurement of a tested function or kernel: verified and timed, by the GPU's or a scripted clock."""

import os
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from prism_bench.analysis.peers import clock_of, peers
from prism_bench.api.callables import CRITERION, TimedCallable, alternated, measured
from prism_bench.backends import open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import MeasurementInvalid, UsageError
from prism_bench.io.files import lock
from prism_bench.measure import ClockGate
from prism_bench.measure.plausibility import measured_limits, peaks_of, valid
from prism_bench.pytest_plugin.outcome import (
    Answers,
    JudgedPromise,
    TestedTime,
    TestedTimes,
    TimedTest,
    Verification,
    judged,
)
from prism_bench.record.measurement import Measurement, merged
from prism_bench.record.run_record import TESTED, CaseResult
from prism_bench.record.schema import Status
from prism_bench.run.job import Run
from prism_bench.run.measuring import measure_metric
from prism_bench.run.session import MeasuringSession
from prism_bench.run.settings import RunClock, Settings
from prism_bench.units import count_text

if TYPE_CHECKING:
    from prism_bench.spec.case import Case


# Clocks for functions: rounds of honest times on the GPU, or scripted times for trials of the plugin.

_Side = Callable[[], Measurement]


class FunctionClock(Protocol):
    """Clock for functions on one backend."""

    name: str

    def facts(self) -> Mapping[str, Any]:
        """Return the machine and software behind the times."""
        ...

    def settle(self) -> None:
        """Wait until the device has done all its work."""
        ...

    def rounds(self, subjects: Sequence[TimedCallable], count: int) -> list[Measurement]:
        """Return the times of one or two functions, each with a group of samples per round.

        Rounds alternate the order of the functions. Raises MeasurementInvalid if a function cannot be timed honestly.
        """
        ...


class _CudaClock:
    """The clock of `prism_bench.benchmark`, with all of its checks."""

    name = "cuda"

    def __init__(self) -> None:
        self._backend = open_backend("cuda")

    def facts(self) -> Mapping[str, Any]:
        """Return the GPU, its limits, and the software."""
        return self._backend.facts()

    def settle(self) -> None:
        """Wait for every stream of the device."""
        from prism_bench.backends.cuda.device import open_cupy

        open_cupy().cuda.runtime.deviceSynchronize()

    def rounds(self, subjects: Sequence[TimedCallable], count: int) -> list[Measurement]:
        """Return cold or hot times, measured on a separate stream."""
        from prism_bench.backends.cuda.backend import borrowed_backend

        with _exclusive(), borrowed_backend() as (backend, library):
            return _rounds([partial(measured, backend, library, subject) for subject in subjects], count)


class _NullClock:
    """Clock with the times that PRISM_BENCH_NULL scripts for the name of a case, or for `peer:<name>`."""

    name = "null"

    def __init__(self) -> None:
        from prism_bench.backends.null import open_backend as open_null

        self._backend = open_null()

    def facts(self) -> Mapping[str, Any]:
        """Return facts of no device."""
        return self._backend.facts()

    def settle(self) -> None:
        """Return at once."""

    def rounds(self, subjects: Sequence[TimedCallable], count: int) -> list[Measurement]:
        """Return scripted times."""
        return _rounds([self._side(subject) for subject in subjects], count)

    def _side(self, subject: TimedCallable) -> _Side:
        once = self._backend.scripted_timer(subject.name)
        return lambda: measure_metric(subject.metric, subject.name, once, CRITERION, ClockGate())[0]


def open_clock(backend: str) -> FunctionClock:
    """Return the clock of a backend; raise BackendUnavailable without a GPU, UsageError for another backend."""
    if backend == "cuda":
        return _CudaClock()
    if backend == "null":
        return _NullClock()
    raise UsageError(f"--prism-backend {backend}: functions are timed on cuda, and on null for trials")


def _rounds(sides: Sequence[_Side], count: int) -> list[Measurement]:
    if len(sides) == 2:
        return list(alternated(sides[0], sides[1], count))
    return [merged([side() for _ in range(count)]) for side in sides]


@contextmanager
def _exclusive() -> Generator[None]:
    """Keep other workers of pytest-xdist off the device: two that time at once disturb each other."""
    if "PYTEST_XDIST_WORKER" not in os.environ or sys.platform == "win32":
        yield
        return
    with (Path(tempfile.gettempdir()) / f"prism-bench-pytest-{os.getuid()}.lock").open("w") as file:
        lock(file.fileno())
        yield


# Measurement of a function: verified, timed in rounds until its limits are decided, verified again.

LABEL = "test"
_START, MORE, MOST = 5, 5, 15  # rounds


@dataclass(frozen=True)
class Measuring:
    """Means of measurement of all tests of a session; `ceiling` measures the copy ceiling on first use."""

    clock: FunctionClock
    device: str
    noise: float
    ceiling: Callable[[], float | None]

    def tested(self, name: str, test: TimedTest) -> TestedTime:
        """Return the result of one test of a function."""
        answers = Answers(test, self.clock.settle)
        verified = answers.check()
        if verified.problem:
            case = _case(name, test, verified, "wrong", verified.problem)
            return TestedTime(case, self.device, verified.text, problem=case.reason)
        try:
            times, promises = self._timed(name, test, verified)
        except MeasurementInvalid as error:
            case = _case(name, test, verified, "failed", f"cannot be trusted: {error}")
            return TestedTime(case, self.device, verified.text, problem=case.reason)
        again = answers.check()
        if again.problem:
            case = _case(name, test, again, "wrong", f"right before it was timed, and then {again.problem}")
            return TestedTime(case, self.device, again.text, problem=case.reason)
        return TestedTime(times.case, self.device, verified.text, times, promises, noise=self.noise)

    def _timed(
        self, name: str, test: TimedTest, verified: Verification
    ) -> tuple[TestedTimes, tuple[JudgedPromise, ...]]:
        """Return the times and verdicts, after more rounds while a limit is within an interval."""
        assert callable(test.function), "only functions are timed here"
        function = partial(test.function, *test.arrays)
        subjects = [TimedCallable(function, test.metric, name, test.bytes, test.flops)]
        if test.peer is not None:
            peer_name = getattr(test.peer, "__name__", "") or type(test.peer).__name__
            subjects.append(TimedCallable(partial(test.peer, *test.arrays), test.metric, f"peer:{peer_name}"))
        ceiling = self.ceiling_for(test)
        measurements = self.clock.rounds(subjects, _START)
        while True:
            times = _times(_case(name, test, verified), measurements, test.metric, ceiling)
            promises = judged(test, times, self.noise)
            decided = all(promise.verdict != "undecided" for promise in promises)
            if decided or len(measurements[0].processes) >= MOST:
                return times, promises
            more = self.clock.rounds(subjects, MORE)
            measurements = [merged(pair) for pair in zip(measurements, more, strict=True)]

    def ceiling_for(self, test: TimedTest) -> float | None:
        """Return the copy ceiling if a limit needs it; raise MeasurementInvalid if it could not be measured."""
        ceiling = self.ceiling() if test.share is not None else None
        if test.share is not None and not ceiling:
            raise MeasurementInvalid("the copy ceiling could not be measured, so that at_least cannot be judged")
        return ceiling


def _times(case: CaseResult, measured: list[Measurement], metric: str, ceiling: float | None) -> TestedTimes:
    """Return the times of a case from the measurements of the function and of the peer, if there is any."""
    measurements = (replace(measured[0], subject="kernel"), *measured[1:])
    for measurement in measurements:
        if not measurement.valid:
            raise MeasurementInvalid(f"{measurement.subject}: {measurement.reason}")
    return TestedTimes(replace(case, measurements=measurements), metric, next(iter(measured[1:]), None), ceiling)


def _case(
    name: str, test: TimedTest, verified: Verification, status: Status = "ok", reason: str | None = None
) -> CaseResult:
    return CaseResult(
        name=name,
        kernel=name,
        family=TESTED,
        label=LABEL,
        workload={},
        bytes=test.bytes or 0,
        flops=test.flops,
        status=status,
        reason=reason,
        verification=verified.entries,
    )


# Measurement of a catalogue's kernel: verified and timed in fresh processes, as `prism-bench run` does.

PROCESSES = 3
_COPY_CEILING = "bandwidth"


def kernel_tested(name: str, test: TimedTest, catalogue: Catalogue, measuring: "Measuring") -> TestedTime:
    """Return the result of one test of a catalogue's kernel."""
    spec_case = _case_of(test, catalogue)
    case = replace(_measured(spec_case, catalogue, measuring.clock.name, bool(test.speedup)), name=name)
    count = sum(int(entry["compared"]) for entry in case.verification if entry.get("compared"))
    verified = f"{count_text(count, 'value')} against the reference of {case.kernel}, and its edges"
    if case.status != "ok":
        return TestedTime(case, measuring.device, verified, problem=f"{case.status}: {case.reason}")
    timed = valid(case, test.metric)
    if timed is None or not timed.samples:
        invalid = case.measurement(test.metric)
        reason = invalid.reason if invalid and invalid.reason else f"the {test.metric} was not measured"
        return TestedTime(case, measuring.device, verified, problem=f"cannot be trusted: {reason}")
    best = next(iter(peers(case)), None) if test.speedup else None
    if test.speedup and best is None:
        raise UsageError(f"speedup={test.speedup}: {case.kernel} has no peer that runs here")
    peer = valid(case, clock_of(case), f"peer:{best.name}") if best else None
    try:
        times = TestedTimes(case, test.metric, peer, measuring.ceiling_for(test))
    except MeasurementInvalid as error:
        return TestedTime(case, measuring.device, verified, problem=f"cannot be trusted: {error}")
    promises = judged(test, times, measuring.noise)
    return TestedTime(case, measuring.device, verified, times, promises, noise=measuring.noise)


def copy_ceiling(backend: str) -> tuple[float | None, tuple[CaseResult, ...]]:
    """Return the bytes per second of the best copy on this machine, and the measured cases."""
    opened, catalogue = open_backend(backend), discover()
    settings = Settings(processes=1, peers=False, cpu_baseline=False)
    session = MeasuringSession(opened, catalogue, settings, process=0)
    labels = ("S1", "S2") if backend == "cuda" else ("S0",)  # on a device, workloads larger than the caches
    copies = [case for case in catalogue.cases((), labels) if case.spec.ceiling == _COPY_CEILING]
    results = tuple(session.case(case) for case in copies)
    facts = opened.facts()
    limits = measured_limits(results, facts.get("l2_bytes", 0), peaks_of(facts))
    return limits.ceilings.get(_COPY_CEILING), results


def _case_of(test: TimedTest, catalogue: Catalogue) -> "Case":
    name = str(test.function)
    if "[" in name:
        return catalogue.anywhere(name)
    cases = [case for case in catalogue.cases([name], [test.label]) if ":" in name or not case.variant]
    if len(cases) != 1:
        raise UsageError(
            f"prism('{name}', label='{test.label}'): {count_text(len(cases), 'case')}; name one kernel or one case"
        )
    return cases[0]


def _measured(case: "Case", catalogue: Catalogue, backend: str, has_peers: bool) -> CaseResult:
    run = Run(catalogue, backend, Settings(processes=PROCESSES, peers=has_peers, cpu_baseline=False))
    clock = RunClock()
    run.measure([case])
    results = run.record(clock.span(complete=True)).cases
    broken = next((result for result in results if result.is_edge and result.status not in ("ok", "skipped")), None)
    timed = next(result for result in results if not result.is_edge)
    return replace(timed, status="wrong", reason=broken.reason, measurements=()) if broken else timed

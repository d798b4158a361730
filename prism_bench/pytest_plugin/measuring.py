"""Measurement of a tested function: verified, timed in rounds, by the GPU's or a scripted clock."""

import os
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from prism_bench.analysis import peers as rivals
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


# Clocks for functions: rounds of honest times on the GPU, or scripted ones for trials of the plugin itself.

_Side = Callable[[], Measurement]


class FunctionClock(Protocol):
    """Times functions on one backend."""

    name: str

    def facts(self) -> Mapping[str, Any]:
        """Return the machine and software behind the times."""
        ...

    def settle(self) -> None:
        """Wait until the device has done all its work."""
        ...

    def rounds(self, subjects: Sequence[TimedCallable], count: int) -> list[Measurement]:
        """Return the times of one or two functions, each with a group of samples per round.

        Rounds alternate which function is first. Raises MeasurementInvalid where one cannot be timed honestly.
        """
        ...


class CudaClock:
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

        with _alone(), borrowed_backend() as (backend, library):
            return _rounds([partial(measured, backend, library, one) for one in subjects], count)


class NullClock:
    """The times that PRISM_BENCH_NULL scripts for the name of a case, or for `peer:<name>`."""

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
        return _rounds([self._side(one) for one in subjects], count)

    def _side(self, subject: TimedCallable) -> _Side:
        once = self._backend.scripted_timer(subject.name)
        return lambda: measure_metric(subject.metric, subject.name, once, CRITERION, ClockGate())[0]


def open_clock(backend: str) -> FunctionClock:
    """Return the clock of a backend; BackendUnavailable without a GPU, UsageError where it times no functions."""
    if backend == "cuda":
        return CudaClock()
    if backend == "null":
        return NullClock()
    raise UsageError(f"--prism-backend {backend}: functions are timed on cuda, and on null for trials")


def _rounds(sides: Sequence[_Side], count: int) -> list[Measurement]:
    if len(sides) == 2:
        return list(alternated(sides[0], sides[1], count))
    return [merged([side() for _ in range(count)]) for side in sides]


@contextmanager
def _alone() -> Generator[None]:
    """Keep other workers of pytest-xdist off the device meanwhile: two that time at once time each other."""
    if "PYTEST_XDIST_WORKER" not in os.environ or sys.platform == "win32":
        yield
        return
    with (Path(tempfile.gettempdir()) / f"prism-bench-pytest-{os.getuid()}.lock").open("w") as file:
        lock(file.fileno())
        yield


# One function measured for a test: verified, timed in rounds until its limits are decided, verified again.

LABEL = "test"
_START, MORE, MOST = 5, 5, 15  # rounds


@dataclass(frozen=True)
class Measuring:
    """What every test of a session is measured with; `ceiling` measures the copy ceiling on first use."""

    clock: FunctionClock
    device: str
    noise: float
    ceiling: Callable[[], float | None]

    def tested(self, name: str, test: TimedTest) -> TestedTime:
        """Return the result of one test of a function."""
        answers = Answers(test, self.clock.settle)
        verified = answers.check()
        if verified.problem:
            return self._without_times(_case(name, test, verified, "wrong", verified.problem), verified)
        try:
            times, promises = self._timed(name, test, verified)
        except MeasurementInvalid as error:
            return self._without_times(_case(name, test, verified, "failed", f"cannot be trusted: {error}"), verified)
        again = answers.check()
        if again.problem:
            problem = f"right before it was timed, and then {again.problem}"
            return self._without_times(_case(name, test, again, "wrong", problem), again)
        return TestedTime(times.case, self.device, verified.words, times, promises, noise=self.noise)

    def _without_times(self, case: CaseResult, verified: Verification) -> TestedTime:
        return TestedTime(case, self.device, verified.words, problem=case.reason)

    def _timed(
        self, name: str, test: TimedTest, verified: Verification
    ) -> tuple[TestedTimes, tuple[JudgedPromise, ...]]:
        """Return the times, after more rounds where a limit is in the interval."""
        subjects = _subjects(name, test)
        ceiling = self.ceiling_for(test)
        found = self.clock.rounds(subjects, _START)
        while True:
            times = _times(_case(name, test, verified), found, test.metric, ceiling)
            promises = judged(test, times, self.noise)
            decided = all(one.verdict != "undecided" for one in promises)
            if decided or len(found[0].processes) >= MOST:
                return times, promises
            more = self.clock.rounds(subjects, MORE)
            found = [merged(pair) for pair in zip(found, more, strict=True)]

    def ceiling_for(self, test: TimedTest) -> float | None:
        """Return the copy ceiling where a limit needs it; MeasurementInvalid where it could not be measured."""
        ceiling = self.ceiling() if test.share is not None else None
        if test.share is not None and not ceiling:
            raise MeasurementInvalid("the copy ceiling could not be measured, so that at_least cannot be judged")
        return ceiling


def _subjects(name: str, test: TimedTest) -> list[TimedCallable]:
    assert callable(test.function), "only functions are timed here"
    own = TimedCallable(partial(test.function, *test.arrays), test.metric, name, test.bytes, test.flops)
    if test.peer is None:
        return [own]
    peer = partial(test.peer, *test.arrays)
    return [own, TimedCallable(peer, test.metric, f"peer:{_name_of(test.peer)}")]


def _name_of(function: object) -> str:
    return str(getattr(function, "__name__", "") or type(function).__name__)


def _times(case: CaseResult, found: list[Measurement], metric: str, ceiling: float | None) -> TestedTimes:
    """Return the times of a case whose measurements are the function's and, if there is one, the peer's."""
    measurements = (replace(found[0], subject="kernel"), *found[1:])
    for one in measurements:
        if not one.valid:
            raise MeasurementInvalid(f"{one.subject}: {one.reason}")
    return TestedTimes(replace(case, measurements=measurements), metric, next(iter(found[1:]), None), ceiling)


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


# Kernels of a catalogue in a test: verified and timed in fresh processes as `prism-bench run` does; the ceiling.

PROCESSES = 3
_COPY_CEILING = "bandwidth"


def kernel_tested(name: str, test: TimedTest, catalogue: Catalogue, measuring: "Measuring") -> TestedTime:
    """Return the result of one test of a catalogue's kernel."""
    case = replace(_measured(_case_of(test, catalogue), catalogue, measuring.clock.name, bool(test.speedup)), name=name)
    words = _verified(case)
    if case.status != "ok":
        return TestedTime(case, measuring.device, words, problem=f"{case.status}: {case.reason}")
    own = valid(case, test.metric)
    if own is None or not own.samples:
        found = case.measurement(test.metric)
        reason = found.reason if found and found.reason else f"the {test.metric} was not measured"
        return TestedTime(case, measuring.device, words, problem=f"cannot be trusted: {reason}")
    try:
        times = TestedTimes(case, test.metric, _peer(case, test), measuring.ceiling_for(test))
    except MeasurementInvalid as error:
        return TestedTime(case, measuring.device, words, problem=f"cannot be trusted: {error}")
    return TestedTime(case, measuring.device, words, times, judged(test, times, measuring.noise), noise=measuring.noise)


def copy_ceiling(backend: str) -> tuple[float | None, tuple[CaseResult, ...]]:
    """Return the bytes per second that the best copy reaches on this machine, and the cases that show it."""
    opened, catalogue = open_backend(backend), discover()
    settings = Settings(processes=1, peers=False, cpu_baseline=False)
    session = MeasuringSession(opened, catalogue, settings, process=0)
    found = tuple(session.case(case) for case in _copies(catalogue, backend))
    facts = opened.facts()
    limits = measured_limits(found, facts.get("l2_bytes", 0), peaks_of(facts))
    return limits.ceilings.get(_COPY_CEILING), found


def _copies(catalogue: Catalogue, backend: str) -> Iterable["Case"]:
    """Return the workloads of the copy kernels: large ones, which leave the caches, on a device."""
    labels = ("S1", "S2") if backend == "cuda" else ("S0",)
    return [case for case in catalogue.cases((), labels) if case.spec.ceiling == _COPY_CEILING]


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


def _measured(case: "Case", catalogue: Catalogue, backend: str, peers: bool) -> CaseResult:
    driven = Run(catalogue, backend, Settings(processes=PROCESSES, peers=peers, cpu_baseline=False))
    clock = RunClock()
    driven.measure([case])
    results = driven.record(clock.span(complete=True)).cases
    edge = next((one for one in results if one.is_edge and one.status not in ("ok", "skipped")), None)
    own = next(one for one in results if not one.is_edge)
    return replace(own, status="wrong", reason=edge.reason, measurements=()) if edge else own


def _verified(case: CaseResult) -> str:
    compared = [entry for entry in case.verification if entry.get("compared")]
    count = sum(int(entry["compared"]) for entry in compared)
    return f"{count_text(count, 'value')} against the reference of {case.kernel}, and its edges"


def _peer(case: CaseResult, test: TimedTest) -> Measurement | None:
    """Return the times of the fastest peer, where the test compares with it."""
    best = next(iter(rivals.peers(case)), None) if test.speedup else None
    if test.speedup and best is None:
        raise UsageError(f"speedup={test.speedup}: {case.kernel} has no peer that runs here")
    return valid(case, rivals.clock_of(case), f"peer:{best.name}") if best else None

"""Kernels of a catalogue in a test: verified and timed in fresh processes as `prism-bench run` does; the ceiling."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from prism_bench.analysis import rivals
from prism_bench.backends import open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import MeasurementInvalid, UsageError
from prism_bench.measure.limits import measured_limits, peaks_of, valid
from prism_bench.pytest_plugin.outcome import TestedTime
from prism_bench.pytest_plugin.promises import TestedTimes, judged
from prism_bench.pytest_plugin.timed_test import TimedTest
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult
from prism_bench.run.catalogue_run import Run
from prism_bench.run.record_builder import RunClock
from prism_bench.run.session import MeasuringSession
from prism_bench.run.settings import Settings
from prism_bench.units import count_text

if TYPE_CHECKING:
    from prism_bench.pytest_plugin.measuring import Measuring
    from prism_bench.spec.case import Case

PROCESSES = 3
COPY_CEILING = "bandwidth"


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
    return limits.ceilings.get(COPY_CEILING), found


def _copies(catalogue: Catalogue, backend: str) -> Iterable["Case"]:
    """Return the workloads of the copy kernels: large ones, which leave the caches, on a device."""
    labels = ("S1", "S2") if backend == "cuda" else ("S0",)
    return [case for case in catalogue.cases((), labels) if case.spec.ceiling == COPY_CEILING]


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

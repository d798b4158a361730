"""Profiles of cases: a worker launches each case once under ncu, nsys or CUPTI; records keep what they count."""

import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from prism_bench.analysis.bounds.bottleneck import is_timed, largest
from prism_bench.analysis.bounds.profiles import csv_text, ledger, newest_counted, newest_rows, profiles
from prism_bench.analysis.bounds.why import Why, why_in
from prism_bench.backends import Backend
from prism_bench.catalogue import Catalogue
from prism_bench.errors import PrismBenchError, ResultsError, UsageError, unknown
from prism_bench.io import files
from prism_bench.io.documents import json_line
from prism_bench.io.files import Saver, write_atomically
from prism_bench.io.workers import environment
from prism_bench.profilers import metrics, ncu, tools
from prism_bench.profilers.metrics import ProfiledLaunch, chip_of
from prism_bench.profilers.metrics import counters_of_chip as chip_counters
from prism_bench.profilers.tools import OTHER, ProfilerFailed, classify, last_words
from prism_bench.record import identity, store
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.schema import JsonTable, Status
from prism_bench.run.precompile import compile_ahead
from prism_bench.run.session import result_of
from prism_bench.run.settings import RecordBuilder, RunClock, ceiling_cases
from prism_bench.spec.case import Case
from prism_bench.units import bytes_text, count_text, ratio_text
from prism_bench.workflows import tracing
from prism_bench.workflows.compile_table import ARCHITECTURES, read_table
from prism_bench.workflows.profile_worker import (
    ProfileEvent,
    ProfileOrder,
    attributed,
    cut_short,
    ends_of,
    launched,
    progress,
    read_events,
)
from prism_bench.workflows.traffic import traffic

# One capture holds as many cases as it can: a profiler takes seconds to start. When a case ends the program, another
# capture continues with the rest. A failure of the profiler itself before it counted anything is an error; later, it
# is the reason of the remaining cases.

REPORT = ".ncu-rep"
_GRACE = 60.0  # seconds in which a profiler may write its report after the program has ended
PART = 64  # cases that one program launches: ncu writes its report only when the program ends
_SERIAL = "ncu runs one launch at a time; the tools cupti and nsys see gaps and copies"


Report = Callable[[tuple[int, str]], object]  # gets how many cases have ended, and which one is being profiled
_Profiled = tuple[Status, str | None, JsonTable | None]  # status and reason of a case, and what was counted


@dataclass(frozen=True)
class ProfilePlan:
    """Settings of profiling: the set of metrics, limits, and the folder of reports.

    `extra` are metrics by ncu's own names. `seconds` limits all cases, `case_seconds` each case; `lines` samples the
    source lines at which its warps wait. `tried` is when (UTC)
    a case was last profiled, by name: cases never profiled go first, then the oldest, so that a limit does not leave
    out the same cases every time.
    """

    folder: Path
    chosen: str = "core"
    extra: tuple[str, ...] = ()
    seconds: float = 600.0
    case_seconds: float = 60.0
    lines: bool = False
    tried: Mapping[str, str] = field(default_factory=dict)

    @property
    def traffic(self) -> bool:
        """Whether only DRAM bytes are counted, in one pass and with the bytes left in L2; the worker clears caches."""
        return self.chosen == "traffic"


@dataclass
class Capture:
    """One run of the profiled program: its events, and what the profiler counted."""

    events: list[ProfileEvent]
    launches: list[ProfiledLaunch]
    command: list[str]
    passes: int | None = None
    report: Path | None = None


def profile(
    catalogue: Catalogue,
    backend: Backend,
    cases: list[Case],
    plan: ProfilePlan,
    report: Report = lambda _: None,
    *,
    keep: Callable[[RunRecord], object] = lambda _: None,
) -> RunRecord:
    """Return a record whose cases hold what ncu counted. Raises ProfilerFailed if it counted nothing at all.

    `keep` gets the counts so far after every part of the cases but the last.
    """
    if plan.chosen not in metrics.SETS:
        raise UsageError(f"no set of metrics is called '{plan.chosen}'; there are {', '.join(metrics.SETS)}")
    for name in plan.extra:
        if metrics.base(name) in metrics.REPLACED:
            raise UsageError(metrics.advice(name, chip_counters()))
    clock = RunClock()
    if backend.name == "cuda":
        empty = [case for case in ceiling_cases(catalogue) if case.spec.ceiling == "launch"]
        cases = list(dict.fromkeys([*empty[:1], *cases]))  # the empty kernel identifies latency-bound cases
        compile_ahead(cases, backend.device)
    profiling = _Profiling(catalogue, backend, plan, report)
    results = profiling.results(cases, lambda partial: keep(_record(catalogue, backend, partial, clock)))
    return _record(catalogue, backend, results, clock)


def record_of_profiles(
    catalogue: Catalogue,
    backend: Backend,
    cases: list[Case],
    profiles: Mapping[str, JsonTable],
    left_out: Mapping[str, str] | None = None,
) -> RunRecord:
    """Return a record whose cases hold profiles made elsewhere; a case without a profile has the reason.

    `left_out` has the reasons of cases that this machine cannot launch.
    """
    results: list[CaseResult] = []
    for case in cases:
        if case.task in profiles:
            results.append(replace(result_of(case, "ok", None), profile=profiles[case.task]))
        elif reason := (left_out or {}).get(case.task):
            results.append(result_of(case, "skipped", reason))
        else:
            results.append(result_of(case, "failed", "the tracer saw no work in its range"))
    return _record(catalogue, backend, results, RunClock())


def _record(catalogue: Catalogue, backend: Backend, results: Sequence[CaseResult], clock: RunClock) -> RunRecord:
    span = clock.span(complete=all(result.status != "skipped" for result in results))
    return RecordBuilder(catalogue, backend.name, backend.facts()).build(span, results, protocol={})


class _Profiling:
    """Captures of the cases, repeated until all have a result."""

    def __init__(self, catalogue: Catalogue, backend: Backend, plan: ProfilePlan, report: Report) -> None:
        self._catalogue, self._backend, self._plan, self._report = catalogue, backend, plan, report
        self._chip = chip_of(backend.facts().get("compute_capability", "?"))
        self._tool = tools.find("ncu")

    def results(self, cases: Sequence[Case], keep: Callable[[list[CaseResult]], object]) -> list[CaseResult]:
        """Return one result per case, in their order; `keep` gets the results after every part but the last."""

        def last_tried(case: Case) -> str:  # the empty kernel comes first, and is never left out
            return "" if case.spec.ceiling == "launch" else self._plan.tried.get(case.name, "")

        names = [case.task for case in sorted(cases, key=last_tried)]
        profiled: dict[str, _Profiled] = {}
        end = time.monotonic() + self._plan.seconds
        part = 0
        while names and time.monotonic() < end:
            part += 1
            try:
                with files.allowed():
                    capture = self._capture(names[:PART], part, end - time.monotonic())
            except KeyboardInterrupt:
                if not profiled:
                    raise
                break
            except ProfilerFailed as error:
                if not profiled:
                    raise
                profiled |= {name: ("failed", str(error), None) for name in names}
                break
            profiled |= self._profiled(capture)
            names = [name for name in names if name not in profiled]
            if names:
                keep(self._so_far(cases, profiled))
        return self._so_far(cases, profiled)

    def _so_far(self, cases: Sequence[Case], profiled: Mapping[str, "_Profiled"]) -> list[CaseResult]:
        late = f"left out: interrupted, or the limit of {self._plan.seconds:.0f} s was over"
        ends = ((case, profiled.get(case.task, ("skipped", late, None))) for case in cases)
        return [replace(result_of(case, status, why), profile=counted or {}) for case, (status, why, counted) in ends]

    def _capture(self, names: list[str], part: int, seconds: float) -> Capture:
        report = self._plan.folder / f"part{part}.ncu-rep"
        report.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            order, events = Path(folder) / "order.json", Path(folder) / "events"
            order.write_text(json_line(self._order(names, seconds)))
            program = [sys.executable, "-m", "prism_bench.workflows.profile_worker", str(order), str(events)]
            plan = self._plan
            wanted = (*metrics.counters(self._chip, plan.chosen), *plan.extra)
            sections = () if plan.traffic else ncu.Counting.sections
            caches = "none" if plan.traffic else "all"
            counting = ncu.Counting(wanted, sections, cache_control=caches, lines=plan.lines)
            command = ncu.capture(self._tool, counting, report, program)
            log, watch = report.with_suffix(".log"), lambda: self._report(progress(events))
            ended = tools.run(command, log, seconds + _GRACE, watch, PYTHONPATH=environment()["PYTHONPATH"])
            seen = read_events(events)
        launches = self._exported(report, ended, must=launched(seen))
        kept = [str(report) if word == str(order) else word for word in command]
        return Capture(seen, launches, kept[: kept.index(program[0])], ncu.passes(ended.text), report)

    def _order(self, names: list[str], seconds: float) -> ProfileOrder:
        plan = self._plan
        return {
            "backend": self._backend.name,
            "catalogue": str(self._catalogue.folder),
            "cases": names,
            "verify": True,
            "traffic": plan.traffic,
            "seconds": seconds,
            "case_seconds": plan.case_seconds,
            "once": False,
        }

    def _exported(self, report: Path, ended: tools.Ended, must: bool) -> list[ProfiledLaunch]:
        """Return the launches in the report; ProfilerFailed with ncu's message if there `must` be some and are none."""
        complaint: ResultsError | None = None
        table = report.with_suffix(".csv")
        for command in ncu.exports(self._tool, report) if report.is_file() else ():
            tools.run(command, table, 2 * _GRACE)
            try:
                return ncu.read(table)
            except ResultsError as error:
                complaint = error
        if not must:
            return []
        raise self._failure(replace(ended, text=f"{ended.text}\n==ERROR== {complaint}") if complaint else ended)

    def _failure(self, ended: tools.Ended) -> ProfilerFailed:
        failure, complaint = classify(ended.text, ended.status, produced=False) or OTHER, last_words(ended.text)
        if failure.name == "unknown_metric":
            names = [name for name in self._plan.extra if name in complaint]
            complaint = "; ".join([complaint, *(metrics.advice(name, chip_counters()) for name in names)])
        return ProfilerFailed("ncu", failure, complaint)

    def _profiled(self, capture: Capture) -> dict[str, "_Profiled"]:
        """Return status, reason and counts by case: of the cases that ended, and of a case that ended the program."""
        ends = ends_of(capture.events)
        begun = [event["begin"] for event in capture.events if "begin" in event]
        cut = bool(begun) and begun[-1] not in ends
        groups = attributed(capture.launches, ends, cut)
        profiled: dict[str, _Profiled] = {
            name: (end["status"], end["reason"], self._counted(capture, *groups[name])) for name, end in ends.items()
        }
        if cut:
            profiled[begun[-1]] = (*cut_short(capture.events, self._plan.case_seconds), None)
        for event in capture.events:
            late = f"left out: the limit of {self._plan.seconds:.0f} s was over"
            profiled |= dict.fromkeys(event.get("left", ()), ("skipped", late, None))
        if not begun:
            raise ResultsError("the profiled program ended before its first case; its log is next to the report")
        return profiled

    def _counted(
        self, capture: Capture, launches: Sequence[ProfiledLaunch], following: Sequence[ProfiledLaunch]
    ) -> JsonTable | None:
        if not launches:
            return None
        values = metrics.combined(launches, self._chip, self._plan.chosen)
        added: dict[str, JsonTable] = {
            name: {"value": None, "unit": "1", "reason": _SERIAL} for name in ("gaps", "copies")
        }
        lines = self._lines(capture.report, launches) if self._plan.lines and capture.report else {}
        added["launches"] = {"value": len(launches), "unit": "1", "source": "launches that ncu profiled"}
        # The bytes that the case left dirty in L2, as the kernel after it wrote them back.
        reason = "only --counters traffic follows a case to its last written byte"
        added["write_back_bytes"] = {"value": None, "unit": "B", "reason": reason}
        if following:
            counts = metrics.combined(following, self._chip, "traffic")
            added["write_back_bytes"] = counts["dram_write_bytes"]
        return {
            "tool": "ncu",
            "version": self._tool.version,
            "set": self._plan.chosen,
            "clock_control": ncu.Counting.clock_control,
            "cache_control": "own" if self._plan.traffic else "all",
            "passes": capture.passes,
            "command": shlex.join(capture.command),
            "kernels": [
                {"kernel": launch.kernel, "grid": list(launch.grid), "block": list(launch.block)} for launch in launches
            ],
            "values": values | added,
            "asked": {name: [launch.value(name) for launch in launches] for name in self._plan.extra},
            **lines,
        }

    def _lines(self, report: Path, launches: Sequence[ProfiledLaunch]) -> JsonTable:
        """Return the source lines of a case with samples, or why ncu printed no readable page."""
        page = report.with_suffix(".source.csv")
        pages = []
        try:
            for launch in launches:
                tools.run(ncu.source_export(self._tool, report, launch.id), page, 2 * _GRACE)
                pages.append(ncu.read_source_page(page))
        except (ResultsError, ProfilerFailed) as error:
            return {"lines": [], "no_lines": str(error)}
        return {"lines": ncu.together(pages)}


# Jobs: the tool that profiles, and the place of the record.

# Failures of ncu after which a tracer can still work; all others are for the user to see.
CLOSED = ("not_installed", "permission", "library_not_loaded", "driver_mismatch", "device_not_supported")


@dataclass(frozen=True)
class ProfileJob:
    """The cases to profile, on which backend, and the folder of reports."""

    backend: Backend
    catalogue: Catalogue
    cases: Sequence[Case]
    reports: Path

    @cached_property
    def place(self) -> store.RecordPlace:
        """The place of the record, for every version of it."""
        return store.RecordPlace(self.reports)

    def counted(self, plan: ProfilePlan, report: Callable[[str], object]) -> RunRecord:
        """Return what ncu counted; ProfilerFailed if it counted nothing at all. `report` takes the progress."""
        plan = replace(plan, folder=self.reports / "captures", tried=self._last_tried(plan.chosen))

        def show(progress: tuple[int, str]) -> None:
            report(f"{progress[0]} of {len(self.cases)} profiled, {progress[1]}")

        return profile(self.catalogue, self.backend, list(self.cases), plan, show, keep=Saver(self.keep))

    def traced(self, tool: str, seconds: float) -> tuple[RunRecord, tracing.TracedRun]:
        """Return the launches, gaps and copies that nsys or CUPTI traced, as a record and as a timeline."""
        names = [case.task for case in self.cases]
        if tool == "nsys":
            folder = self.reports / "captures"
            timeline = tracing.trace_with_nsys(self.catalogue, self.backend.name, names, folder, seconds)
            traced, repeats = tracing.TracedRun(timeline), 1
        else:
            sequences = {name: [name] for name in names}
            traced = tracing.trace_cases(self.catalogue, self.backend.name, sequences, seconds=seconds)
            repeats = tracing.REPEATS
        counted = profiles(ledger(traced.timeline, most=len(names)), repeats)
        record = record_of_profiles(self.catalogue, self.backend, list(self.cases), counted, traced.left_out)
        return record, traced

    def chained(self, name: str) -> tracing.TracedRun:
        """Return what CUPTI traced of all cases, one after the other in one range of that name."""
        sequences = {name: [case.task for case in self.cases]}
        return tracing.trace_cases(self.catalogue, self.backend.name, sequences)

    def keep(self, record: RunRecord) -> tuple[Path, Path]:
        """Save the record and the table of every case's newest counters on this machine; return both paths."""
        path = self.place.save(record)
        table = newest_rows(newest_counted(store.readable(self.place.root, path.parent.name)))
        write_atomically(path.parent / "metrics.csv", csv_text(table).encode())
        return path, path.parent / "metrics.csv"

    def _last_tried(self, chosen: str) -> dict[str, str]:
        """Return when this set was last tried on each case of this machine, by the readable records of the folder."""
        tried: dict[str, str] = {}
        for _, record in store.readable(self.reports, identity.machine(self.backend.facts())["id"]):
            if any(case.profile.get("set") == chosen for case in record.cases):
                tried = {case.name: record.created for case in record.cases if case.status != "skipped"} | tried
        return tried


def read_capture(path: Path) -> list[ProfiledLaunch]:
    """Return the launches of a capture of ncu, a report or its CSV."""
    return list(ncu.read_report(path) if path.suffix == REPORT else ncu.read(path))


# Why a case of a record takes its time, by the record, the newest profiles and an earlier run.


RESOURCES = Path("reports/compile/resources.csv")


def why_of(record: RunRecord, name: str, runs: Path, profiles: Path, tables: "WhyTables | None" = None) -> Why:
    """Return why the case takes its time, from profiles below `profiles` and the run before it below `runs`.

    A kernel's name, or one of its variants', chooses its largest case, as the kernel's page does. The `tables` are read
    for a case without counters.
    """
    counted = newest_counted(store.readable(profiles, str(record.machine.get("id", ""))))
    case = next((case for case in record.cases if case.name == name), None)
    if case is None:
        sized = [case for case in record.cases if not case.is_edge]
        case = largest([case for case in sized if name in (case.kernel, case.name.partition("[")[0])])
    if case is None:
        known = {case.name for case in record.cases} | {case.name.partition("[")[0] for case in record.cases}
        raise unknown("kernel or case", name, known)
    account = why_in(record, case, counted, _before(record, case, runs))
    if tables is None or account.basis == "counters":
        return account
    counted_traffic = None if account.near else _traffic(case, tables)  # it takes seconds, and counters show more
    return replace(account, tables=tuple(filter(None, (_compiled(record, case, tables), counted_traffic))))


@dataclass(frozen=True)
class WhyTables:
    """What is known of a kernel without a profiler: the table of the compiler, and a catalogue to count traffic."""

    resources: Path
    catalogue: Catalogue


def _compiled(record: RunRecord, case: CaseResult, tables: WhyTables) -> str | None:
    """Return the registers, spills and shared memory of the case's code, from its record or the compiler's table."""
    names = ("registers", "spill_bytes", "shared_bytes")
    numbers, source = [number for name in names if isinstance(number := case.code.get(name), int)], "this record"
    if len(numbers) < len(names):
        capability = str(record.machine.get("compute_capability") or ARCHITECTURES[0])
        spelt = {case.kernel, case.name.partition("[")[0]}
        rows = [row for row in read_table(tables.resources) if row.kernel in spelt]
        rows = [row for row in rows if row.architecture == capability] or rows
        if not rows:
            return None
        numbers = [max(getattr(row, name) for row in rows) for name in names]
        source = "/".join(tables.resources.parts[-2:])
    registers, spilled, shared = numbers
    facts = f"{count_text(registers, 'register')}, {bytes_text(spilled)} spilled, {bytes_text(shared)} shared"
    return f"compiled: {facts} ({source})"


def _traffic(case: CaseResult, tables: WhyTables) -> str | None:
    """Return what the source asks of memory at S0, counted on the emulator; None where it cannot be counted."""
    try:
        kernel = case.name.partition("[")[0]
        smallest = next(iter(tables.catalogue.cases([kernel], ["S0"])), None)
        counts = traffic(smallest) if smallest and smallest.name.partition("[")[0] == kernel else None
    except PrismBenchError:
        return None
    if counts is None or not counts.launches or not counts.declared:
        return None
    touched, requested = (ratio_text(count / counts.declared) for count in (counts.touched, counts.requested))
    facts = f"touches {touched} of its bytes, asks for {requested}, {counts.sectors_per_request:.3g} sectors a request"
    return f"traffic at S0: {facts}"


def _before(record: RunRecord, case: CaseResult, runs: Path) -> tuple[str, CaseResult] | None:
    """Return the newest earlier run of the machine and backend that timed the case, by name, and its case."""
    for facts in reversed(store.read_history(runs).before(record)):
        with suppress(ResultsError):
            cases = store.read(runs / facts.file).cases
            same = next((earlier for earlier in cases if earlier.name == case.name and earlier.code), None)
            if same and (case.is_edge or is_timed(same)):
                return Path(facts.file).name.removesuffix(".json.gz"), same
    return None

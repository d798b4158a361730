"""A run: the catalogue's cases through several fresh processes into one run record."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from prism_bench import identity, interrupts
from prism_bench.case import Case, edges_task
from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.files import default_folder
from prism_bench.measure import shuffled
from prism_bench.measure.limits import is_bandwidth, measured_limits, peaks_of
from prism_bench.measure.plausibility import judged
from prism_bench.measurement import merged
from prism_bench.monitor.executions import Execution, Journal
from prism_bench.run.lanes import side_by_side, worth
from prism_bench.run.places import HERE
from prism_bench.run.session import result_of
from prism_bench.run.settings import Settings, to_plain
from prism_bench.run_record import CaseResult, RunRecord, decode_case
from prism_bench.saving import Due
from prism_bench.workers.handle import WorkerEnvironment
from prism_bench.workers.process import WorkerDied, died_at_start, work


@dataclass(frozen=True)
class Progress:
    """How far a run is: tasks `done` of `total`, in which process, and what is being done."""

    process: int
    done: int
    total: int
    task: str


class Run:
    """One run in the making: results grow case by case, so that an interrupted run keeps what it has."""

    def __init__(
        self, catalogue: Catalogue, backend: str, settings: Settings, report: Callable = lambda _: None, place=HERE
    ):
        self._catalogue, self._backend, self._settings, self._report = catalogue, backend, settings, report
        self._place: WorkerEnvironment = place
        self._results: dict[str, list[CaseResult]] = {}
        self._facts: dict = {}
        self._protocol: dict = {}
        self._monitor: list[dict] = []
        self._journal = Journal()
        self._done = self._total = 0

    def measure(self, cases: list[Case], timed: bool = True, others=()) -> None:
        """Verify the edges of the cases' kernels (and of `others`) and the cases, time the right ones in every process.

        With several lanes all of the verifying comes first; with one, the first process does it on its way.
        """
        edges = list(dict.fromkeys([*(edges_task(case) for case in cases), *(f"edges:{kernel}" for kernel in others)]))
        processes = self._settings.processes if timed else 1
        apart = timed and self._settings.lanes > 1
        self._total = len(edges) + len(cases) * (processes + apart)
        if self._settings.lanes > 1:
            self._ahead([*edges, *(case.task for case in cases)])
        self._work(0, edges, timed=False)
        if apart:
            self.go_through(cases, 0, timed=False)
        for process in range(processes):
            self.go_through(cases, process, timed, verified=apart)

    def go_through(self, cases: list[Case], process: int, timed: bool = True, verified: bool = False) -> None:
        """One process through those of the cases that are right so far.

        The process numbered 0 verifies them, if they are not `verified`.
        """
        wrong = self._wrong_at_edges()
        right = [case for case in cases if self._still_right(case, wrong.get((case.spec.name, case.variant)))]
        self._work(process, self._order(right, process), timed, verifies=process == 0 and not verified)

    @property
    def has_results(self) -> bool:
        """Whether anything was found out yet."""
        return bool(self._results)

    def _order(self, cases, process):
        """Machine kernels first, since they wake the clocks; the rest shuffled."""
        names = [case.task for case in cases if case.spec.ceiling]
        others = [case.task for case in cases if not case.spec.ceiling]
        return names + shuffled(others, self._settings.seed, process)

    def _wrong_at_edges(self):
        """By kernel and variant the first edge that is worse than skipped."""
        edges = [r for rs in self._results.values() for r in rs if r.label in ("edge", "golden")]
        bad = [edge for edge in edges if edge.status not in ("ok", "skipped")]
        return {(edge.kernel, edge.variant): edge for edge in reversed(bad)}

    def _still_right(self, case, bad):
        """Every result of the case so far is ok, and there is no `bad` edge of its kernel."""
        own = self._results.get(case.name, [])
        if bad and not own:
            self._results[case.name] = [_without_time(case, bad)]
        return bad is None and all(result.status == "ok" for result in own)

    def _ahead(self, tasks):
        """Have the tasks' code compiled by all cores before several processes want it at once."""
        order = self._order_for(0, [], timed=False, verifies=False) | {"ahead": tasks}
        with suppress(WorkerDied):  # who needs what it left compiles that; where nothing starts, the next one says so
            for event in work(order, self._settings.timeout, self._place):
                self._take(event, 0, [])

    def _work(self, process, tasks, timed, verifies=True):
        """Send the tasks to a process, or to several where nothing is timed; when one dies, mark what it was doing and
        go on with the rest in another.
        """
        lanes = 1 if timed else worth(self._settings.lanes, tasks)
        if lanes > 1:
            order = self._order_for(process, [], timed, verifies)
            self._follow(side_by_side(order, tasks, lanes, self._settings.timeout, self._place), process, [])
            return
        while tasks:
            finished = []
            order = self._order_for(process, tasks, timed, verifies)
            self._follow(work(order, self._settings.timeout, self._place), process, finished)
            tasks = [task for task in tasks if task not in finished]

    def _follow(self, events, process, finished):
        """Take what comes until the end; where the last or only process died, bury its task."""
        try:
            for event in events:
                if isinstance(event, WorkerDied):
                    self._bury(event, finished)
                else:
                    self._take(event, process, finished)
        except WorkerDied as death:
            self._bury(death, finished)

    def _order_for(self, process, tasks, timed, verifies):
        return {
            "backend": self._backend,
            "catalogue": str(self._catalogue.folder.resolve()),
            "settings": to_plain(self._settings),
            "process": process,
            "timed": timed,
            "verifies": verifies,
            "tasks": tasks,
            "ahead": tasks if process == 0 and self._settings.lanes == 1 else [],
        }

    def _take(self, event, process, finished):
        self._facts = event.get("facts", self._facts)
        self._protocol = event.get("protocol", self._protocol)
        self._monitor += [event["monitor"]] if "monitor" in event else []
        if "begin" in event:
            self._report(Progress(process, self._done, self._total, event["begin"]))
            self._current = event["begin"]
        for plain in event.get("results", ()):
            result = decode_case(plain)
            self._results.setdefault(result.name, []).append(result)
            if self._facts.get("uuid"):
                self._journal.append(executions_of(result))
        if "results" in event:
            finished.append(event.get("task", self._current))
            self._done += 1

    def _bury(self, death, finished):
        """What the process was doing is a result too; one that never came so far as to do anything is an error."""
        if death.task is None:
            raise died_at_start(death, self._backend)
        if death.task in finished:  # lost between two tasks: the rest goes on in another process
            return
        finished.append(death.task)
        self._done += 1
        for one in self._dead(death):
            self._results.setdefault(one.name, []).append(_buried(one, death))

    def _dead(self, death):
        """The case that the process was at; of edges the one that it began last, or the first."""
        if not death.task.startswith("edges:"):
            return [self._catalogue.anywhere(death.task)]
        edges = self._catalogue.edges_of(death.task.removeprefix("edges:"))
        return [edge for edge in edges if edge.name == death.case] or edges[:1]

    def _written(self, cases) -> dict[str, int]:
        """The bytes that each case writes, by name."""
        known = {case.name: self._catalogue.anywhere(case.name) for case in cases if case.measurements}
        return {name: sum(case.sizes.nbytes(array.name) for array in case.spec.outputs) for name, case in known.items()}

    def record(self, started: datetime, seconds: float, complete: bool) -> RunRecord:
        """What was measured so far, as a record; impossible measurements are marked."""
        folder = self._catalogue.folder
        commit, dirty = identity.commit_of(folder)
        facts = self._facts
        cases = tuple(sorted((combined(results) for results in self._results.values()), key=shelf))
        return RunRecord(
            created=started.isoformat(timespec="seconds").replace("+00:00", ""),
            backend=self._backend,
            machine=identity.machine(facts),
            software=identity.software(facts.get("software", {})),
            protocol={**self._settings.protocol(), **self._protocol},
            cases=judged(
                cases, measured_limits(cases, facts.get("l2_bytes", 0), peaks_of(facts)), self._written(cases)
            ),
            commit=commit,
            dirty=dirty,
            catalogue="built-in" if folder == default_folder() else str(folder),
            complete=complete,
            duration=round(seconds, 1),
            monitor=tuple(self._monitor),
        )


def run(
    catalogue, backend: str, cases: list[Case], settings: Settings, report=lambda _: None, *, timed=True, others=(),
    keep: Callable[[RunRecord], None] = lambda _: None,
) -> RunRecord:  # fmt: skip
    """Measure the cases on the backend; of the kernels in `others` only the edges are verified.

    An interrupt, or a backend that no longer opens, ends the run and keeps what was measured, in a record marked
    incomplete. Such a record goes to `keep` every PRISM_BENCH_SAVE_SECONDS too, for the day when the machine itself is
    lost, and where an error that nobody foresaw ends the run.
    """
    if backend == "numpy_reference":  # a variant's reference is its kernel's
        cases, others = [case for case in cases if not case.variant], [name for name in others if ":" not in name]
    if not cases:
        raise PrismBenchError("no case is left to run: every filter and label together exclude all of them")
    started, before, due = datetime.now(UTC), time.perf_counter(), Due()

    def told(progress):
        report(progress)
        if session.has_results and due():
            keep(session.record(started, time.perf_counter() - before, complete=False))

    session, complete = Run(catalogue, backend, settings, told), True
    rulers = ceiling_cases(catalogue) if timed and backend == "cuda" else []
    try:
        with interrupts.allowed():
            session.measure(list(dict.fromkeys([*rulers, *cases])), timed, others)
    except KeyboardInterrupt:
        complete = False
    except BackendUnavailable:
        if not session.has_results:
            raise
        complete = False
    except Exception:
        if session.has_results:
            keep(session.record(started, time.perf_counter() - before, complete=False))
        raise
    return session.record(started, time.perf_counter() - before, complete)


def ceiling_cases(catalogue) -> list[Case]:
    """The kernels that measure the machine: no run is without its floor, its ceilings, and the proof that its caches
    were cold.

    Each at its smallest and largest workload; those of memory at every one, their other access patterns at every one
    that is not the smallest, since which size and pattern is quickest differs from device to device.
    """
    ceilings = [case for case in catalogue.cases() if case.spec.ceiling]
    rulers = [case for case in ceilings if not case.variant]
    smallest = {case.kernel: case for case in reversed(rulers)}
    largest = {case.kernel: case for case in rulers}
    of_memory = [
        case for case in ceilings if is_bandwidth(case.spec.ceiling) and not (case.variant and case.label == "S0")
    ]
    return list(dict.fromkeys([*smallest.values(), *largest.values(), *of_memory]))


def executions_of(result: CaseResult) -> list[Execution]:
    """Every launch of the kernel that has a sample, one that failed where the case went wrong; for who watches."""
    if result.status not in ("ok", "skipped"):
        return [Execution(result.name, time.time(), None, result.bytes)]
    metrics = ("cold_time", "hot_time")
    timed = [one for one in result.measurements if one.metric in metrics and one.subject == "kernel"]
    return [Execution(result.name, time.time(), seconds, result.bytes) for one in timed for seconds in one.samples]


def shelf(case: CaseResult) -> tuple:
    """Where a case stands in a record: by family, kernel, variant and label, whatever the order of measuring was."""
    return case.family, case.kernel, case.variant or "", case.label, case.name


def combined(results: Sequence[CaseResult]) -> CaseResult:
    """One result per case: the first process's facts, everybody's samples, the worst status."""
    bad = next((result for result in results if result.status != "ok"), None)
    groups: dict[tuple, list] = {}
    for result in results:
        for one in result.measurements:
            groups.setdefault((one.metric, one.subject), []).append(one)
    measurements = () if bad else tuple(merged(parts) for parts in groups.values())
    status, reason = (bad.status, bad.reason) if bad else ("ok", None)
    return replace(results[0], measurements=measurements, status=status, reason=reason)


def _buried(case, died):
    return result_of(case, died.status, f"{case.name}: {died.reason}")


def _without_time(case, bad):
    return result_of(case, "wrong", f"not timed, because {bad.reason}")

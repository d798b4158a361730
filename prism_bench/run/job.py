"""Run of a catalogue: its cases go through fresh processes into one record; records of equal GPUs are merged."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from prism_bench.backends.base import forget_kept_choices
from prism_bench.backends.cuda.peers.torch_forms import forget_choices
from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable, ResultsError, UsageError
from prism_bench.io import files
from prism_bench.io.files import Due
from prism_bench.io.workers import WorkerDied, WorkerEnvironment
from prism_bench.measure import shuffled
from prism_bench.measure.plausibility import judged, measured_limits, peaks_of
from prism_bench.monitor.executions import ExecutionJournal, executions_of
from prism_bench.record import identity
from prism_bench.record.identity import boards_together
from prism_bench.record.run_record import NOT_TIMED, CaseResult, RunRecord
from prism_bench.record.store.records import name_of
from prism_bench.run.carrying import Carrier
from prism_bench.run.controls import Controls
from prism_bench.run.measuring import COMPILING, TIMED, UNTIMED
from prism_bench.run.peers import peers_far_behind, peers_without_time
from prism_bench.run.pool import (
    HERE,
    Lanes,
    MeasuringOrder,
    Progress,
    Standby,
    TaskDriver,
    libraries_of,
    longest_first,
    timing,
    worth,
)
from prism_bench.run.precompile import KernelCompilation, PeerCompilation, ahead_tasks
from prism_bench.run.session import result_of
from prism_bench.run.settings import (
    RunClock,
    RunSpan,
    Settings,
    combined,
    record_order,
    seconds_of,
    to_plain,
    with_ceilings,
)
from prism_bench.spec.case import Case, edges_task


def run(
    catalogue: Catalogue,
    backend: str,
    cases: list[Case],
    settings: Settings,
    report: Callable[[Progress], object] = lambda _: None,
    *,
    timed: bool = True,
    others: Iterable[str] = (),
    keep: Callable[[RunRecord], object] = lambda _: None,
    carrier: Carrier | None = None,
    place: WorkerEnvironment = HERE,
) -> RunRecord:
    """Measure the cases on the backend, in workers at `place`; of the kernels in `others` only edges are verified.

    With a `carrier`, what it carries over is not verified again, and its controls are measured as such.

    An interrupt, or a backend that no longer opens, ends the run and keeps what was measured, in a record marked
    incomplete. `keep` gets such a record every PRISM_BENCH_SAVE_SECONDS too, in case the machine itself is lost, and
    where an unexpected error ends the run.
    """
    if backend == "numpy_reference":  # a variant's reference is its kernel's
        cases, others = [case for case in cases if not case.variant], [name for name in others if ":" not in name]
    if not cases:
        catalogue.refuse_nothing("run")
    clock, due, complete = RunClock(), Due(), True

    def reported(progress: Progress) -> None:
        report(progress)
        if driven.has_results and due():
            keep(driven.record(clock.span(complete=False)))

    if carrier:
        commit, dirty = identity.commit_of(catalogue.folder)
        carrier.record = name_of(identity.timestamp(clock.started), commit and commit[:8], dirty=dirty)
    driven = Run(catalogue, backend, settings, reported, place, carrier=carrier)
    try:
        with files.allowed():
            driven.measure(with_ceilings(catalogue, backend, cases) if timed else cases, timed, others)
    except KeyboardInterrupt:
        complete = False
    except BackendUnavailable:
        if not driven.has_results:
            raise
        complete = False
    except Exception:
        if driven.has_results:
            keep(driven.record(clock.span(complete=False)))
        raise
    return driven.record(clock.span(complete))


class Run(TaskDriver):
    """The run of a catalogue's cases: results arrive case by case, so that an interrupted run keeps what it has."""

    def __init__(
        self,
        catalogue: Catalogue,
        backend: str,
        settings: Settings,
        report: Callable[[Progress], object] = lambda _: None,
        place: WorkerEnvironment = HERE,
        *,
        carrier: Carrier | None = None,
    ) -> None:
        super().__init__(catalogue, backend, settings.timeout, place)
        self._carrier, self._controls = carrier, Controls()
        self._process: int | None = None  # that times
        self.facts = dict(carrier.facts) if carrier else {}
        self._settings, self._report = settings, report
        self._journal = ExecutionJournal()
        self._done = self._total = 0
        self._spent: dict[str, float] = {}
        self._checked: Sequence[str] | None = None  # labels whose compiled peers are checked now; None: all
        self._avoided: dict[str, dict[str, str]] = {}  # by task, peers that have no time, and why
        self._settled: dict[str, list[str]] = {}  # by task, peers that later processes need not measure
        self._peerless: list[str] = []  # tasks
        self._with_peers: set[str] = set()  # tasks whose peers are verified with them
        self._lanes: Lanes | None = None  # kept while all is verified

    def measure(
        self, cases: list[Case], timed: bool = True, others: Iterable[str] = (), anchors: Sequence[Case] = ()
    ) -> None:
        """Verify the edges of the cases' kernels (and of `others`) and the cases, time the right ones in every process.

        With several lanes everything is verified before anything is timed; with one, the first process does both. The
        `anchors` are measured like the cases, without their edges and their peers.
        """
        edges = list(dict.fromkeys([*(edges_task(case) for case in cases), *(f"edges:{kernel}" for kernel in others)]))
        if self._carrier:
            self._controls = self._carrier.controls_of(cases)
            self._settings = replace(self._settings, controls=self._controls.orders())
        compares = timed and self._settings.peers and self._backend == "cuda"
        raced = [case for case in cases if compares and case.name not in self._controls.known]
        self._peerless = [case.task for case in anchors if case not in cases]
        self._peerless += [case.task for case in cases if case.name in self._controls.known]
        cases = list(dict.fromkeys([*cases, *anchors]))
        processes = self._settings.processes if timed else 1
        apart = timed and self._settings.lanes > 1
        self._total = len(edges) + len(cases) * (processes + apart)
        edges = self._without_carried(edges)
        with self._standing_by(raced, processes if apart else 0) as ready:
            with Lanes(self._place, ["cupy", "torch"] if raced else ()) as self._lanes:
                self._verify(cases, edges, raced, timed)
            self._lanes = None
            ready.settle()
            self.standby, self._checked = ready, ["S0"] if apart and raced else None
            with self.stage(TIMED):
                for process in range(processes if timed else 0):
                    tasks = self._without_passed(self.right_tasks(cases, process), process)
                    self.go_through(tasks, process, verifies=process == 0 and not apart)
                    if process + 1 == self._settings.control_processes:
                        cases = self._without_controls(cases)
                        self._total = self._done + len(cases) * (processes - process - 1)

    def _without_controls(self, cases: list[Case]) -> list[Case]:
        """Return the cases that the other processes measure: those that are no controls, and those in doubt."""
        results = [combined(self.results[case.name]) for case in cases if case.name in self.results]
        controls = {result.name for result in results if result.control} - self._controls.in_doubt(results)
        return [case for case in cases if case.name not in controls]

    def _verify(self, cases: list[Case], edges: list[str], raced: list[Case], timed: bool) -> None:
        """Compile and verify; with one lane the first timing process verifies the cases that it times."""
        apart = timed and self._settings.lanes > 1
        with self._peers_compiling(raced), self._compile_ahead([*edges, *(case.task for case in cases)]):
            self._checked = [] if raced or not timed else None
            with self.stage(UNTIMED):
                self.go_through(edges, 0, timed=False)
                if apart:  # what keeps the device busy would disturb Inductor, which times its own choices
                    small = [case for case in cases if not raced or case.label == "S0"]
                    self.go_through(self._without_carried(self.right_tasks(small, 0), raced), 0, timed=False)
        if apart and raced:
            with self.stage(UNTIMED):
                self._checked = None
                large = [case for case in cases if case.label != "S0"]
                self.go_through(self._without_carried(self.right_tasks(large, 0), raced), 0, timed=False)
        if not timed:
            with self.stage(UNTIMED):
                self.go_through(self.right_tasks(cases, 0), 0, timed=False)
        if raced:
            forget_choices()  # they were made next to other work, which the first timing process does without
            forget_kept_choices()

    def _standing_by(self, raced: list[Case], processes: int) -> Standby:
        """Return a worker for each timing process on a GPU, which imports what it and its peers will need."""
        libraries = ["cupy", *libraries_of(raced)]
        wanted = [libraries if process < self._settings.peer_processes else ["cupy"] for process in range(processes)]
        return Standby(wanted if self._backend == "cuda" else [], timing(self._place), self._catalogue.folder)

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Count the wall time of the `with` block for the stage `name` of the run."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._spent = seconds_of([self._spent, {name: time.perf_counter() - began}])

    def go_through(self, tasks: list[str], process: int, *, timed: bool = True, verifies: bool | None = None) -> None:
        """Send the tasks through one process, or through several where nothing is timed.

        The process numbered 0 verifies them, unless `verifies` decides that.
        """
        verifies = process == 0 if verifies is None else verifies
        self._process = process if timed else None
        lanes = 1 if timed else worth(self._settings.lanes, tasks)
        if lanes > 1 or (self._lanes and self._settings.lanes > 1 and tasks and not timed):
            order = self._order_for(process, [], timed, verifies)
            workers = self._lanes or Lanes(self._place)
            lanes = max(lanes, min(workers.started, len(tasks)))
            tasks = longest_first(tasks, self._settings.known_seconds, lanes)
            with nullcontext() if self._lanes else workers:
                self.follow(workers.work(order, tasks, lanes, self._timeout), process, [])
        else:
            self.drive(lambda left: self._order_for(process, left, timed, verifies), tasks, process)

    def right_tasks(self, cases: Iterable[Case], process: int) -> list[str]:
        """Return the tasks of the cases that are right so far, in the order of that process.

        Ceiling benchmarks come first, since they raise the clocks; the other cases are shuffled. A case that has no
        result and whose kernel is wrong at an edge gets a result with that reason.
        """
        edges = [r for results in self.results.values() for r in results if r.label in ("edge", "golden")]
        bad = [edge for edge in edges if edge.status not in ("ok", "skipped")]
        wrong = {(edge.kernel, edge.variant): edge for edge in reversed(bad)}
        ceilings: list[str] = []
        others: list[str] = []
        for case in cases:
            edge = wrong.get((case.spec.name, case.variant))
            if edge and case.name not in self.results:
                self.results[case.name] = [result_of(case, "wrong", f"{NOT_TIMED}{edge.reason}")]
            if edge is None and self.is_right(case.name):
                (ceilings if case.spec.ceiling else others).append(case.task)
        return ceilings + shuffled(others, self._settings.seed, process)

    def _without_carried(self, tasks: list[str], raced: Sequence[Case] = ()) -> list[str]:
        """Return the tasks that are to be verified, after taking the results of the others.

        The peers of `raced` cases are verified in the same task.
        """
        left: list[str] = []
        self._with_peers = {case.task for case in raced}
        for task in tasks:
            results = self._carrier.carried(task, peers=task in self._with_peers) if self._carrier else []
            self._take_results(task, results)
            left += [] if results else [task]
        self._done += len(tasks) - len(left)
        return left

    def _without_passed(self, tasks: list[str], process: int) -> list[str]:
        """Return the tasks that the process has to time, after taking what it measured in an interrupted pass."""
        passed = self._carrier.passed if self._carrier else None
        known = {task: result for task in tasks if passed and (result := passed.result(task, process))}
        for task, result in known.items():
            self._take_results(task, [result])
        self._done += len(known)
        return [task for task in tasks if task not in known]

    def verifying(self, cases: list[Case]) -> AbstractContextManager[None]:
        """Return a block in which a process verifies the cases already; `go_through` takes its results."""
        tasks = self.right_tasks(cases, 0)
        return self.beginning(self._order_for(0, tasks, timed=False, verifies=True)) if tasks else nullcontext()

    def begin(self, task: str, process: int) -> None:
        """Report the progress."""
        self._report(Progress(process, self._done, self._total, task))

    def keep(self, task: str, results: Sequence[CaseResult]) -> None:
        """Keep each result under its own name, since a task may be all edges of a kernel."""
        self._take_results(task, results)
        for result in results:
            if far_behind := peers_far_behind(result, self._settings.peer_repeated_within):
                self._settled.setdefault(task, far_behind)
            if self.facts.get("uuid"):
                self._journal.append(executions_of(result))
        if self._carrier:
            self._carrier.keep(task, results, peers=task in self._with_peers)
            if self._carrier.passed and self._process is not None:
                self._carrier.passed.keep(task, self._process, results[0])
        self._done += 1

    def _take_results(self, task: str, results: Sequence[CaseResult]) -> None:
        for result in results:
            with files.held():  # a name without a result would have no record
                self.results.setdefault(result.name, []).append(result)
            if without_time := peers_without_time(result):
                self._avoided[task] = without_time | self._avoided.get(task, {})

    def lose(self, death: WorkerDied, task: str) -> None:
        """Keep the failure as the result of the case, or of the edge that the worker began last (else the first)."""
        self._done += 1
        if task.startswith("edges:"):
            edges = self._catalogue.edges_of(task.removeprefix("edges:"))
            lost = [edge for edge in edges if edge.name == death.case] or edges[:1]
        else:
            lost = [self._catalogue.anywhere(task)]
        for case in lost:
            result = result_of(case, death.status, f"{case.name}: {death.reason}")
            self.results.setdefault(case.name, []).append(result)

    def avoid(self, death: WorkerDied, task: str) -> bool:
        """Leave the peer out of all later processes; False where it was left out already."""
        peers = self._avoided.setdefault(task, {})
        if not death.peer or death.peer in peers:
            return False
        peers[death.peer] = death.peer_reason
        return True

    @contextmanager
    def _compile_ahead(self, tasks: list[str]) -> Generator[None]:
        """Let one process compile the tasks' code on all cores during the `with` block, and wait for it.

        Verification workers compile whatever is still missing; with one lane the first process compiles its own code.
        """
        if self._settings.lanes == 1:
            yield
            return
        order = self._order_for(0, [], timed=False, verifies=False)
        order["ahead"] = tasks
        with KernelCompilation(order, self._timeout, self._place) as compilation:
            yield
            with self.stage(COMPILING):
                compilation.wait()

    @contextmanager
    def _peers_compiling(self, cases: list[Case]) -> Generator[None]:
        """Let several processes compile the peers of the cases during the `with` block; at its end, wait for the rest.

        Peers are neither verified nor timed within.
        """
        order = self._order_for(0, [], timed=False, verifies=False)
        with PeerCompilation(order, ahead_tasks(cases)) as compilation:
            yield
            with self.stage(COMPILING):
                for done, total, task in compilation.rest():
                    self._report(Progress(0, self._done, self._total, f"compiling {task} ({done} of {total})"))
            self._avoided |= compilation.late

    def _order_for(self, process: int, tasks: list[str], timed: bool, verifies: bool) -> MeasuringOrder:
        order: MeasuringOrder = {
            "backend": self._backend,
            "catalogue": str(self._catalogue.folder.resolve()),
            "settings": to_plain(self._settings),
            "process": process,
            "timed": timed,
            "verifies": verifies,
            "tasks": tasks,
            "settled": {task: self._settled[task] for task in tasks if process and self._settled.get(task)},
            "peerless": self._peerless,
            "ahead": tasks if process == 0 and self._settings.lanes == 1 else [],
            "avoid": {task: peers for task, peers in self._avoided.items() if not tasks or task in tasks},
        }
        if self._checked is not None and process == 0:
            order["check_compiled"] = list(self._checked)
        return order

    def spent(self) -> dict[str, float]:
        """Return the seconds of the stages so far."""
        return dict(self._spent)

    def spend(self, seconds: dict[str, float]) -> None:
        """Count the seconds of stages that took place elsewhere."""
        self._spent = seconds_of([self._spent, seconds])

    def record(self, span: RunSpan) -> RunRecord:
        """Return the record of everything measured so far; impossible measurements are marked."""
        cases = tuple(sorted((combined(results) for results in self.results.values()), key=record_order))
        limits = measured_limits(cases, self.facts.get("l2_bytes", 0), peaks_of(self.facts))
        judged_cases = judged(cases, limits, self.builder.written_bytes(cases))
        protocol = {**self._settings.protocol(self._backend), **self.protocol}
        return self.builder.build(span, judged_cases, protocol=protocol, monitor=self.monitor, spent=self._spent)


# Merge of run records: the parts that equal GPUs measured side by side, each with some of the kernels.
#
# Every part measures ceilings for itself, on a fleet the anchors among them, and its own device's limits rejected what
# is impossible; the merged record keeps those judgements. A ceiling's samples of all parts that measured it are one
# measurement, so that shares in the merged record refer to the median of the machine's GPUs.

Part = tuple[str, RunRecord]  # the file that it comes from, for errors
_OF_EACH = ("choices", "stale")  # of tuning: by case, so each part has its own


def merge(parts: Sequence[Part]) -> RunRecord:
    """Return the parts as one record, its cases in the order of every record.

    `created` is the earliest part's, `duration` the longest one's: the wall time, if they ran side by side. An
    incomplete part, or one that is a merged record, is treated like any other. A ResultsError names both files where
    two are one record, differ in a circumstance, or have a kernel in common that is no ceiling.
    """
    if len(parts) < 2:
        raise UsageError("a part alone is a record already; name two or more")
    for place, part in enumerate(parts):
        for earlier in parts[:place]:
            _require_of_one_run(earlier, part)
    records = _with_boards([record for _, record in parts])
    merged_parts = tuple(part for record in records for part in record.parts or (_part_entry(record),))
    return replace(
        records[0],
        created=min(record.created for record in records),
        duration=max(record.duration for record in records),
        complete=all(record.complete for record in records),
        machine=_machine(records[0].machine, {part["uuid"] for part in merged_parts}),
        monitor=tuple(entry for record in records for entry in record.monitor),
        tuning=_tuning(records),
        cases=_cases(records),
        parts=merged_parts,
        spent=seconds_of(record.spent for record in records),
        boards=boards_together(record.boards for record in records),
    )


def _with_boards(records: Sequence[RunRecord]) -> list[RunRecord]:
    """Return the records; where several boards measured them, each case has its own, as far as it is known."""
    if len({uuid for record in records for uuid in record.uuids}) < 2:
        return list(records)
    return [
        replace(record, cases=tuple(replace(case, board=record.board_of(case)) for case in record.cases))
        for record in records
    ]


def _require_of_one_run(earlier: Part, part: Part) -> None:
    (here, earlier_record), (there, record) = earlier, part
    if earlier_record == record:
        raise ResultsError(f"{there}: it is the same record as {here}; each part counts once")
    before, after = _circumstances(earlier_record), _circumstances(record)
    for name in before | after:
        if before.get(name) != after.get(name):
            mine, theirs = (repr(facts[name]) if name in facts else "absent" for facts in (after, before))
            raise ResultsError(
                f"{there}: its {name} is {mine}, that of {here} is {theirs}; parts of one run agree in it"
            )
    _require_apart(earlier, part)


def _circumstances(record: RunRecord) -> dict[str, object]:
    """Return by dotted name what parts of one run have in common."""
    machine = {key: value for key, value in record.machine.items() if key != "uuid"}
    tuning = {key: value for key, value in record.tuning.items() if key not in _OF_EACH}
    return dict(
        _leaves(
            {
                "backend": record.backend,
                "catalogue": record.catalogue,
                "commit": record.commit,
                "dirty": record.dirty,
                "machine": machine,
                "software": record.software,
                "protocol": record.protocol,
                "tuning": tuning,
            }
        )
    )


def _leaves(values: Mapping[str, object], path: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _require_apart(earlier: Part, part: Part) -> None:
    """Raise a ResultsError where a kernel is in both, except ceilings that were launched the same way in both."""
    (here, earlier_record), (there, record) = earlier, part
    known, kernels = {case.name: case for case in earlier_record.cases}, set(_kernels(earlier_record))
    for case in record.cases:
        if not case.ceiling and case.kernel in kernels:
            what = f"case '{case.name}'" if case.name in known else f"kernel '{case.kernel}'"
            raise ResultsError(f"{there}: {what} is in {here} too; a kernel and all of its variants belong in one part")
        if case.name in known and known[case.name].configuration != case.configuration:
            raise ResultsError(
                f"{there}: its ceiling '{case.name}' was launched with {case.configuration}, that of {here} with "
                f"{known[case.name].configuration}"
            )


def _kernels(record: RunRecord) -> list[str]:
    """Return the kernels that are no ceilings, sorted."""
    return sorted({case.kernel for case in record.cases if not case.ceiling})


def _part_entry(record: RunRecord) -> dict[str, Any]:
    uuid = record.machine.get("uuid")
    return {"uuid": uuid, "created": record.created, "duration": record.duration, "kernels": _kernels(record)}


def _machine(machine: dict[str, Any], uuids: set[str | None]) -> dict[str, Any]:
    shared = {key: value for key, value in machine.items() if key != "uuid"}
    return machine if len(uuids) == 1 else shared


def _tuning(records: Sequence[RunRecord]) -> dict[str, Any]:
    tuning = {key: value for key, value in records[0].tuning.items() if key not in _OF_EACH}
    for key in _OF_EACH:
        tables = [record.tuning[key] for record in records if key in record.tuning]
        tuning |= {key: {name: value for choices in tables for name, value in choices.items()}} if tables else {}
    return tuning


def _cases(records: Sequence[RunRecord]) -> tuple[CaseResult, ...]:
    by_name: dict[str, list[CaseResult]] = {}
    for record in records:
        for case in record.cases:
            by_name.setdefault(case.name, []).append(case)
    return tuple(sorted(map(_joined, by_name.values()), key=record_order))


def _joined(results: Sequence[CaseResult]) -> CaseResult:
    """Return the one result as it is; a ceiling in several parts has the status of the worst."""
    gravity = {"ok": 2, "skipped": 1}
    if len(results) == 1:
        return results[0]
    apart = len({result.board for result in results}) > 1
    ordered = sorted(results, key=lambda result: gravity.get(result.status, 0))
    joined = combined([_by_process(result) if apart else result for result in ordered])
    return replace(joined, board=None) if apart else joined


def _by_process(case: CaseResult) -> CaseResult:
    """Return the case with the board of each process, where one board measured it; a merged record has them already."""
    if case.board is None:
        return case
    boards = [(case.board,) * len(measurement.processes) for measurement in case.measurements]
    measured = [
        replace(measurement, boards=places) for measurement, places in zip(case.measurements, boards, strict=True)
    ]
    return replace(case, measurements=tuple(measured))

"""Run of an extension's tasks: the sides of a comparison measured in turn, A B C, C B A, A B C, ..."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable
from prism_bench.io import files
from prism_bench.io.workers import WorkerDied, WorkerEnvironment, WorkerEvent
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.run.pool import Progress, TaskDriver, TaskOrder, rounds
from prism_bench.run.settings import RunClock, RunSpan, combined

FAMILY = "pipelines"  # of a plan that names no other
PROTOCOL = 1
_TIMEOUT = 300.0  # seconds of one task; a catalogue is recorded in one


@dataclass(frozen=True)
class TaskPlan:
    """What is measured: tasks of the workers at `place`, at a label, on a backend, in how many processes of each side.

    No further round of processes starts after `limit` seconds. `family` is in the protocol of the records, and that of
    results whose worker died.
    """

    catalogue: Catalogue
    backend: str
    tasks: tuple[str, ...]
    place: WorkerEnvironment
    label: str = "S0"
    processes: int = 3
    timed: bool = True
    limit: float | None = None
    family: str = FAMILY

    @property
    def rounds(self) -> int:
        """Processes of a side: the first one verifies."""
        return 1 + (self.processes if self.timed else 0)


@dataclass
class ComparisonSide:
    """One side of a comparison, and what remains of it next to its record.

    `allocator` names what its workers install first (CuPy's default stays without one), `allocator_facts` are what that
    reports at the end, `recorded` the files that tasks have written, `missing` the reason why the side could not begin.
    """

    name: str
    allocator: str | None = None
    allocator_facts: dict[str, Any] | None = None
    recorded: tuple[str, ...] = ()
    failures: tuple[CaseResult, ...] = ()
    missing: str | None = None


class _SideDriver(TaskDriver):
    """Drives the tasks of one side; results are kept by task."""

    def __init__(self, plan: TaskPlan, side: ComparisonSide, begun: Callable[[str, int], None]) -> None:
        super().__init__(plan.catalogue, plan.backend, _TIMEOUT, plan.place)
        self._plan, self.side, self._begun = plan, side, begun

    def turn(self, number: int) -> None:
        """Send the tasks that are right so far through the process of that number."""
        if self.side.missing:
            return
        tasks = [task for task in self._plan.tasks if self.is_right(task)]
        try:
            self.drive(lambda left: self._order(left, number), tasks, number)
        except BackendUnavailable as error:
            self.side.missing = str(error)

    def begin(self, task: str, process: int) -> None:
        self._begun(task, process)

    def keep(self, task: str, results: Sequence[CaseResult]) -> None:
        if results:
            self.results.setdefault(task, []).extend(results)

    def lose(self, death: WorkerDied, task: str) -> None:
        kind, _, rest = task.partition(":")
        lost = CaseResult(
            name=task,
            kernel=kind,
            family=self._plan.family,
            label=self._plan.label,
            workload={},
            bytes=0,
            flops=None,
            status=death.status,
            variant=rest,
            reason=death.reason,
        )
        self.results.setdefault(task, []).append(lost)
        self.side.failures += (lost,)

    def take(self, event: WorkerEvent, process: int, finished: list[str]) -> None:
        super().take(event, process, finished)
        self.side.allocator_facts = event.get("allocator", self.side.allocator_facts)
        if "recorded" in event:
            self.side.recorded += (event["recorded"],)

    def record(self, span: RunSpan) -> RunRecord:
        """Return the record of what was measured so far."""
        cases = [combined(results) for results in self.results.values()]
        protocol = {"version": PROTOCOL, "of": self._plan.family, "processes": self._plan.processes}
        return self.builder.build(span, cases, protocol=protocol)

    def _order(self, tasks: list[str], number: int) -> TaskOrder:
        plan = self._plan
        return {
            "backend": plan.backend,
            "catalogue": str(plan.catalogue.folder.resolve()),
            "label": plan.label,
            "process": number,
            "timed": plan.timed,
            "tasks": tasks,
            "allocator": self.side.allocator,
            "choices": {case: dict(choice) for case, choice in plan.catalogue.choices.items()},
        }


def measure_sides(
    plan: TaskPlan,
    sides: Sequence[ComparisonSide],
    report: Callable[[Progress], object] = lambda _: None,
    keep: Callable[[dict[str, RunRecord]], object] = lambda _: None,
) -> dict[str, RunRecord]:
    """Measure the sides in turn; return a record by side.

    A side that cannot begin (an allocator that is not installed) keeps the reason in `missing` and has no record;
    BackendUnavailable where none could. An interrupt keeps what was measured, in records marked incomplete; `keep` gets
    such records after every round of processes too.
    """
    clock, total, done = RunClock(), len(plan.tasks) * len(sides) * plan.rounds, 0

    def begun(task: str, process: int) -> None:
        nonlocal done
        report(Progress(process, min(done, total), total, task))
        done += 1

    drivers = [_SideDriver(plan, side, begun) for side in sides]

    def records(complete: bool) -> dict[str, RunRecord]:
        span = clock.span(complete)
        return {driver.side.name: driver.record(span) for driver in drivers if driver.has_results}

    complete, end = True, None if plan.limit is None else clock.counter + plan.limit
    try:
        with files.allowed():
            for _ in rounds(drivers, range(plan.rounds), _SideDriver.turn, end):
                keep(records(complete=False))
    except KeyboardInterrupt:
        complete = False
    measured = records(complete)
    if not measured and not any(side.recorded for side in sides):
        raise BackendUnavailable(next((side.missing for side in sides if side.missing), "nothing was measured"))
    return measured

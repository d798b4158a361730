"""Pipelines and traces measured in fresh processes, the sides of a comparison in turn: A B C, C B A, A B C, ..."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from prism_bench import identity, interrupts
from prism_bench.catalogue import Catalogue
from prism_bench.emulator.last_words import crash_in
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.pipelines.forms import require_form
from prism_bench.extensions.pipelines.pipeline import Pipeline, placed
from prism_bench.extensions.pipelines.session import FAMILY
from prism_bench.files import default_folder
from prism_bench.run import Progress
from prism_bench.run.driver import combined
from prism_bench.run_record import CaseResult, RunRecord, decode_case
from prism_bench.workers.handle import WorkerEnvironment
from prism_bench.workers.process import WorkerDied, died_at_start, work

PLACE = WorkerEnvironment("prism_bench.extensions.pipelines.worker", explain=crash_in)
TIMEOUT = 300.0  # seconds of one task; a catalogue is recorded in one


@dataclass(frozen=True)
class Plan:
    """What is measured: tasks of the worker, at a label, on a backend, in how many processes of each side; `limit` in
    seconds, after which no further round of processes starts.
    """

    catalogue: Catalogue
    backend: str
    tasks: tuple[str, ...]
    label: str = "S0"
    processes: int = 3
    timed: bool = True
    limit: float | None = None

    @property
    def rounds(self) -> int:
        """Processes of a side: the first one verifies."""
        return 1 + (self.processes if self.timed else 0)


@dataclass
class Side:
    """One side of a comparison while it is measured: `results` by task, what its allocator `told` at the end, the files
    that were `recorded`, or why all of it is `missing`. Without an `allocator` CuPy's default stays.
    """

    name: str
    allocator: str | None = None
    results: dict[str, list[CaseResult]] = field(default_factory=dict)
    facts: dict = field(default_factory=dict)
    told: dict = field(default_factory=dict)
    recorded: list[str] = field(default_factory=list)
    task: str = ""
    missing: str | None = None


def measure(
    plan: Plan, sides: Sequence[Side], report: Callable = lambda _: None,
    keep: Callable[[dict[str, RunRecord]], object] = lambda _: None,
) -> dict[str, RunRecord]:  # fmt: skip
    """A record by side. A side that cannot begin (an allocator that is not there) keeps the reason in `missing` and has
    no record; PrismBenchError where none could. An interrupt keeps what was measured, in records marked incomplete;
    such records go to `keep` after every round of processes too.
    """
    started, before, complete = datetime.now(UTC), time.perf_counter(), True
    bar = _Bar(report, len(plan.tasks) * len(sides) * plan.rounds)

    def records_so_far(complete):
        seconds = time.perf_counter() - before
        return {side.name: _record(plan, side, started, seconds, complete) for side in sides if side.results}

    try:
        with interrupts.allowed():
            for _ in _rounds(plan, sides, bar, before):
                keep(records_so_far(complete=False))
    except KeyboardInterrupt:
        complete = False
    records = records_so_far(complete)
    if not records and not any(side.recorded for side in sides):
        raise BackendUnavailable(next((side.missing for side in sides if side.missing), "nothing was measured"))
    return records


def _rounds(plan, sides, bar, before):
    """Round after round of processes; yields after each."""
    for number in range(plan.rounds):
        begun = time.perf_counter()
        for side in sides if number % 2 == 0 else sides[::-1]:
            if not side.missing:
                _go_through(plan, side, number, bar)
        yield
        now = time.perf_counter()
        if plan.limit is not None and now - before + (now - begun) > plan.limit:
            return


def _go_through(plan, side, number, bar):
    """The side's tasks in one process; another one for the rest where it dies."""
    tasks = [task for task in plan.tasks if _still_right(side, task)]
    while tasks:
        done = []
        try:
            for event in work(_order(plan, side, number, tasks), TIMEOUT, PLACE):
                _take(side, event, done, bar, number)
        except WorkerDied as error:
            if error.task is None:
                side.missing = str(died_at_start(error, plan.backend))
                return
            side.results.setdefault(error.task, []).append(_buried(error, plan.label))
            done.append(error.task)
        tasks = [task for task in tasks if task not in done]


def _order(plan, side, number, tasks) -> Mapping:
    return {
        "backend": plan.backend, "catalogue": str(plan.catalogue.folder.resolve()), "label": plan.label,
        "process": number, "timed": plan.timed, "tasks": tasks, "allocator": side.allocator,
        "choices": plan.catalogue.choices,
    }  # fmt: skip


def _take(side, event, done, bar, number):
    side.facts = event.get("facts", side.facts)
    side.told = event.get("allocator", side.told)
    if "begin" in event:
        bar.begin(event["begin"], number)
        side.task = event["begin"]
    if "recorded" in event:
        side.recorded.append(event["recorded"])
        done.append(side.task)
    if "results" in event:
        side.results.setdefault(side.task, []).extend(map(decode_case, event["results"]))
        done.append(side.task)


def _still_right(side, task):
    return all(result.status == "ok" for result in side.results.get(task, ()))


def _buried(error, label):
    return CaseResult(
        name=error.task, kernel=error.task.partition(":")[0], family=FAMILY, label=label, workload={}, bytes=0,
        flops=None, status=error.status, variant=error.task.partition(":")[2], reason=error.reason,
    )  # fmt: skip


class _Bar:
    """Progress over all sides."""

    def __init__(self, report, total):
        self._report, self._total, self._done = report, total, 0

    def begin(self, task, number):
        self._report(Progress(number, min(self._done, self._total), self._total, task))
        self._done += 1


def _record(plan, side, started, seconds, complete):
    folder = plan.catalogue.folder
    commit, dirty = identity.commit_of(folder)
    return RunRecord(
        created=started.isoformat(timespec="seconds").replace("+00:00", ""), backend=plan.backend,
        machine=identity.machine(side.facts), software=identity.software(side.facts.get("software", {})),
        protocol={"version": 1, "of": FAMILY, "processes": plan.processes},
        cases=tuple(combined(results) for results in side.results.values()), commit=commit, dirty=dirty,
        catalogue="built-in" if folder == default_folder() else str(folder), complete=complete,
        duration=round(seconds, 1),
    )  # fmt: skip


def tasks_of(pipelines: Sequence[Pipeline], forms: Sequence[str], label: str, catalogue: Catalogue) -> tuple[str, ...]:
    """A task for each form of each pipeline. UsageError for an unknown form or label, SpecError where stages misfit."""
    for name in forms:
        require_form(name)
    for pipeline in pipelines:
        placed(pipeline, label, catalogue)
    return tuple(f"{pipeline.name}:{form}" for pipeline in pipelines for form in forms)

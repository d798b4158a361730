"""Worker for the tasks of an extension: reads its order, carries out each task, and reports the results.

Its messages are those of the measuring worker. An order is a `pool.TaskOrder`; a task's event holds the
`results`, and `recorded` where it wrote a file.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.io.workers import WorkerEvent, end_with
from prism_bench.record.run_record import CaseResult, encode_case
from prism_bench.run.pool import TaskOrder
from prism_bench.run.precompile import compile_ahead
from prism_bench.run.settings import PROTOCOL
from prism_bench.run.worker import private_output
from prism_bench.spec.case import Case


@dataclass(frozen=True)
class TaskContext:
    """What a worker's tasks need: the order, and the backend and catalogue that it names."""

    order: TaskOrder
    backend: Backend
    catalogue: Catalogue

    @property
    def first(self) -> bool:
        """Whether this is the process that verifies and does not time."""
        return self.order["process"] == 0


@dataclass(frozen=True)
class TaskOutcome:
    """What one task gave: results, or the file that it wrote."""

    results: Sequence[CaseResult] = ()
    recorded: Path | None = None


class Tasks(Protocol):
    """The tasks of an extension in one worker."""

    def cases(self, tasks: Sequence[str]) -> list[Case]:
        """Return the cases that the tasks will launch, as far as they are known beforehand."""
        ...

    def __call__(self, task: str) -> TaskOutcome:
        """Carry out the task."""
        ...


class Programs(Protocol):
    """Whole programs that an extension offers to others, so that they can be measured under an allocator."""

    names: tuple[str, ...]  # of tasks

    def open(self, context: TaskContext) -> Tasks:
        """Return the programs as tasks of a worker."""
        ...

    def cases(self, context: TaskContext) -> list[Case]:
        """Return the cases that `evaluate` launches."""
        ...

    def evaluate(self, context: TaskContext) -> None:
        """Run every program a few times, its outputs allocated anew each time."""
        ...


class Allocator(Protocol):
    """An allocator that was installed."""

    def facts(self) -> dict[str, Any]:
        """Return what it reports of itself at the end."""
        ...


def work_through(open_tasks: Callable[[TaskContext], Tasks], install: Callable[[str], Allocator] | None = None) -> None:
    """Carry out the order on standard input.

    `install` installs the order's allocator before the backend opens, where the order names one.
    """
    end_with(sys.stdin.fileno())
    order: TaskOrder = json.loads(sys.stdin.readline())
    write = private_output()
    allocator = install(order["allocator"]) if install and order["allocator"] else None
    catalogue = replace(discover(order["catalogue"]), choices=order["choices"])
    context = TaskContext(order, open_backend(order["backend"]), catalogue)
    backend = context.backend
    write({"facts": backend.facts(), "protocol": {"version": PROTOCOL}})
    tasks = open_tasks(context)
    if backend.name == "cuda" and context.first:
        compile_ahead(tasks.cases(order["tasks"]), backend.device)
    for task in order["tasks"]:
        write({"begin": task})
        outcome = tasks(task)
        event: WorkerEvent = {"results": [encode_case(result) for result in outcome.results]}
        write(event if outcome.recorded is None else {**event, "recorded": str(outcome.recorded)})
    write({"end": True, "allocator": allocator.facts()} if allocator else {"end": True})

"""Worker that measures with one allocator.

Tasks are `replay:PATH`, `record:programs=FOLDER`, `record:catalogue=FOLDER`, and the programs of another extension.
"""

from collections.abc import Sequence
from pathlib import Path

from prism_bench.errors import unknown
from prism_bench.extensions.memory.cupy_pool import install, open_allocator
from prism_bench.extensions.memory.replay import installed_programs, measure_trace, record_catalogue, record_programs
from prism_bench.run.task_worker import TaskContext, TaskOutcome, work_through
from prism_bench.spec.case import Case


class _AllocatorTasks:
    """The tasks of one worker."""

    def __init__(self, context: TaskContext) -> None:
        self._context, self._programs = context, installed_programs()
        self._opened = self._programs.open(context) if self._programs else None

    def cases(self, tasks: Sequence[str]) -> list[Case]:
        """Return the cases of the programs, and of a recording."""
        cases = self._opened.cases(tasks) if self._opened else []
        if any(task.startswith("record:") for task in tasks):
            cases += self._programs.cases(self._context) if self._programs else []
            cases += self._context.catalogue.cases(labels=(self._context.order["label"],))
        return cases

    def __call__(self, task: str) -> TaskOutcome:
        """Replay a trace, record one, or run a program."""
        context = self._context
        kind, _, rest = task.partition(":")
        if kind == "replay":
            fresh = open_allocator(
                context.order["allocator"] or ""
            )  # the installed allocator holds the backend's buffers
            return TaskOutcome([measure_trace(Path(rest), fresh, context.backend, context.first)])
        if kind == "record":
            what, _, folder = rest.partition("=")
            if what == "catalogue":
                return TaskOutcome(recorded=record_catalogue(context, Path(folder)))
            if self._programs:
                return TaskOutcome(recorded=record_programs(self._programs, context, Path(folder)))
        if self._opened:
            return self._opened(task)
        raise unknown("task", task, ("replay:PATH", "record:catalogue=FOLDER"))


if __name__ == "__main__":
    work_through(_AllocatorTasks, install)

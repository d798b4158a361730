"""Worker for operations on several GPUs. A task is a case of `operations`, `all_reduce:nccl@S1@2`."""

from collections.abc import Sequence

from prism_bench.extensions.links.groups import forbid_multicast
from prism_bench.extensions.links.session import LinkSession
from prism_bench.run.pool import worker_of
from prism_bench.run.task_worker import TaskContext, TaskOutcome, work_through
from prism_bench.spec.case import Case

PLACE = worker_of("prism_bench.extensions.links.worker")


class _LinkTasks:
    """Tasks of a worker."""

    def __init__(self, context: TaskContext) -> None:
        self._session = LinkSession(context.backend, first=context.first)

    def cases(self, tasks: Sequence[str]) -> list[Case]:
        """Return no cases: these operations are not in a catalogue."""
        return []

    def __call__(self, task: str) -> TaskOutcome:
        """Run a task."""
        return TaskOutcome([self._session.task(task)])


if __name__ == "__main__":
    forbid_multicast()  # before libraries that could start NCCL are loaded
    work_through(_LinkTasks)

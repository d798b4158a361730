"""Worker that measures pipelines. A task is a `pipeline:form`."""

from collections.abc import Sequence

from prism_bench.catalogue import Catalogue
from prism_bench.extensions.pipelines.definitions import INTEGRATION, KNOWN
from prism_bench.extensions.pipelines.pipeline import Pipeline, Prepared, form, placed, require_form
from prism_bench.extensions.pipelines.session import PipelineSession
from prism_bench.run.pool import worker_of
from prism_bench.run.task_worker import TaskContext, TaskOutcome, work_through
from prism_bench.spec.case import Case

PLACE = worker_of("prism_bench.extensions.pipelines.worker")
_EVALUATIONS = 5


def tasks_of(pipelines: Sequence[Pipeline], forms: Sequence[str], label: str, catalogue: Catalogue) -> tuple[str, ...]:
    """Return a task for each form of each pipeline.

    UsageError for an unknown form or label, SpecError if stages do not fit together.
    """
    for name in forms:
        require_form(name)
    for pipeline in pipelines:
        placed(pipeline, label, catalogue)
    return tuple(f"{pipeline.name}:{form}" for pipeline in pipelines for form in forms)


class PipelineTasks:
    """The tasks of one worker."""

    def __init__(self, context: TaskContext) -> None:
        order = context.order
        self._context = context
        self._session = PipelineSession(
            context.backend, context.catalogue, order["label"], first=context.first, timed=order["timed"]
        )

    def cases(self, tasks: Sequence[str]) -> list[Case]:
        """Return the cases of every stage of the pipelines; a task of another kind has no cases."""
        names = dict.fromkeys(task.partition(":")[0] for task in tasks)
        return _cases([KNOWN[name] for name in names if name in KNOWN], self._context)

    def __call__(self, task: str) -> TaskOutcome:
        """Verify the task in the first process, time it in the others."""
        return TaskOutcome([self._session.task(task)])


def _cases(pipelines: Sequence[Pipeline], context: TaskContext) -> list[Case]:
    label, catalogue = context.order["label"], context.catalogue
    return [stage.case for pipeline in pipelines for stage in placed(pipeline, label, catalogue)]


class PipelinePrograms:
    """The pipelines as programs that allocate their outputs anew, for measurements under an allocator."""

    names = ("time_series:allocating", "image:allocating", "together:allocating")

    def open(self, context: TaskContext) -> PipelineTasks:
        """Return the pipelines as tasks of a worker."""
        return PipelineTasks(context)

    def cases(self, context: TaskContext) -> list[Case]:
        """Return the cases that `evaluate` launches."""
        return _cases(INTEGRATION, context)

    def evaluate(self, context: TaskContext) -> None:
        """Run every integration pipeline a few times."""
        for pipeline in INTEGRATION:
            with Prepared(pipeline, context.order["label"], context.catalogue, context.backend) as prepared:
                evaluate = form("allocating", prepared)
                for _ in range(_EVALUATIONS):
                    evaluate()
                prepared.flow.synchronize()


if __name__ == "__main__":
    work_through(PipelineTasks)

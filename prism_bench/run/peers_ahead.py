"""Code of peers, made ahead by several processes: compiled forms of torch, and what CUB builds.

The processes that time only load it.
"""

from collections.abc import Iterator, Mapping, Sequence
from threading import Event, Thread
from typing import Self

from prism_bench.io.workers.child import usable_cores
from prism_bench.io.workers.process import WorkerDied
from prism_bench.run.lanes import side_by_side
from prism_bench.run.places import worker_of
from prism_bench.spec.case import Case
from prism_bench.spec.peer import AUTOTUNED_LABELS, LIBRARIES, form_name

BUILDING = "cub"  # the library whose builds are kept on disk
WORKER = "prism_bench.run.peers_worker"
MOST_PROCESSES = 12
WORTH_A_PROCESS = 2  # tasks: each takes seconds, as does a start
SECONDS = 120.0  # for one form
LOOK_SECONDS = 0.5


def ahead_tasks(cases: Sequence[Case]) -> list[str]:
    """Return what to compile for the cases, `peer case` each: the autotuned forms first, since they take longest.

    Cases of one kernel share what CUB builds, so those of each label follow all of the label before.
    """
    of_torch = [(case, name) for case in cases for name in _peers(case, "torch")]
    large = [(case, name) for case, name in of_torch if case.label in AUTOTUNED_LABELS]
    autotuned = [f"{form_name(name, 'autotuned')} {case.task}" for case, name in large]
    by_label = sorted(cases, key=lambda case: case.label)
    built = [f"{name} {case.task}" for case in by_label for name in _peers(case, BUILDING)]
    return [*autotuned, *built, *(f"{form_name(name, 'compiled')} {case.task}" for case, name in of_torch)]


def compile_peers(order: Mapping[str, object], tasks: Sequence[str]) -> Iterator[str | WorkerDied]:
    """Yield each task as it begins, while several processes compile, and how the process of a task ended.

    What fails is left to the process that times it, which reports why.
    """
    processes = max(1, min(MOST_PROCESSES, usable_cores() - 2, -(-len(tasks) // WORTH_A_PROCESS)))
    for event in side_by_side(order, tasks, processes, SECONDS, worker_of(WORKER)):
        if isinstance(event, WorkerDied):
            yield event
        elif "begin" in event:
            yield event["begin"]


class PeerCompilation:
    """The compilation of these tasks in the background of a `with` block, which ends what is left at its own end.

    `late` has by task of a case the peers whose compilation took too long, each with the reason: nobody waits for them
    again.
    """

    def __init__(self, order: Mapping[str, object], tasks: Sequence[str]) -> None:
        self._order, self._tasks = order, tasks
        self.late: dict[str, dict[str, str]] = {}
        self._begun: list[str] = []
        self._ended = Event()
        self._thread = Thread(target=self._compile, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()

    def rest(self) -> Iterator[tuple[int, int, str]]:
        """Wait for the end; meanwhile yield how many tasks are done, of how many, and which began last."""
        while self._thread.is_alive():
            if self._begun:
                yield len(self._begun) - 1, len(self._tasks), self._begun[-1]
            self._thread.join(LOOK_SECONDS)

    def _compile(self) -> None:
        for event in compile_peers(self._order, self._tasks) if self._tasks else ():
            if isinstance(event, WorkerDied):
                self._keep(event)
            else:
                self._begun.append(event)
            if self._ended.is_set():
                return

    def _keep(self, death: WorkerDied) -> None:
        """Keep a peer that took too long; one that ended its process otherwise may have done so by chance."""
        if death.task and death.status == "timed out":
            name, case = task_parts(death.task)
            self.late.setdefault(case, {})[name] = f"it was not compiled within {SECONDS:.0f} s"


def task_parts(task: str) -> tuple[str, str]:
    """Return the peer and the case's task of a task of `ahead_tasks`."""
    name, _, case = task.partition(" ")
    return name, case


def _peers(case: Case, library: str) -> list[str]:
    names = [name for name in case.spec.peers if case.spec.peer(name).library.name == library]
    return names if names and LIBRARIES[library].is_installed() else []

"""Compilation before a run: the code of every case and peer, made on all cores."""

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, suppress
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from threading import Event, Thread
from time import monotonic
from typing import Self, TypeVar

from prism_bench.compilation.languages import BuildRequest, build, build_request
from prism_bench.errors import PrismBenchError
from prism_bench.io.files import check, held
from prism_bench.io.workers import (
    Ended,
    EventWorker,
    WorkerDied,
    WorkerEnvironment,
    end_group,
    end_with_parent,
    usable_cores,
    work,
)
from prism_bench.run.pool import HERE, side_by_side, worker_of
from prism_bench.spec.case import Case, Device
from prism_bench.spec.peer import AUTOTUNED_LABELS, LIBRARIES, form_name

# Compilation ahead: the code of every case compiled on all cores, so that profiled or timed launches only load it.

_FEW = 4  # this number is compiled sooner than processes start
_ENDING_SECONDS = 5.0  # for a process of the pool to remove its files; a library that compiles lets it wait
Job = TypeVar("Job")
Outcome = TypeVar("Outcome")


def compile_ahead(cases: Iterable[Case], device: Device, report: Callable[[], None] = lambda: None) -> int:
    """Fill the cache for the cases on `device`; return how many libraries that takes.

    What fails to compile fails again in its case, and so does what is left where a compiler is killed. `report` is
    called after each library.
    """
    jobs = list(dict.fromkeys(job for case in cases if not case.plan.refusal(device) if (job := _job(case, device))))
    with suppress(BrokenProcessPool):
        for _ in on_all_cores(_compile, jobs):
            report()
    return len(jobs)


def on_all_cores(
    work: Callable[[Job], Outcome], jobs: Sequence[Job], variables: Mapping[str, str] | None = None
) -> Iterator[Outcome]:
    """Yield `work` of each job in order, done by a process for each core where there is enough to do.

    Processes that get environment `variables` do all of it; they import what PYTHONPATH names before anything else.
    A signal or an error ends the processes with their compilers, once they have removed what they were making. No job
    is cancelled then: where a process was killed, too, the pool's thread fails at a cancelled job with a traceback.
    """
    if len(jobs) <= _FEW and variables is None:
        yield from map(work, jobs)
        return
    others = set(active_children())
    pool = ProcessPoolExecutor(
        max(1, min(usable_cores(), len(jobs))),
        mp_context=get_context("spawn"),
        initializer=_start,
        initargs=(dict(variables or {}),),
    )
    try:
        with held():  # a process that is interrupted while it starts another leaves that one with half of its order
            futures = deque(pool.submit(_done, work, job) for job in jobs)
        while futures:
            yield futures.popleft().result()
    except BaseException:
        _end(set(active_children()) - others)
        check()  # a signal to the whole group ends the processes, too: it is the reason
        raise
    finally:
        pool.shutdown()


def _start(variables: Mapping[str, str]) -> None:
    end_with_parent()
    os.environ.update(variables)
    sys.path[:0] = filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))


def _done(work: Callable[[Job], Outcome], job: Job) -> Outcome:
    """Return the job's outcome in a process of the pool; end the process, and its compilers, where SIGTERM ends it."""
    try:
        return work(job)
    except Ended:
        end_group()


def _end(processes: Collection[BaseProcess]) -> None:
    """End processes of the pool; a process that does not end in time is killed with its compilers."""
    for process in processes:
        process.terminate()
    until = monotonic() + _ENDING_SECONDS
    try:
        for process in processes:
            process.join(max(0.0, until - monotonic()))
    finally:
        for process in processes:
            if process.is_alive() and process.pid:  # else its number may be another's
                with suppress(ProcessLookupError):  # before it led a group
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()


def _job(case: Case, device: Device) -> BuildRequest | None:
    try:
        return build_request(case, device)
    except Exception:  # what a spec's launch raises, it raises again where the case's result can report it
        return None


def _compile(job: BuildRequest) -> None:
    with suppress(PrismBenchError):
        build(job)


# Code of kernels, compiled on all cores by one process while others verify; later processes only load it.


class KernelCompilation(AbstractContextManager["KernelCompilation"]):
    """The compilation of what an order's `ahead` names, in the background of a `with` block.

    What is left at its end is given up, unless `wait` was called. What fails is compiled again by the process that
    needs it, which reports why.
    """

    def __init__(self, order: Mapping[str, object], timeout: float, place: WorkerEnvironment = HERE) -> None:
        """End the process where a library takes longer than `timeout` seconds."""
        self._order, self._timeout, self._place = order, timeout, place

    def __enter__(self) -> "KernelCompilation":
        self._worker = EventWorker(self._place)
        self._thread = Thread(target=self._compile, daemon=True)
        self._thread.start()
        return self

    def wait(self) -> None:
        """Wait for the end."""
        self._thread.join()

    def __exit__(self, *exception: object) -> None:
        self._worker.kill()
        self._thread.join()
        self._worker.end()

    def _compile(self) -> None:
        with suppress(WorkerDied):
            for _ in work(self._order, self._timeout, self._place, self._worker):
                pass


# Code of peers, made ahead by several processes: compiled forms of torch, and what CUB builds.
#
# The processes that time only load it.

_BUILDING = "cub"  # the library whose builds are kept on disk
_WORKER = "prism_bench.run.peers_worker"
_MOST_PROCESSES = 12
_WORTH_A_PROCESS = 2  # tasks: each takes seconds, as does a start
_SECONDS = 120.0  # for one form
LOOK_SECONDS = 0.5


def ahead_tasks(cases: Sequence[Case]) -> list[str]:
    """Return what to compile for the cases, `peer case` each: the autotuned forms first, since they take longest.

    Cases of one kernel share what CUB builds, so those of each label follow all of the label before.
    """
    of_torch = [(case, name) for case in cases for name in _peers(case, "torch")]
    large = [(case, name) for case, name in of_torch if case.label in AUTOTUNED_LABELS]
    autotuned = [f"{form_name(name, 'autotuned')} {case.task}" for case, name in large]
    by_label = sorted(cases, key=lambda case: case.label)
    built = [f"{name} {case.task}" for case in by_label for name in _peers(case, _BUILDING)]
    return [*autotuned, *built, *(f"{form_name(name, 'compiled')} {case.task}" for case, name in of_torch)]


def compile_peers(order: Mapping[str, object], tasks: Sequence[str]) -> Iterator[str | WorkerDied]:
    """Yield each task as it begins, while several processes compile, and how the process of a task ended.

    What fails is left to the process that times it, which reports why.
    """
    processes = max(1, min(_MOST_PROCESSES, usable_cores() - 2, -(-len(tasks) // _WORTH_A_PROCESS)))
    for event in side_by_side(order, tasks, processes, _SECONDS, worker_of(_WORKER)):
        if isinstance(event, WorkerDied):
            yield event
        elif "begin" in event:
            yield event["begin"]


class PeerCompilation:
    """The compilation of these tasks in the background of a `with` block, which ends what is left at its own end.

    `late` has by task of a case the peers whose compilation took too long, each with the reason: no process waits for
    them again.
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
            self.late.setdefault(case, {})[name] = f"it was not compiled within {_SECONDS:.0f} s"


def task_parts(task: str) -> tuple[str, str]:
    """Return the peer and the case's task of a task of `ahead_tasks`."""
    name, _, case = task.partition(" ")
    return name, case


def _peers(case: Case, library: str) -> list[str]:
    names = [name for name in case.spec.peers if case.spec.peer(name).library.name == library]
    return names if names and LIBRARIES[library].is_installed() else []

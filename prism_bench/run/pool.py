"""Pool of worker processes: a driver sends them orders and tasks, collects results, and replaces workers that die.

Workers that time run one after the other (`TaskDriver.drive`) and may be started ahead (`Standby`); workers that only
verify or compile run side by side (`Lanes`).
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, NotRequired, TypedDict, TypeVar

from prism_bench.catalogue import Catalogue
from prism_bench.emulator.isolation import crash_in
from prism_bench.io import files
from prism_bench.io.documents import json_line
from prism_bench.io.workers import (
    START_SECONDS,
    Conversation,
    EventWorker,
    JsonObject,
    WorkerDied,
    WorkerEnvironment,
    WorkerEvent,
    died_at_start,
    events_of,
    usable_cores,
)
from prism_bench.record.run_record import CaseResult, decode_case
from prism_bench.run.measuring import lacks_memory
from prism_bench.run.settings import BLAS_THREADS, RecordBuilder
from prism_bench.spec.case import Case

Side = TypeVar("Side")

# Environments of workers: this process's installation, or another checkout.

_MEASURING = "prism_bench.run.worker"
_BEFORE = "prism_bench.workbench.worker"  # the same program in checkouts of version 0.1
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def measuring(root: Path | None = None, variables: Mapping[str, str] | None = None) -> WorkerEnvironment:
    """Return the environment of a measuring worker, of the checkout at `root` or of this installation."""
    is_older = root is not None and (root / f"{_BEFORE.replace('.', '/')}.py").is_file()
    return WorkerEnvironment(_BEFORE if is_older else _MEASURING, root, variables or {}, crash_in)


def timing(place: WorkerEnvironment) -> WorkerEnvironment:
    """Return the environment of a worker that times: BLAS has one thread there, or the number that the place names.

    The libraries read these variables when NumPy is imported. With a thread for each core, wall times depend on what
    else the host does.
    """
    return replace(place, variables={**dict.fromkeys(BLAS_VARIABLES, str(BLAS_THREADS)), **place.variables})


def worker_of(program: str) -> WorkerEnvironment:
    """Return the environment of the worker of an extension: the module `program` of this installation."""
    return WorkerEnvironment(program, explain=crash_in)


HERE = measuring()


# Orders: what a driver sends a worker before the tasks, as one JSON line.


class MeasuringOrder(TypedDict):
    """The order of a measuring worker.

    `process` 0 verifies, unless `verifies` decides that. The code of the tasks in `ahead` is compiled first. After an
    order that is `open` come further tasks, one a line. `avoid` names by task the peers that have no time, each with
    its reason: they ended an earlier worker, or had no time there. `check_compiled` has the labels of the cases whose
    compiled peers this process checks; without it a process that verifies checks all. `settled` names by task the
    peers that an earlier process has measured well enough. The tasks in `peerless` are measured without peers.
    """

    backend: str
    catalogue: str
    settings: dict[str, Any]
    process: int
    timed: bool
    verifies: NotRequired[bool]
    tasks: NotRequired[list[str]]
    ahead: NotRequired[list[str]]
    open: NotRequired[bool]
    avoid: NotRequired[dict[str, dict[str, str]]]
    check_compiled: NotRequired[list[str]]
    settled: NotRequired[dict[str, list[str]]]
    peerless: NotRequired[list[str]]


class TaskOrder(TypedDict):
    """The order of a worker for tasks of an extension; `process` 0 verifies, the others time."""

    backend: str
    catalogue: str
    label: str
    process: int
    timed: bool
    tasks: list[str]
    allocator: str | None
    choices: dict[str, dict[str, Any]]


# The driver: one worker after the other, each with the tasks that are left.


@dataclass(frozen=True)
class Progress:
    """How far a run is: tasks `done` of `total`, the number of the process, and the task that begins.

    `stage` is what this part of the run does, where the number of the process does not show it.
    """

    process: int
    done: int
    total: int
    task: str
    stage: str = ""


class TaskDriver:
    """Base of every run: drives tasks through worker processes and keeps the results of each case or task.

    A worker that crashes or hangs costs only its current task: another worker gets the rest. Where a peer of the task
    ended the worker, another worker repeats the task without that peer. Subclasses define what they do at the beginning
    of a task (`begin`), under which name they keep results (`keep`), what they keep of a task that died with its worker
    (`lose`), and whether they can repeat it without a peer (`avoid`).
    """

    def __init__(self, catalogue: Catalogue, backend: str, timeout: float, place: WorkerEnvironment = HERE) -> None:
        self._catalogue, self._backend, self._timeout, self._place = catalogue, backend, timeout, place
        self.results: dict[str, list[CaseResult]] = {}
        self.facts: dict[str, Any] = {}
        self.protocol: dict[str, Any] = {}
        self.monitor: list[dict[str, Any]] = []
        self._task = ""
        self.standby = Standby([])
        self._ahead: tuple[Mapping[str, object], EventWorker] | None = None

    @property
    def has_results(self) -> bool:
        """Whether any result has arrived."""
        return bool(self.results)

    @property
    def builder(self) -> RecordBuilder:
        """The builder of this run's records."""
        return RecordBuilder(self._catalogue, self._backend, self.facts)

    def is_right(self, name: str) -> bool:
        """Return whether no result under this name has failed so far."""
        return all(result.status == "ok" for result in self.results.get(name, ()))

    def begin(self, task: str, process: int) -> None:
        """Take note that the process has begun with the task."""
        raise NotImplementedError

    def keep(self, task: str, results: Sequence[CaseResult]) -> None:
        """Keep the results of a task that has ended."""
        raise NotImplementedError

    def lose(self, death: WorkerDied, task: str) -> None:
        """Keep what is known of a task whose worker died."""
        raise NotImplementedError

    def avoid(self, death: WorkerDied, task: str) -> bool:
        """Leave out the peer that ended the worker from now on; return False if the task cannot do without it."""
        return False

    def take(self, event: WorkerEvent, process: int, finished: list[str]) -> None:
        """Take one event of a worker; a task that ends with it is added to `finished`."""
        self.facts = event.get("facts", self.facts)
        self.protocol = event.get("protocol", self.protocol)
        self.monitor += [event["monitor"]] if "monitor" in event else []
        if "begin" in event:
            self._task = event["begin"]
            self.begin(self._task, process)
        if "results" in event:
            task = event.get("task", self._task)
            self.keep(task, [decode_case(plain) for plain in event["results"]])
            finished.append(task)

    def drive(self, order_for: Callable[[list[str]], Mapping[str, object]], tasks: Iterable[str], process: int) -> None:
        """Send the tasks to a worker, and the tasks that are left to another worker each time that it dies.

        `order_for` returns the order of a worker for its tasks. A worker that has begun with the same order (see
        `beginning`) or is on standby is taken before another one is started. BackendUnavailable where a worker does
        not start.
        """
        left = list(tasks)
        while left:
            finished: list[str] = []
            order = order_for(left)
            known, worker = self._ahead or (None, None)
            if worker and known == order:
                self._ahead = None
            else:
                place = timing(self._place) if order.get("timed") else self._place
                worker = self.standby.take() or EventWorker(place)
                worker.send(json_line(order))
            self.follow(events_of(worker, self._timeout), process, finished)
            left = [task for task in left if task not in finished]

    @contextmanager
    def beginning(self, order: Mapping[str, object]) -> Generator[None]:
        """Let a worker begin with an order; `drive` takes its events where it sends the same order within the block."""
        worker = self.standby.take() or EventWorker(self._place)
        worker.send(json_line(order))
        self._ahead = order, worker
        try:
            yield
        finally:
            if self._ahead:
                worker.end()
            self._ahead = None

    def follow(self, events: Iterable[WorkerEvent | WorkerDied], process: int, finished: list[str]) -> None:
        """Take all events, each whole before a signal interrupts; a task whose worker died is lost."""
        try:
            for event in events:
                with files.held():
                    if isinstance(event, WorkerDied):
                        self._bury(event, finished)
                    else:
                        self.take(event, process, finished)
        except WorkerDied as death:
            with files.held():
                self._bury(death, finished)

    def _bury(self, death: WorkerDied, finished: list[str]) -> None:
        """Lose the task of a dead worker, unless it died between two tasks, or a peer ended it that can be avoided."""
        if death.task is None:
            raise died_at_start(death, self._backend)
        if death.task not in finished and not (death.peer and self.avoid(death, death.task)):
            finished.append(death.task)
            self.lose(death, death.task)


def rounds(
    sides: Sequence[Side], numbers: range, turn: Callable[[Side, int], object], end: float | None = None
) -> Iterator[int]:
    """Let the sides take turns in each round (A B, B A, A B, ...), and yield the number of each round after it.

    No further round starts that would not be over by `end` (of `time.perf_counter`) if it took as long as the last.
    """
    for number in numbers:
        began = time.perf_counter()
        for side in sides if (number - numbers.start) % 2 == 0 else sides[::-1]:
            turn(side, number)
        yield number
        now = time.perf_counter()
        if end is not None and now + (now - began) > end:
            return


# Workers on standby.


class Standby(AbstractContextManager["Standby"]):
    """Workers that are started before they are needed: one for each list of `libraries`, imported in that order.

    Imports take seconds, and must not fall between two cases that are timed: these processes import while others
    compile and verify. With a `catalogue` they read its specs, too. They open no device before they have an order.
    Workers that were not taken end with the block.
    """

    def __init__(
        self, libraries: Sequence[Sequence[str]], place: WorkerEnvironment = HERE, catalogue: Path | None = None
    ) -> None:
        self._libraries, self._place, self._catalogue = libraries, place, catalogue
        self._workers: deque[EventWorker] = deque()

    def __enter__(self) -> "Standby":
        for names in self._libraries:
            worker = EventWorker(self._place)
            self._workers.append(worker)
            catalogue = {"catalogue": str(self._catalogue.resolve())} if self._catalogue else {}
            worker.send(json_line({"libraries": list(names), **catalogue}))
        return self

    def __exit__(self, *exception: object) -> None:
        while self._workers:
            self._workers.popleft().end()

    def settle(self) -> None:
        """Wait until all have imported their libraries, so that none of that happens while something is timed."""
        for worker in list(self._workers):
            try:
                while "imported" not in worker.receive(None, START_SECONDS):
                    pass
            except WorkerDied:
                self._workers.remove(worker)
                worker.end()

    def take(self) -> EventWorker | None:
        """Return the next running worker, which waits for an order; None if there is no more."""
        while self._workers:
            worker = self._workers.popleft()
            if worker.is_alive():
                return worker
            worker.end()
        return None


def libraries_of(cases: Iterable[Case]) -> list[str]:
    """Return the names of the libraries that the peers of the cases ask for, array packages first."""
    libraries = {case.spec.peer(name).library for case in cases for name in case.spec.peers}
    in_order = sorted(libraries, key=lambda library: (library.module != library.arrays, library.name))
    return [library.name for library in in_order]


# Lanes: workers side by side that take task after task from one list.

WORTH_A_START = 8  # tasks
_LONG, _SHORT = 0.1, 0.01  # share of the work of a lane: from here on a task is long, below it short
_PATIENCE = 5.0  # seconds for a lane that is interrupted
LaneEvent = WorkerEvent | WorkerDied


def lanes_for(backend: str, cores: int | None = None) -> int:
    """Return how many processes verify side by side on `cores`, by default all usable ones.

    On a device they are enough to keep it busy while others compute references on the host; on the emulator there is
    one for each core.
    """
    cores = cores or usable_cores()
    return {"cuda": max(1, min(8, cores // 2)), "emulator": cores}.get(backend, 1)


def worth(lanes: int, tasks: Sequence[str]) -> int:
    """Return how many of the lanes are worth starting for these tasks, at least one."""
    return max(1, min(lanes, -(-len(tasks) // WORTH_A_START)))


def longest_first(tasks: Sequence[str], seconds: Mapping[str, float], lanes: int) -> list[str]:
    """Return the tasks with long ones first and short ones last, so that no lane ends with a long task.

    `seconds` are known by task; an unknown task counts as their mean. The tasks in between keep their order: large
    cases, which need much memory, are then not all at work at once.
    """
    known = [seconds[task] for task in tasks if task in seconds]
    mean = sum(known) / len(known) if known else 0.0
    cost = {task: seconds.get(task.partition("@")[0], mean) for task in tasks}
    share = sum(cost.values()) / lanes

    def place(task: str) -> tuple[int, float]:
        part = 0 if cost[task] > _LONG * share else 2 if cost[task] < _SHORT * share else 1
        return part, 0.0 if part == 1 else -cost[task]

    return sorted(tasks, key=place)


def side_by_side(
    order: Mapping[str, object], tasks: Sequence[str], lanes: int, timeout: float, place: WorkerEnvironment = HERE
) -> Iterator[LaneEvent]:
    """Yield the events of `Lanes.work` of new lanes, which end with the last task."""
    with Lanes(place) as workers:
        yield from workers.work(order, tasks, lanes, timeout)


class Lanes(AbstractContextManager["Lanes"]):
    """Workers side by side, only for what is not timed; within a `with` block they stay for the next list of tasks.

    Orders may differ from list to list, but not in the backend, the catalogue and what the process does. `libraries`
    are imported when a worker starts.
    """

    def __init__(self, place: WorkerEnvironment = HERE, libraries: Sequence[str] = ()) -> None:
        self._place, self._libraries = place, libraries
        self._workers: list[Conversation] = []
        self._threads: list[Thread] = []
        self._ended = Event()  # set for the threads when their workers are to end

    @property
    def started(self) -> int:
        """How many workers there are."""
        return len(self._workers)

    def work(
        self, order: Mapping[str, object], tasks: Sequence[str], lanes: int, timeout: float
    ) -> Iterator[LaneEvent]:
        """Yield `begin` of each task, then its `results` or how its worker died, as they come; `facts` in between.

        A task that lacked memory next to others is repeated without others, and so is a task of a worker that never
        started. When the caller stops, by Ctrl-C too, all workers are ended.
        """
        left: deque[str] = deque(tasks)
        again: list[str] = []
        for event in self._together(order, left, lanes, timeout):
            if lanes > 1 and isinstance(event, WorkerDied) and event.task is None:
                continue  # it never started: its task is still left
            if lanes > 1 and not isinstance(event, WorkerDied) and _lacked_memory(event):
                again.append(event.get("task", ""))
            else:
                yield event
        again += left
        if again:
            self._end()
            yield from self._together(order, deque(again), 1, timeout)

    def _together(
        self, order: Mapping[str, object], left: deque[str], lanes: int, timeout: float
    ) -> Iterator[LaneEvent]:
        """Yield the events of that many workers, which follow the order; workers that run already come first."""
        for worker in self._workers:
            worker.follow(order)
        place, missing = sharing_cores(self._place, lanes), lanes - len(self._workers)
        self._workers += [Conversation(order, place, self._libraries) for _ in range(missing)]
        arrived: SimpleQueue[LaneEvent | None] = SimpleQueue()
        self._threads = [
            Thread(target=_drive, args=(worker, left, timeout, arrived.put, self._ended), daemon=True)
            for worker in self._workers[:lanes]
        ]
        for thread in self._threads:
            thread.start()
        try:
            while lanes:
                event = arrived.get()
                if event is None:
                    lanes -= 1
                else:
                    yield event
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        """End all workers, those that are at a task too."""
        self._ended.set()
        for worker in self._workers:
            worker.interrupt()
        for thread in self._threads:  # each may still read what its worker leaves
            thread.join(_PATIENCE)
        for worker in self._workers:
            worker.end()
        self._workers, self._threads, self._ended = [], [], Event()

    def __exit__(self, *exception: object) -> None:
        self._end()


def sharing_cores(place: WorkerEnvironment, lanes: int) -> WorkerEnvironment:
    """Return the environment of one of several workers, whose references share the cores."""
    if lanes < 2:
        return place
    threads = str(max(1, usable_cores() // lanes))
    return replace(place, variables={"OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, **place.variables})


def _drive(
    worker: Conversation, left: deque[str], timeout: float, put: Callable[[LaneEvent | None], None], ended: Event
) -> None:
    """Send one lane the tasks that are left, then put None; a worker that never starts puts its task back."""
    while left and not ended.is_set():
        try:
            task = left.popleft()
        except IndexError:  # another lane was quicker
            break
        put({"begin": task})
        try:
            results = _answer(worker, task, timeout, put)
        except WorkerDied as death:
            put(death)
            if death.task is None:
                left.appendleft(task)
                break
        else:
            put({"facts": worker.facts})
            put({"task": task, "results": results})
    put(None)


def _answer(
    worker: Conversation, task: str, timeout: float, put: Callable[[LaneEvent | None], None]
) -> list[JsonObject]:
    """Return the task's results; each peer that ends the worker is reported, and the task is repeated without it."""
    while True:
        try:
            return worker.ask(task, timeout)
        except WorkerDied as death:
            if not worker.avoid(death):
                raise
            put(death)


def _lacked_memory(event: WorkerEvent) -> bool:
    """Return whether a case or one of its peers was left out for memory that other processes may have held."""
    results = event.get("results", ())
    reasons = [result["reason"] for result in results if result["status"] == "skipped"]
    reasons += [measurement["reason"] for result in results for measurement in result["measurements"]]
    return any(lacks_memory(reason or "") for reason in reasons)

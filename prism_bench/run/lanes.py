"""Worker processes side by side that take task after task from one list: only for what is not timed."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from queue import SimpleQueue
from threading import Event, Thread

from prism_bench.io.workers.child import usable_cores
from prism_bench.io.workers.conversation import Conversation
from prism_bench.io.workers.events import JsonObject, WorkerEvent
from prism_bench.io.workers.handle import WorkerEnvironment
from prism_bench.io.workers.process import WorkerDied
from prism_bench.run.measuring import lacks_memory
from prism_bench.run.places import HERE

WORTH_A_START = 8  # tasks
LONG, SHORT = 0.1, 0.01  # of what each lane has to do
PATIENCE = 5.0  # seconds for a lane that is interrupted
LaneEvent = WorkerEvent | WorkerDied


def lanes_for(backend: str, cores: int | None = None) -> int:
    """Return how many processes verify side by side in so many cores: without a number in all that there are.

    On a device as many as keep it busy while others compute references on the host, on the emulator one for each core.
    """
    cores = cores or usable_cores()
    return {"cuda": max(1, min(8, cores // 2)), "emulator": cores}.get(backend, 1)


def worth(lanes: int, tasks: Sequence[str]) -> int:
    """Return how many of the lanes are worth starting for these tasks, one at least."""
    return max(1, min(lanes, -(-len(tasks) // WORTH_A_START)))


def longest_first(tasks: Sequence[str], seconds: Mapping[str, float], lanes: int) -> list[str]:
    """Return the tasks so that no lane is left with a long one at the end: the long ones first, the short ones last.

    `seconds` are known by task; an unknown task counts as their mean. Those between keep their order: large cases,
    which need much memory, are not all at work at once.
    """
    known = [seconds[task] for task in tasks if task in seconds]
    mean = sum(known) / len(known) if known else 0.0
    cost = {task: seconds.get(task.partition("@")[0], mean) for task in tasks}
    share = sum(cost.values()) / lanes

    def place(task: str) -> tuple[int, float]:
        part = 0 if cost[task] > LONG * share else 2 if cost[task] < SHORT * share else 1
        return part, 0.0 if part == 1 else -cost[task]

    return sorted(tasks, key=place)


def side_by_side(
    order: Mapping[str, object], tasks: Sequence[str], lanes: int, timeout: float, place: WorkerEnvironment = HERE
) -> Iterator[LaneEvent]:
    """Yield the events of `Lanes.work` of new lanes, which end with the last task."""
    with Lanes(place) as started:
        yield from started.work(order, tasks, lanes, timeout)


class Lanes(AbstractContextManager["Lanes"]):
    """Workers side by side; in a `with` block, at whose end they end, they stay for the next list of tasks.

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

        A task that found too little memory next to others is done again alone, and so is one that was taken by a worker
        that never started. When the caller stops, by Ctrl-C too, all workers are ended.
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
        arrived: SimpleQueue[LaneEvent | None] = SimpleQueue()
        self._threads = [
            Thread(target=_drive, args=(worker, left, timeout, arrived.put, self._ended), daemon=True)
            for worker in self._ready(order, lanes)
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

    def _ready(self, order: Mapping[str, object], lanes: int) -> list[Conversation]:
        """Return so many workers, which follow the order; those that are there already come first."""
        for worker in self._workers:
            worker.follow(order)
        place, new = sharing_cores(self._place, lanes), range(lanes - len(self._workers))
        self._workers += [Conversation(order, place, self._libraries) for _ in new]
        return self._workers[:lanes]

    def _end(self) -> None:
        """End all workers, those that are at a task too."""
        self._ended.set()
        for worker in self._workers:
            worker.interrupt()
        for thread in self._threads:  # each may still read what its worker leaves
            thread.join(PATIENCE)
        for worker in self._workers:
            worker.end()
        self._workers, self._threads, self._ended = [], [], Event()

    def __exit__(self, *exception: object) -> None:
        self._end()


def sharing_cores(place: WorkerEnvironment, lanes: int) -> WorkerEnvironment:
    """Return the environment of one of so many workers: their references must not start a thread for each core each."""
    if lanes < 2:
        return place
    threads = str(max(1, usable_cores() // lanes))
    return replace(place, variables={"OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, **place.variables})


def _drive(
    worker: Conversation, left: deque[str], timeout: float, put: Callable[[LaneEvent | None], None], ended: Event
) -> None:
    """Send one lane the tasks that are left, until there are none; a worker that never starts puts its task back."""
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
    """Return the task's results; each peer that ends the worker is reported, and the task done again without it."""
    while True:
        try:
            return worker.ask(task, timeout)
        except WorkerDied as death:
            if not worker.avoid(death):
                raise
            put(death)


def _lacked_memory(event: WorkerEvent) -> bool:
    """Return whether a case, or a peer of it, was left out for memory that other processes may have held."""
    results = event.get("results", ())
    reasons = [result["reason"] for result in results if result["status"] == "skipped"]
    reasons += [measurement["reason"] for result in results for measurement in result["measurements"]]
    return any(lacks_memory(reason or "") for reason in reasons)

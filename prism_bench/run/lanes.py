"""Worker processes side by side that take task after task from one list: only for what is not timed."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import SimpleQueue
from threading import Event, Thread

from prism_bench.run.measuring import lacks_memory
from prism_bench.run.places import HERE
from prism_bench.workers.conversation import Conversation
from prism_bench.workers.events import JsonObject, WorkerEvent
from prism_bench.workers.handle import WorkerEnvironment
from prism_bench.workers.process import WorkerDied

WORTH_A_START = 8  # tasks
LaneEvent = WorkerEvent | WorkerDied


def lanes_for(backend: str) -> int:
    """Return how many processes verify side by side.

    On a device as many as keep it busy while others compute references on the host, on the emulator one for each core.
    """
    cores = os.cpu_count() or 1
    return {"cuda": max(1, min(6, cores // 2)), "emulator": cores}.get(backend, 1)


def worth(lanes: int, tasks: Sequence[str]) -> int:
    """Return how many of the lanes are worth starting for these tasks, one at least."""
    return max(1, min(lanes, -(-len(tasks) // WORTH_A_START)))


def side_by_side(
    order: Mapping[str, object], tasks: Sequence[str], lanes: int, timeout: float, place: WorkerEnvironment = HERE
) -> Iterator[LaneEvent]:
    """Yield `begin` of each task, then its `results` or how its worker died, as they arrive, and `facts` in between.

    A task that found too little memory next to others is done again alone, and so is one that was taken by a worker
    that never started. When the caller stops, by Ctrl-C too, all workers are ended.
    """
    left: deque[str] = deque(tasks)
    again: list[str] = []
    for event in _together(order, left, lanes, timeout, place):
        if lanes > 1 and isinstance(event, WorkerDied) and event.task is None:
            continue  # it never started: its task is still left
        if lanes > 1 and not isinstance(event, WorkerDied) and _lacked_memory(event):
            again.append(event.get("task", ""))
        else:
            yield event
    again += left
    if again:
        yield from _together(order, deque(again), 1, timeout, place)


def _together(
    order: Mapping[str, object], left: deque[str], lanes: int, timeout: float, place: WorkerEnvironment
) -> Iterator[LaneEvent]:
    arrived: SimpleQueue[LaneEvent | None] = SimpleQueue()
    workers, ended = [Conversation(order, place) for _ in range(lanes)], Event()
    for worker in workers:
        Thread(target=_drive, args=(worker, left, timeout, arrived.put, ended), daemon=True).start()
    try:
        while lanes:
            event = arrived.get()
            if event is None:
                lanes -= 1
            else:
                yield event
    except BaseException:
        ended.set()
        for worker in workers:
            worker.interrupt()
        raise


def _drive(
    worker: Conversation, left: deque[str], timeout: float, put: Callable[[LaneEvent | None], None], ended: Event
) -> None:
    """Send one lane the tasks that are left, until there are none; a worker that never starts puts its task back."""
    with worker:
        while left and not ended.is_set():
            try:
                task = left.popleft()
            except IndexError:  # another lane was quicker
                break
            put({"begin": task})
            try:
                results = _answer(worker, task, timeout, put)
            except WorkerDied as death:
                if death.task is None:
                    left.appendleft(task)
                    put(death)
                    break
                put(death)
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

"""Measuring processes side by side that take task after task from one list: only for what is not timed."""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from queue import SimpleQueue
from threading import Event, Thread

from prism_bench.run.measuring import lacks_memory
from prism_bench.run.places import HERE
from prism_bench.workers.conversation import Conversation
from prism_bench.workers.handle import WorkerEnvironment
from prism_bench.workers.process import WorkerDied

WORTH_A_START = 8  # tasks


def lanes_for(backend: str) -> int:
    """How many processes verify side by side: on a device as many as keep it busy while others compute references on
    the host, on the emulator one for each core.
    """
    cores = os.cpu_count() or 1
    return {"cuda": max(1, min(6, cores // 2)), "emulator": cores}.get(backend, 1)


def worth(lanes: int, tasks: Sequence[str]) -> int:
    """How many of the lanes these tasks are worth starting, one at least."""
    return max(1, min(lanes, -(-len(tasks) // WORTH_A_START)))


def side_by_side(
    order: dict, tasks: Sequence[str], lanes: int, timeout: float, place: WorkerEnvironment = HERE
) -> Iterator[dict | WorkerDied]:
    """{"begin": task}, then its {"results": [...]} or how its process died, as they come; {"facts"} besides.

    What found too little memory beside the others is done again alone, and so is what a process had taken that never
    started. Whoever stops listening, by Ctrl-C too, ends all of the processes.
    """
    left, again = deque(tasks), []
    for event in _together(order, left, lanes, timeout, place):
        if lanes > 1 and _lacked_memory(event):
            again.append(event["task"])
        elif lanes > 1 and _never_started(event):
            continue
        else:
            yield event
    again += left
    if again:
        yield from _together(order, deque(again), 1, timeout, place)


def _together(order, left, lanes, timeout, place):
    told: SimpleQueue = SimpleQueue()
    talks, ended = [Conversation(order, place) for _ in range(lanes)], Event()
    for talk in talks:
        Thread(target=_listen, args=(talk, left, timeout, told.put, ended), daemon=True).start()
    try:
        while lanes:
            event = told.get()
            if event is None:
                lanes -= 1
            else:
                yield event
    except BaseException:
        ended.set()
        for talk in talks:
            talk.interrupt()
        raise


def _listen(talk, left, timeout, tell, ended):
    """One lane: the next task of all that are left, until there is none or no process starts, which leaves its task."""
    with talk:
        while left and not ended.is_set():
            try:
                task = left.popleft()
            except IndexError:  # another lane was quicker
                break
            tell({"begin": task})
            try:
                results = talk.ask(task, timeout)
            except WorkerDied as death:
                if death.task is None:
                    left.appendleft(task)
                    tell(death)
                    break
                tell(death)
            else:
                tell({"facts": talk.facts})
                tell({"task": task, "results": results})
    tell(None)


def _lacked_memory(event):
    """Whether a case, or a library beside it, was left out for memory that other processes may have held."""
    results = event.get("results", ()) if isinstance(event, dict) else ()
    reasons = [one["reason"] for one in results if one["status"] == "skipped"]
    reasons += [cell["reason"] for one in results for cell in one["measurements"]]
    return any(lacks_memory(reason or "") for reason in reasons)


def _never_started(event):
    return isinstance(event, WorkerDied) and event.task is None

"""Measuring processes side by side, each with its own list of tasks: only for what is not timed."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from subprocess import Popen
from threading import Thread

from prism_bench.workbench.process import HERE, Place, WorkerDied, work

WORTH_A_START = 8  # tasks


@dataclass
class Lane:
    """The `tasks` of one process: those `finished`, and the one it is `at`."""

    tasks: list[str]
    finished: list[str] = field(default_factory=list)
    at: str | None = None

    def left(self) -> "Lane":
        """A lane with what is not finished."""
        return Lane([task for task in self.tasks if task not in self.finished])


def lanes_for(backend: str) -> int:
    """How many processes verify side by side: on a device as many as keep it busy while others compute references on
    the host, on the emulator one for each core.
    """
    cores = os.cpu_count() or 1
    return {"cuda": max(1, min(6, cores // 2)), "emulator": cores}.get(backend, 1)


def dealt(tasks: Sequence[str], number: int) -> list[Lane]:
    """The tasks dealt in turn to at most `number` lanes, as many as are worth their start."""
    number = min(number, -(-len(tasks) // WORTH_A_START))
    return [Lane(list(tasks[start::number])) for start in range(number)]


def side_by_side(
    orders: Sequence[dict], timeout: float, place: Place = HERE
) -> Iterator[tuple[int, dict | WorkerDied]]:
    """Every process's events as they come, with the number of its order; how it died is the last one of a process.

    Whoever stops listening, by Ctrl-C too, ends all of the processes.
    """
    if len(orders) == 1:
        yield from _one(orders[0], timeout, place)
        return
    told: SimpleQueue = SimpleQueue()
    processes: list[Popen] = []
    over = False

    def started(process):
        processes.append(process)
        if over:
            process.kill()

    def listen(number, order):
        for event in _one(order, timeout, place, started):
            told.put((number, event[1]))
        told.put((number, None))

    for number, order in enumerate(orders):
        Thread(target=listen, args=(number, order), daemon=True).start()
    open_lanes = len(orders)
    try:
        while open_lanes:
            number, event = told.get()
            if event is None:
                open_lanes -= 1
            else:
                yield number, event
    finally:
        over = True
        for process in processes:
            process.kill()


def _one(order, timeout, place, started=lambda _: None):
    try:
        for event in work(order, timeout, place, started):
            yield 0, event
    except WorkerDied as error:
        yield 0, error

"""Measuring workers: processes that read an order and tasks from standard input, and write events to the output."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO

from prism_bench.errors import BackendUnavailable
from prism_bench.io.documents import json_line
from prism_bench.io.workers.events import NoEvent, WorkerEvent, decode_event
from prism_bench.io.workers.handle import START_SECONDS, WorkerEnvironment, WorkerProcess
from prism_bench.record.run_record import Status


class WorkerDied(Exception):
    """The worker ended or was ended: `task` is what it was doing, `status` how it ended, `reason` why.

    `case` is the edge that it was at, where the task is all edges of a kernel; `peer` the peer of a case. A peer that
    made the worker end by its own report has the status `failed`.
    """

    def __init__(self, task: str | None, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.task, self.reason = task, reason
        self.status: Status = status
        self.case: str | None = None
        self.peer: str | None = None

    @property
    def peer_reason(self) -> str:
        """Why the peer that the worker was at has no time."""
        if self.status == "timed out":
            return f"{self.reason}, so its process was ended"
        return self.reason if self.status == "failed" else f"it crashed: {self.reason}"


class WorkerPlace:
    """What a worker is doing, by the events that came so far, and in how many seconds the next one has to come."""

    def __init__(self, timeout: float) -> None:
        self.task: str | None = None
        self.limit, self._timeout = START_SECONDS, timeout
        self._case: str | None = None
        self._peer: str | None = None

    def follow(self, event: WorkerEvent) -> None:
        """Take an event; WorkerDied where the worker reports that a peer makes it end."""
        if "spoiled" in event:
            raise self.located(WorkerDied(self.task, "failed", event["spoiled"]))
        self.task, self._case = event.get("begin", self.task), event.get("case")
        self._peer = event.get("peer")
        self.limit = min(self._timeout, event.get("within", self._timeout))

    def located(self, death: WorkerDied) -> WorkerDied:
        """Return the death with the edge or the peer that the worker was at."""
        death.case, death.peer = self._case, self._peer or None
        return death


class EventWorker(WorkerProcess):
    """Handle of a measuring worker: send it lines, receive its events, kill it on timeout.

    The worker ends when its standard input closes, and therefore with this process.
    """

    def __init__(self, where: WorkerEnvironment) -> None:
        super().__init__(where, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None, "both are pipes"
        self._stdin, self._lines = stdin, _lines_of(stdout)

    def send(self, line: str) -> None:
        """Write a line. Whether the worker has ended already is noticed when its next event is received."""
        with suppress(BrokenPipeError):
            self._stdin.write(f"{line}\n".encode())
            self._stdin.flush()

    def receive(self, task: str | None, limit: float) -> WorkerEvent:
        """Return the next event of a worker that is at `task`; WorkerDied where none comes within `limit` seconds."""
        try:
            line = self._lines.get(timeout=limit)
        except Empty:
            raise WorkerDied(task, "timed out", f"no answer within {limit:.0f} s") from None
        if line is None:
            raise WorkerDied(task, "crashed", self.last_words())
        try:
            return decode_event(line)
        except NoEvent as error:
            raise WorkerDied(task, "crashed", f"the process wrote what is no event: {error}") from error

    def end(self) -> None:
        """Kill the process, whatever it is doing, and close this side's files."""
        self.kill()
        self.wait()
        with suppress(BrokenPipeError):  # of a line that it did not read before it ended
            self._stdin.close()
        self.release()


def _lines_of(stdout: IO[bytes]) -> "SimpleQueue[bytes | None]":
    """Return the lines in a queue, None at their end; a thread reads them so that waiting can have a limit."""
    lines: SimpleQueue[bytes | None] = SimpleQueue()  # a signal that interrupts its `get` leaves no lock behind

    def read() -> None:
        with stdout:
            for line in stdout:
                lines.put(line)
        lines.put(None)

    Thread(target=read, daemon=True).start()
    return lines


def work(
    order: Mapping[str, object], timeout: float, place: WorkerEnvironment, waiting: EventWorker | None = None
) -> Iterator[WorkerEvent]:
    """Start a worker with an order and yield its events; WorkerDied when it crashes or a task takes too long.

    A worker that is `waiting` for an order gets it instead.
    """
    yield from events_of(begun(order, place, waiting), timeout)


def begun(order: Mapping[str, object], place: WorkerEnvironment, waiting: EventWorker | None = None) -> EventWorker:
    """Return a worker that has its order and works; its events wait until `events_of` yields them."""
    worker = waiting or EventWorker(place)
    worker.send(json_line(order))
    return worker


def events_of(worker: EventWorker, timeout: float) -> Iterator[WorkerEvent]:
    """Yield the events of a worker that has an order, and end it; WorkerDied as by `work`."""
    try:
        yield from _events(worker, timeout)
    finally:
        worker.end()


def _events(worker: EventWorker, timeout: float) -> Iterator[WorkerEvent]:
    at = WorkerPlace(timeout)
    while True:
        try:
            event = worker.receive(at.task, at.limit)
        except WorkerDied as death:
            raise at.located(death) from None
        at.follow(event)
        yield event
        if event.get("end"):
            return


def died_at_start(error: WorkerDied, backend: str) -> BackendUnavailable:
    """Return the error for a worker that ended before its first task."""
    return BackendUnavailable(f"backend {backend} does not start: {error.reason}")

"""A measuring worker that receives one task after the other; another one takes its place where it ends."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prism_bench.io.documents import json_line
from prism_bench.io.workers.events import JsonObject, WorkerEvent
from prism_bench.io.workers.handle import WorkerEnvironment
from prism_bench.io.workers.process import EventWorker, WorkerDied, WorkerPlace


class Conversation:
    """Tasks for a worker, which starts with the first one; use it in a `with` block.

    `facts` of the device are known after the first answer. Libraries that are named are imported at the start.
    """

    def __init__(self, order: Mapping[str, object], place: WorkerEnvironment, libraries: Sequence[str] = ()) -> None:
        self._order: dict[str, Any] = {**order, "tasks": [], "open": True}
        self._sent: dict[str, Any] = {}
        self._place, self._libraries = place, list(libraries)
        self._process: EventWorker | None = None
        self._interrupted = False
        self.facts: JsonObject = {}

    def ask(self, task: str, timeout: float) -> list[JsonObject]:
        """Return the task's results; WorkerDied where it takes longer than `timeout` seconds or crashes.

        A worker that is lost after its last answer, before it begins this task, is replaced once.
        """
        fresh = self._process is None
        worker = self._process or self._started()
        try:
            self._send_order(worker)
            worker.send(task)
            return next(event["results"] for event in self._events(worker, task, timeout) if "results" in event)
        except WorkerDied as death:
            self.end()
            if fresh or death.task is not None or self._interrupted:
                raise
        return self.ask(task, timeout)

    def follow(self, order: Mapping[str, object]) -> None:
        """Take the tasks that come from here on with another order, of the same backend and catalogue."""
        self._order = {**order, "tasks": [], "open": True}

    def avoid(self, death: WorkerDied) -> bool:
        """Let later workers leave out the peer that ended the last one; False where no peer did, or it did so again."""
        avoided: dict[str, dict[str, str]] = self._order.get("avoid", {})
        if not death.task or not death.peer or death.peer in avoided.get(death.task, {}):
            return False
        peers = {**avoided.get(death.task, {}), death.peer: death.peer_reason}
        self._order["avoid"] = {**avoided, death.task: peers}
        return True

    def interrupt(self) -> None:
        """End the worker from another thread than the one that asks, which gets WorkerDied."""
        self._interrupted, process = True, self._process
        if process is not None:
            process.kill()

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def _started(self) -> EventWorker:
        """Return a new worker; once it has its order, its first event reports where it runs."""
        worker = self._process = EventWorker(self._place)
        if self._interrupted:  # while it was being started
            worker.kill()
        if self._libraries:
            worker.send(json_line({"libraries": self._libraries}))
        self._sent = {}
        return worker

    def _send_order(self, worker: EventWorker) -> None:
        """Send the order to a worker that does not have it yet."""
        if self._sent != self._order:
            worker.send(json_line(self._order))
            self._sent = self._order

    def _events(self, worker: EventWorker, task: str, timeout: float) -> Iterator[WorkerEvent]:
        at = WorkerPlace(timeout)
        while True:
            try:
                event = worker.receive(at.task and task, at.limit)
            except WorkerDied as death:
                raise at.located(death) from None
            self.facts = event.get("facts", self.facts)
            at.follow(event)
            yield event

    def end(self) -> None:
        """End the worker, if one runs; a later task starts another one."""
        if self._process is None:
            return
        self._process.end()
        self._process = None

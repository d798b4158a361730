"""A measuring worker that receives one task after the other; another one takes its place where it ends."""

from collections.abc import Iterator, Mapping

from prism_bench.strict_json import json_line
from prism_bench.workers.events import JsonObject, WorkerEvent
from prism_bench.workers.handle import START_SECONDS, WorkerEnvironment
from prism_bench.workers.process import EventWorker, WorkerDied


class Conversation:
    """Tasks for a worker, which starts with the first one; use it in a `with` block.

    `facts` of the device are known after the first answer.
    """

    def __init__(self, order: Mapping[str, object], place: WorkerEnvironment) -> None:
        self._order, self._place = {**order, "tasks": [], "open": True}, place
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
            worker.send(task)
            return next(event["results"] for event in self._events(worker, task, timeout) if "results" in event)
        except WorkerDied as death:
            self._end()
            if fresh or death.task is not None or self._interrupted:
                raise
        return self.ask(task, timeout)

    def interrupt(self) -> None:
        """End the worker from another thread than the one that asks, which gets WorkerDied."""
        self._interrupted, process = True, self._process
        if process is not None:
            process.kill()

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()

    def _started(self) -> EventWorker:
        """Return a new worker, which has its order; its first event reports where it runs."""
        worker = self._process = EventWorker(self._place)
        if self._interrupted:  # while it was being started
            worker.kill()
        worker.send(json_line(self._order))
        return worker

    def _events(self, worker: EventWorker, task: str, timeout: float) -> Iterator[WorkerEvent]:
        begun: str | None = None
        case: str | None = None
        limit = START_SECONDS
        while True:
            try:
                event = worker.receive(begun, limit)
            except WorkerDied as death:
                death.case = case
                raise
            case = event.get("case")
            self.facts = event.get("facts", self.facts)
            if "begin" in event:
                begun, limit = task, timeout
            yield event

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.end()
        self._process = None

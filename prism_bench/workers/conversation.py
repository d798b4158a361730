"""A measuring process that gets one task after the other from who listens; another takes its place where it dies."""

import tempfile

from prism_bench.strict_json import json_line
from prism_bench.workers.process import (
    HERE,
    START_SECONDS,
    Place,
    WorkerDied,
    end,
    hand_over,
    heard,
    lines_of,
    start,
)


class Conversation:
    """Use it in a `with` block. `facts` of the device are there after the first answer."""

    def __init__(self, order: dict, place: Place = HERE):
        self._order, self._place = {**order, "tasks": [], "open": True}, place
        self._process = self._words = self._lines = None
        self._interrupted = False
        self.facts: dict = {}

    def ask(self, task: str, timeout: float) -> list[dict]:
        """The task's results as plain values; WorkerDied where it takes longer than `timeout` seconds or crashes.

        A process that is lost after its last answer, before it begins with this task, is replaced once.
        """
        fresh = self._process is None
        if fresh:
            self._start()
        try:
            hand_over(self._process, task)
            return next(event["results"] for event in self._events(task, timeout) if "results" in event)
        except WorkerDied as death:
            self._end()
            if fresh or death.task is not None or self._interrupted:
                raise
        return self.ask(task, timeout)

    def interrupt(self) -> None:
        """End the process from another thread than the one that asks; that one is told how it died."""
        self._interrupted, process = True, self._process
        if process is not None:
            process.kill()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._end()

    def _start(self):
        """A process is there once it has said where it runs; what it compiles ahead it says library by library."""
        self._words = tempfile.TemporaryFile()
        self._process = start(self._place, self._words)
        if self._interrupted:  # while it was being started
            self._process.kill()
        self._lines = lines_of(self._process)
        hand_over(self._process, json_line(self._order))

    def _events(self, task, timeout):
        begun, case, limit = None, None, START_SECONDS
        while True:
            try:
                event = heard(self._process, self._lines, self._words, begun, limit)
            except WorkerDied as death:
                death.case = case
                raise
            case = event.get("case")
            self.facts = event.get("facts", self.facts)
            if "begin" in event:
                begun, limit = task, timeout
            yield event

    def _end(self):
        if self._process is None:
            return
        end(self._process)
        self._words.close()
        self._process = None

"""A measuring process that gets one task after the other from who listens; another takes its place where it dies."""

import json
import tempfile

from prism_bench.workbench.process import HERE, START_SECONDS, Place, WorkerDied, heard, lines_of, start


class Conversation:
    """Use it in a `with` block. `facts` of the device are there after the first answer."""

    def __init__(self, order: dict, place: Place = HERE):
        self._order, self._place = {**order, "tasks": [], "open": True}, place
        self._process = self._words = self._lines = None
        self.facts: dict = {}

    def ask(self, task: str, timeout: float) -> list[dict]:
        """The task's results as plain values; WorkerDied where it takes longer than `timeout` seconds or crashes."""
        if self._process is None:
            self._start()
        try:
            self._say(task)
            return next(event["results"] for event in self._events(task, timeout) if "results" in event)
        except WorkerDied:
            self._end()
            raise

    def interrupt(self) -> None:
        """End the process from another thread than the one that asks; that one is told how it died."""
        process = self._process
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
        self._lines = lines_of(self._process)
        self._say(json.dumps(self._order))

    def _say(self, line):
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # how it ended is told by who listens

    def _events(self, task, timeout):
        begun, limit = None, START_SECONDS
        while True:
            event = heard(self._process, self._lines, self._words, begun, limit)
            self.facts = event.get("facts", self.facts)
            if "begin" in event:
                begun, limit = task, timeout
            yield event

    def _end(self):
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._words.close()
        self._process = None

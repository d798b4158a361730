"""A measuring process seen from outside: started, listened to, ended when it hangs."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from prism_bench.emulator.last_words import crash_in
from prism_bench.errors import BackendUnavailable
from prism_bench.strict_json import json_line
from prism_bench.workers.child import ending, environment

START_SECONDS = 180.0
MEASURING = "prism_bench.run.worker"
_BEFORE = "prism_bench.workbench.worker"  # the same program in checkouts of version 0.1


@dataclass(frozen=True)
class Place:
    """Where a process's package comes from (`root`: a checkout; this process's own without one), what stands in its
    `environment` besides, and which of its modules works there.
    """

    root: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    program: str = MEASURING

    @property
    def module(self) -> str:
        """Return the module to start: `program`, under its earlier name in an older checkout."""
        older = self.root is not None and (self.root / f"{_BEFORE.replace('.', '/')}.py").is_file()
        return _BEFORE if older and self.program == MEASURING else self.program

    def view(self) -> dict[str, str]:
        """The environment in which a process imports what stands at the root, and what this one does."""
        return {**environment(self.root), **self.environment}


HERE = Place()


class WorkerDied(Exception):
    """The process ended or was ended; `task` is what it was doing, `status` says how, `reason` why.

    `case` is the edge that it was at, where the task is all edges of a kernel.
    """

    def __init__(self, task: str | None, status: str, reason: str):
        super().__init__(reason)
        self.task, self.status, self.reason = task, status, reason
        self.case: str | None = None


def work(order: dict, timeout: float, place: Place = HERE) -> Iterator[dict]:
    """Start a process at `place` on `order` and yield its events; WorkerDied when it crashes or a task takes too long.

    Python looks into the current folder before anything else, so a process of another checkout stands in that.
    """
    with tempfile.TemporaryFile() as words:
        process = start(place, words)
        try:
            hand_over(process, json_line(order))
            yield from _events(process, timeout, words)
        finally:
            end(process)


def end(process: subprocess.Popen) -> None:
    """Kill the process, whatever it is doing, and close what led to it."""
    process.kill()
    process.wait()
    with suppress(BrokenPipeError):  # of a line that it did not live to read
        process.stdin.close()


def start(place: Place, words) -> subprocess.Popen:
    """A measuring process that waits for its order; what it says on standard error goes to the file `words`."""
    return subprocess.Popen(
        [sys.executable, "-m", place.module],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=words, text=True, env=place.view(),
        cwd=place.root, process_group=0,
    )  # fmt: skip


def hand_over(process: subprocess.Popen, line: str) -> None:
    """Write a line to a process, and leave its input open: the process ends when that closes, as it does with this one.

    A process that is gone already is noticed when it is listened to.
    """
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return


def _events(process, timeout, words):
    lines, task, case, limit = lines_of(process), None, None, START_SECONDS
    while True:
        try:
            event = heard(process, lines, words, task, limit)
        except WorkerDied as death:
            death.case = case
            raise
        task, case, limit = event.get("begin", task), event.get("case"), timeout
        yield event
        if event.get("end"):
            return


def heard(process, lines: SimpleQueue, words, task: str | None, limit: float) -> dict:
    """The next event of a process that is at `task`; WorkerDied where none comes within `limit` seconds or ever."""
    try:
        line = lines.get(timeout=limit)
    except Empty:
        raise WorkerDied(task, "timed out", f"no answer within {limit:.0f} s") from None
    if line is None:
        raise WorkerDied(task, "crashed", last_words(process, words))
    return json.loads(line)


def lines_of(process):
    """The process's lines in a queue, None at their end; a thread reads them so that waiting can have a limit."""
    lines: SimpleQueue = SimpleQueue()  # whose waiting a signal may interrupt anywhere and leave nothing half locked

    def read():
        with process.stdout as stdout:
            for line in stdout:
                lines.put(line)
        lines.put(None)

    Thread(target=read, daemon=True).start()
    return lines


def last_words(process, words) -> str:
    """How the process ended: the crash of an emulated kernel with its line, else the last line of standard error."""
    status = process.wait()
    words.seek(0)
    crash = crash_in(words.read().decode(errors="replace"))
    return str(crash) if crash else f"the process {ending(status, words)}"


def died_at_start(error: WorkerDied, backend: str) -> BackendUnavailable:
    """The error for a process that never came to its first task."""
    return BackendUnavailable(f"backend {backend} does not start: {error.reason}")

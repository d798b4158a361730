"""Handles of worker processes: start them, exchange messages, end them, and read their last words."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypedDict, Unpack

from prism_bench.io.workers.channel import FrameChannel
from prism_bench.io.workers.child import MOST_WORDS, ending, environment

START_SECONDS = 180.0  # until a worker's first message


class Confinement(Protocol):
    """A jail that a worker starts in."""

    def variables(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Return all environment variables in the jail, from those that the worker needs."""
        ...

    def command(self, module: str, arguments: Sequence[str]) -> list[str]:
        """Return the command that runs a Python module in the jail."""
        ...


@dataclass(frozen=True)
class WorkerEnvironment:
    """What a worker runs and where: its module, the checkout it is imported from, and environment variables.

    Without a `root` the worker imports what this process does. Python looks into the current folder first, so the
    worker of another checkout runs in that folder. `explain` finds the cause of a death in the text of standard error.
    In a `jail` it has the variables that are given here, and none of this process. A `starter` is the command of a
    program that starts the worker and watches it, as profilers do; that one ends with all that it started.
    """

    program: str
    root: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    explain: Callable[[str], object | None] = lambda text: None
    jail: Confinement | None = None
    starter: tuple[str, ...] = ()

    def view(self) -> dict[str, str]:
        """Return all environment variables of the worker."""
        inherited = environment(self.root)
        if self.jail:
            return self.jail.variables({"PYTHONPATH": inherited["PYTHONPATH"], **self.variables})
        return {**inherited, **self.variables}

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command that starts the worker with `arguments`."""
        if self.jail:
            return self.jail.command(self.program, arguments)
        return [*self.starter, sys.executable, "-m", self.program, *arguments]


class WorkerStreams(TypedDict, total=False):
    """What a worker's standard input and output are connected to, and the descriptors that it inherits.

    As `stdout`, `subprocess.STDOUT` is the file of standard error.
    """

    stdin: int
    stdout: int
    pass_fds: Collection[int]


class WorkerProcess:
    """A running worker in its own process group, so that a terminal's Ctrl-C reaches only its parent.

    What it writes to standard error is kept in a file until the handle is released. A jailed one has no other output:
    on this process's own, a stranger's code would write what looks like this program's words.
    """

    def __init__(
        self, where: WorkerEnvironment, arguments: Sequence[str] = (), **streams: Unpack[WorkerStreams]
    ) -> None:
        self._stderr, self._explain = tempfile.TemporaryFile(), where.explain
        self._is_jailed, self._is_started = where.jail is not None, bool(where.starter)
        if streams.get("stdout", subprocess.STDOUT if where.jail else None) == subprocess.STDOUT:
            streams["stdout"] = self._stderr.fileno()
        self._process = subprocess.Popen(
            where.command(arguments), stderr=self._stderr, env=where.view(), cwd=where.root, process_group=0, **streams
        )

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.poll() is None

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit status, minus the signal's number where a signal ended it; None after `timeout` seconds."""
        try:
            status = self._process.wait(timeout)
            return 128 - status if self._is_jailed and status > 128 else status  # as bubblewrap reports a signal
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End the process, whatever it is doing, with its group where a starter is its head; returns at once."""
        if self._is_started and self._process.returncode is None:  # else the group's number may be another's
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        else:
            self._process.kill()

    def stderr_text(self) -> str:
        """Return what the process has written to standard error so far, of very much the end."""
        begin = max(0, os.fstat(self._stderr.fileno()).st_size - MOST_WORDS)
        return os.pread(self._stderr.fileno(), MOST_WORDS, begin).decode(errors="replace")

    def ending(self, timeout: float | None = None) -> str:
        """Return how the process ended, with its last line of standard error, after waiting `timeout` seconds."""
        return ending(self.wait(timeout), self._stderr)

    def last_words(self) -> str:
        """Return why the process ended, after waiting for that: the cause that `explain` finds, or its last line."""
        self.wait()
        cause = self._explain(self.stderr_text())
        return str(cause) if cause else f"the process {self.ending()}"

    def release(self) -> None:
        """Close this side's files; the process has ended or is of no more interest."""
        self._stderr.close()


class FrameWorker(WorkerProcess):
    """A worker that exchanges frames: its module is started with the descriptor of its channel and `arguments`.

    Behind a starter, which may close what it does not know, the channel is standard input.
    """

    def __init__(
        self, where: WorkerEnvironment, arguments: Sequence[str] = (), **streams: Unpack[WorkerStreams]
    ) -> None:
        ours, theirs = socket.socketpair()
        descriptor = theirs.fileno()
        number = 0 if where.starter else descriptor
        if where.starter:
            streams["stdin"] = descriptor
        else:
            inherited = (descriptor, *streams.get("pass_fds", ()))
            streams = {"stdin": subprocess.DEVNULL, **streams, "pass_fds": inherited}
        with theirs:
            super().__init__(where, [str(number), *arguments], **streams)
        self.channel = FrameChannel(ours)

    def release(self) -> None:
        """Close the channel, which ends a worker that waits for a message."""
        self.channel.close()
        super().release()

"""A worker seen from the host: started, asked, ended."""

import socket
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection

from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.extensions.persistent.board import Board
from prism_bench.workers.child import ending, environment

START_SECONDS, END_SECONDS = 180.0, 30.0


class Process:
    """A worker process on a board of its own. Its questions are answered one at a time."""

    def __init__(self, backend: str, slots: int):
        self.board = Board(slots)
        ours, theirs = socket.socketpair()
        self._words = tempfile.TemporaryFile()
        handles = (theirs.fileno(), self.board.handle)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.worker", backend, *map(str, handles), str(slots)],
                pass_fds=handles, stdin=subprocess.DEVNULL, stdout=self._words, stderr=self._words, env=environment(),
                process_group=0,
            )  # fmt: skip
        self._channel = Connection(ours.detach())
        self.board.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def receive(self, timeout: float = START_SECONDS):
        """What the worker says next. An error of ours is raised; BackendUnavailable where it says nothing or died."""
        try:
            if not self._channel.poll(timeout):
                raise BackendUnavailable(f"the worker does not answer within {timeout:.3g} s")
            answer = self._channel.recv()
        except (EOFError, OSError) as error:
            raise BackendUnavailable(self.ending()) from error
        if isinstance(answer, PrismBenchError):
            raise answer
        return answer

    def send(self, message) -> None:
        """Say something to the worker; BackendUnavailable where it is gone."""
        try:
            self._channel.send(message)
        except OSError as error:
            raise BackendUnavailable(self.ending()) from error

    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def wait(self, timeout: float) -> bool:
        """Whether it ends within `timeout` seconds."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        """Ended, whatever it was doing; the system takes back what it had of the device, which may last a moment."""
        self._process.kill()
        self.wait(END_SECONDS)
        self._channel.close()
        self._words.close()

    def ending(self) -> str:
        """How it ended, with the last of what it said on standard error."""
        self.wait(1.0)
        return f"the worker process {ending(self._process.poll(), self._words)}"

"""Handle of the worker process that serves a queue: start it, exchange messages, end it."""

import subprocess
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.persistent.board import Board
from prism_bench.extensions.persistent.messages import WORKER_MESSAGES, HostMessage, WorkerMessage
from prism_bench.io.workers.frames import Frame, FrameError
from prism_bench.io.workers.handle import START_SECONDS, FrameWorker, WorkerEnvironment
from prism_bench.io.workers.refusal import Refusal

END_SECONDS = 30.0
_WORKER = WorkerEnvironment("prism_bench.extensions.persistent.worker")
_Expected = TypeVar("_Expected", bound=WorkerMessage)


class ServingProcess:
    """A worker process with its own board. Its questions are answered one at a time."""

    def __init__(self, backend: str, slots: int) -> None:
        self.board = Board(slots)
        arguments = [backend, str(self.board.handle), str(slots)]
        self._worker = FrameWorker(_WORKER, arguments, stdout=subprocess.STDOUT, pass_fds=(self.board.handle,))
        self.board.close()

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._worker.pid

    def receive(self, expected: type[_Expected], timeout: float = START_SECONDS, largest: int = 0) -> Frame[_Expected]:
        """Return the worker's next message, whose arrays have at most `largest` bytes.

        An expected error of the worker is raised; BackendUnavailable where it sends nothing in time, something else,
        or has ended.
        """
        try:
            frame = self._worker.channel.receive(WORKER_MESSAGES, timeout, largest)
        except TimeoutError:
            raise BackendUnavailable(f"the worker does not answer within {timeout:.3g} s") from None
        except (EOFError, OSError) as error:
            raise BackendUnavailable(self.ending()) from error
        except FrameError as error:
            raise BackendUnavailable(f"the worker sent no answer: {error}") from error
        if isinstance(frame.message, Refusal):
            raise frame.message.error()
        if not isinstance(frame.message, expected):
            raise BackendUnavailable(f"the worker sent {type(frame.message).__name__}, not {expected.__name__}")
        return Frame(frame.message, frame.arrays)

    def send(self, message: HostMessage, arrays: Sequence[np.ndarray] = ()) -> None:
        """Send a message to the worker; BackendUnavailable where it has ended."""
        try:
            self._worker.channel.send(message, arrays)
        except OSError as error:
            raise BackendUnavailable(self.ending()) from error

    def alive(self) -> bool:
        """Return whether the process has not ended."""
        return self._worker.is_alive()

    def wait(self, timeout: float) -> bool:
        """Return whether it ends within `timeout` seconds."""
        return self._worker.wait(timeout) is not None

    def end(self) -> None:
        """End it, whatever it is doing; the system may need a moment to release its memory on the device."""
        self._worker.kill()
        self.wait(END_SECONDS)
        self._worker.release()

    def ending(self) -> str:
        """Return how it ended, with its last line of standard error."""
        return f"the worker process {self._worker.ending(1.0)}"

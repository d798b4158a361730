"""One end of a connection between two processes that exchange frames over a Unix socket."""

import select
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
import numpy as np

from prism_bench.io.workers.frames import LARGEST_PAYLOAD, Frame, FrameError, Message, frame_parts, read_frame

STALL_SECONDS = 60.0  # within a frame that has begun
MOST_PARTS = 64  # of a frame in one call; the system takes 1024
BUFFER_BYTES = 1 << 20  # the system's default of some 200 kB makes large arrays five times as slow


class FrameChannel:
    """Sends and receives frames, one at a time."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._socket.setblocking(False)
        with suppress(OSError):  # the default is slower, not wrong
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)

    @classmethod
    def inherited(cls, descriptor: int) -> "FrameChannel":
        """Return the channel over a socket that this process was started with."""
        return cls(socket.socket(fileno=descriptor))

    def send(self, message: object, arrays: Sequence[np.ndarray] = ()) -> None:
        """Send a frame; BrokenPipeError or ConnectionResetError where nobody receives it."""
        parts = list(frame_parts(message, arrays))
        while parts:
            parts = _without(parts, self._sent(parts[:MOST_PARTS]))

    def receive(
        self, decoder: msgspec.json.Decoder[Message], timeout: float | None = None, largest: int = LARGEST_PAYLOAD
    ) -> Frame[Message]:
        """Return the next frame, whose arrays together have at most `largest` bytes.

        TimeoutError where it has not begun within `timeout` seconds, EOFError where the other end is closed, FrameError
        for anything else than a frame of the decoder's type, which a frame that stops half-way is, too.
        """
        if not self.has_data(timeout):
            raise TimeoutError(f"no message within {timeout:.3g} s")
        return read_frame(self._fill, decoder, largest)

    def serve(
        self, decoder: msgspec.json.Decoder[Message],
        reply: Callable[[Frame[Message]], tuple[object, Sequence[np.ndarray]]],
    ) -> None:  # fmt: skip
        """Answer each frame by `reply`, a message and its arrays, until the other end is closed."""
        while True:
            try:
                frame = self.receive(decoder)
            except EOFError:
                return
            self.send(*reply(frame))

    def has_data(self, timeout: float | None = 0.0) -> bool:
        """Return whether there is something to receive (or an end) within `timeout` seconds; None waits for it."""
        return _is_ready(self._socket, select.POLLIN, timeout)

    def finish(self) -> None:
        """Send no more: the other end, which may still answer, ends in order once it has served what was sent."""
        with suppress(OSError):  # it has ended
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close this end; the other end notices."""
        self._socket.close()

    def _sent(self, parts: Sequence[memoryview]) -> int:
        """Return how many bytes of the parts were sent; 0 after waiting until some can be."""
        try:
            return self._socket.sendmsg(parts)
        except BlockingIOError:
            _is_ready(self._socket, select.POLLOUT, None)
            return 0

    def _fill(self, view: memoryview) -> None:
        whole = len(view)
        while view:
            try:
                count = self._socket.recv_into(view)
            except BlockingIOError:
                if not self.has_data(STALL_SECONDS):
                    raise FrameError(f"a frame stops half-way for {STALL_SECONDS:.0f} s") from None
                continue
            except ConnectionResetError:
                count = 0
            if not count and len(view) == whole:
                raise EOFError
            if not count:
                raise FrameError("the data ends within a frame")
            view = view[count:]


def _without(parts: list[memoryview], count: int) -> list[memoryview]:
    """Return the parts without their first `count` bytes."""
    for index, part in enumerate(parts):
        if count < len(part):
            return [part[count:], *parts[index + 1 :]]
        count -= len(part)
    return []


def _is_ready(connected: socket.socket, event: int, timeout: float | None) -> bool:
    """Wait for the event, an error or the end of the other side; False after `timeout` seconds without any."""
    waiting = select.poll()
    waiting.register(connected, event)
    return bool(waiting.poll(None if timeout is None else timeout * 1e3))

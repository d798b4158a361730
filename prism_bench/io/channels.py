"""Binary messages between two processes: frames, and the connection that exchanges them."""

import math
import re
import select
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import msgspec
import numpy as np

from prism_bench.units import count_text

# Binary messages between two processes: a magic number, two lengths, a JSON header, then the bytes of the arrays.
#
#     magic    4 bytes, `PBF1`
#     lengths  of the header (u32) and of all arrays together (u64), little-endian
#     header   UTF-8 JSON: {"message": {...}, "arrays": [{"dtype": "<f4", "shape": [2, 3], "bytes": 24}, ...]}
#     arrays   the raw bytes of each array, in order, without gaps
#
# The sender may be a process that ran a kernel's native code, which can send anything. `read_frame` therefore trusts
# nothing: it checks every size against a limit before it allocates memory, accepts no Python objects, and raises
# FrameError for whatever is not a frame of the expected type.

MAGIC = b"PBF1"
_LARGEST_HEADER = 16 << 20
_LARGEST_PAYLOAD = 1 << 40  # of a sender that is trusted
_MOST_ARRAYS, _MOST_AXES = 4096, 32
_PREFIX = struct.Struct("<4sIQ")
_DTYPE = re.compile(r"[<>|][biufcV][1-9][0-9]{0,4}")

Message = TypeVar("Message")
Fill = Callable[
    [memoryview], None
]  # fills the whole view; EOFError where there is no data, FrameError where too little


class FrameError(Exception):
    """What was received is not a frame, or not a frame of the expected type; the message names what is wrong."""


class _ArrayHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Type, shape and size of one array."""

    dtype: str
    shape: tuple[int, ...]
    bytes: int


class _FrameHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The message, still encoded, and the headers of the arrays that follow."""

    message: msgspec.Raw
    arrays: tuple[_ArrayHeader, ...]


@dataclass(frozen=True)
class Frame(Generic[Message]):
    """A decoded message and its arrays, which are contiguous and writable."""

    message: Message
    arrays: tuple[np.ndarray, ...] = ()


def can_be_sent(dtype: np.dtype) -> bool:
    """Return whether arrays of this type are plain bytes: Python objects and empty types are not."""
    return not dtype.hasobject and 0 < dtype.itemsize < 100_000


def frame_parts(message: object, arrays: Sequence[np.ndarray] = ()) -> Iterator[memoryview]:
    """Yield the bytes of a frame in pieces: everything before the arrays, then each array without a copy of it.

    `message` is a msgspec structure or a dataclass; ValueError where an array cannot be sent.
    """
    contents = [np.ascontiguousarray(array).reshape(-1) for array in arrays]
    headers = tuple(map(_array_header, arrays))
    encoded = _ENCODER.encode(_FrameHeader(msgspec.Raw(_ENCODER.encode(message)), headers))
    payload = sum(header.bytes for header in headers)
    if len(encoded) > _LARGEST_HEADER:
        raise ValueError(f"the header of a message has {len(encoded)} bytes; the limit is {_LARGEST_HEADER}")
    yield memoryview(_PREFIX.pack(MAGIC, len(encoded), payload) + encoded)
    yield from (content.view(np.uint8).data for content in contents if content.size)


def read_frame(fill: Fill, decoder: msgspec.json.Decoder[Message], largest: int = _LARGEST_PAYLOAD) -> Frame[Message]:
    """Return the next frame that `fill` reads; its arrays together have at most `largest` bytes.

    FrameError where it is not a frame with a message of the decoder's type; EOFError where the data ends before its
    first byte.
    """
    prefix = bytearray(_PREFIX.size)
    fill(memoryview(prefix))
    try:
        header_bytes, payload = _checked_prefix(prefix, largest)
        encoded = bytearray(header_bytes)
        fill(memoryview(encoded))
        header = _HEADERS.decode(encoded)
        arrays = _allocated(header.arrays, payload)
        message = decoder.decode(header.message)
        for array in arrays:
            if array.size:
                fill(array.reshape(-1).view(np.uint8).data)
    except EOFError:
        raise FrameError("the data ends within a frame") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(f"the header is not the expected JSON: {error}") from error
    return Frame(message, arrays)


def _checked_prefix(prefix: bytearray, largest: int) -> tuple[int, int]:
    """Return the lengths of the header and of the arrays."""
    magic, header_bytes, payload = _PREFIX.unpack(prefix)
    if magic != MAGIC:
        raise FrameError(f"a frame begins with {MAGIC!r}, not with {magic!r}")
    if header_bytes > _LARGEST_HEADER:
        raise FrameError(f"the header has {header_bytes} bytes; the limit is {_LARGEST_HEADER}")
    if payload > largest:
        raise FrameError(f"the arrays have {payload} bytes; the limit is {largest}")
    return header_bytes, payload


def _allocated(headers: Sequence[_ArrayHeader], payload: int) -> tuple[np.ndarray, ...]:
    """Return an array for each header, not yet filled, once all sizes together are those of the payload."""
    if len(headers) > _MOST_ARRAYS:
        raise FrameError(f"the frame has {count_text(len(headers), 'array')}; the limit is {_MOST_ARRAYS}")
    dtypes = [_checked_dtype(header, payload) for header in headers]
    total = sum(header.bytes for header in headers)
    if total != payload:
        raise FrameError(f"the arrays have {payload} bytes, and their headers add up to {total}")
    try:
        return tuple(np.empty(header.shape, dtype) for header, dtype in zip(headers, dtypes, strict=True))
    except (ValueError, MemoryError, OverflowError) as error:
        raise FrameError(f"no memory for the arrays: {error}") from error


def _checked_dtype(header: _ArrayHeader, payload: int) -> np.dtype:
    """Return the array's type; shape and size fit it and each other, and are within the payload."""
    if not _DTYPE.fullmatch(header.dtype):
        raise FrameError(f"{header.dtype[:40]!r} is not the type of an array that can be sent")
    try:
        dtype = np.dtype(header.dtype)
    except TypeError as error:
        raise FrameError(str(error)) from error
    if len(header.shape) > _MOST_AXES or not all(0 <= extent <= _LARGEST_PAYLOAD for extent in header.shape):
        raise FrameError("the shape of an array is out of range")
    if not 0 <= header.bytes <= payload:
        raise FrameError("an array is larger than all arrays together")
    if math.prod(header.shape) * dtype.itemsize != header.bytes:
        raise FrameError(f"an array of shape {header.shape} and type {header.dtype} has not {header.bytes} bytes")
    return dtype


def _array_header(array: np.ndarray) -> _ArrayHeader:
    """Return the header of an array; types that only NumPy's extensions know travel as bytes of their size."""
    dtype = array.dtype
    if not can_be_sent(dtype):
        raise ValueError(f"an array of {dtype} cannot be sent to another process")
    name = dtype.str if _DTYPE.fullmatch(dtype.str) else f"|V{dtype.itemsize}"
    return _ArrayHeader(name, array.shape, array.nbytes)


def _plain(value: object) -> object:
    """Return a NumPy scalar in a message as a number."""
    if isinstance(value, np.generic):
        return cast("object", value.item())
    raise NotImplementedError(f"{type(value).__name__} cannot be part of a message")


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)
_HEADERS = msgspec.json.Decoder(_FrameHeader)


# One end of a connection between two processes that exchange frames over a Unix socket.

STALL_SECONDS = 60.0  # within a frame that has begun
_MOST_PARTS = 64  # of a frame in one call; the system takes 1024
_BUFFER_BYTES = 1 << 20  # the system's default of some 200 kB makes large arrays five times as slow


class FrameChannel:
    """Sends and receives frames, one at a time."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._socket.setblocking(False)
        with suppress(OSError):  # the default is slower, not wrong
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)

    @classmethod
    def inherited(cls, descriptor: int) -> "FrameChannel":
        """Return the channel over a socket that this process was started with."""
        return cls(socket.socket(fileno=descriptor))

    def send(self, message: object, arrays: Sequence[np.ndarray] = ()) -> None:
        """Send a frame; BrokenPipeError or ConnectionResetError if the other end is closed."""
        parts = list(frame_parts(message, arrays))
        while parts:
            parts = _without(parts, self._sent(parts[:_MOST_PARTS]))

    def receive(
        self, decoder: msgspec.json.Decoder[Message], timeout: float | None = None, largest: int = _LARGEST_PAYLOAD
    ) -> Frame[Message]:
        """Return the next frame, whose arrays together have at most `largest` bytes.

        TimeoutError where it has not begun within `timeout` seconds, EOFError where the other end is closed, FrameError
        for anything else than a frame of the decoder's type, which a frame that stops half-way is, too.
        """
        if not self.has_data(timeout):
            raise TimeoutError(f"no message within {timeout:.3g} s")
        return read_frame(self._fill, decoder, largest)

    def serve(
        self,
        decoder: msgspec.json.Decoder[Message],
        reply: Callable[[Frame[Message]], tuple[object, Sequence[np.ndarray]]],
    ) -> None:
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

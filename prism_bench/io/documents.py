"""JSON files that may come from anywhere: read within limits of size, nesting and memory, compressed or not.

Every reader of our own files goes through here, so that a damaged or hostile file costs little and is named.
"""

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from prism_bench.errors import ResultsError

# Of text after decompression; PRISM_BENCH_LARGEST_JSON (in MB) is for those who keep more in one file.
LARGEST_JSON = 256_000_000
# Parsing may take this much memory, or this many bytes for each byte of the file where that is more: a large file may
# cost much, a small one may not. The committed records are estimated at 22 to 86 for each byte.
LEAST_MEMORY, MEMORY_PER_BYTE = 100_000_000, 150
_Kind = TypeVar("_Kind")
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_SMALL = 8 * _CHUNK  # what is surveyed after it was decompressed, not before


def content_of(path: Path, what: str) -> bytes | bytearray:
    """Return the text of the file, decompressed; a ResultsError names the file that is not `what`.

    The file may exceed no limit: neither its size, nor what it decompresses to, nor what parsing it would take.
    """
    try:
        with path.open("rb") as file:
            limits = _ReadingLimits(path, os.fstat(file.fileno()).st_size)
            data = file.read(limits.size + 1)
        if data[:2] != _GZIP:
            limits.survey([data])
            return data
        return _decompressed(data, limits)
    except FileNotFoundError:
        raise
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ResultsError(f"{path}: not {what} ({error})") from error


def json_of(path: Path, what: str) -> object:
    """Return the JSON value in the file; a ResultsError names the file that is not `what`."""
    text = content_of(path, what)
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ResultsError(f"{path}: not {what} ({error})") from error


def as_kind(value: object, kind: type[_Kind]) -> _Kind:
    """Return parsed JSON as a dataclass or another type; a ValueError names the field that is not of its type.

    Fields that the type has not are passed over.
    """
    try:
        return msgspec.convert(value, kind)
    except (RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from error


def kind_in(path: Path, what: str, kind: type[_Kind]) -> _Kind:
    """Return the JSON of our own file as a type, as `as_kind` does; a ResultsError for any other content."""
    try:
        return msgspec.json.decode(content_of(path, what), type=kind)
    except (msgspec.MsgspecError, RecursionError, OverflowError) as error:
        raise ResultsError(f"{path}: not {what} ({error})") from error


def json_of_kind(value: object) -> bytes:
    """Return dataclasses as JSON that `kind_in` reads; floats are finite."""
    return msgspec.json.encode(value)


def text_of(path: Path, what: str) -> str:
    """Return the text of a file that is no JSON, such as TOML, within the same limits."""
    try:
        return content_of(path, what).decode("utf-8")
    except ValueError as error:
        raise ResultsError(f"{path}: not {what} ({error})") from error


def largest_json() -> int:
    """Return the limit in bytes: PRISM_BENCH_LARGEST_JSON in MB, else LARGEST_JSON."""
    asked = os.environ.get("PRISM_BENCH_LARGEST_JSON", "")
    return int(asked) * 1_000_000 if asked.isdecimal() and len(asked) < 10 else LARGEST_JSON


class _ReadingLimits:
    """Limits of what the file at `path`, of `size` bytes, may cost."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self.size = path, size
        self._text, self._memory = largest_json(), max(LEAST_MEMORY, MEMORY_PER_BYTE * size)
        self._require_text(size)

    def survey(self, parts: Iterable[bytes | bytearray]) -> int:
        """Count the text that comes in `parts` and what parsing it would take, without parsing; return its length."""
        length = memory = 0
        for part in parts:
            length += len(part)
            memory += len(part) + 40 * part.count(b",") + 100 * (part.count(b"[") + part.count(b"{"))
            self._require_text(length)
            if memory > self._memory:
                raise ResultsError(
                    f"{self._path}: {self.size} bytes that would take more than {self._memory / 1e6:.0f} MB of memory, "
                    "the limit for a file of this size"
                )
        return length

    def _require_text(self, length: int) -> None:
        if length > self._text:
            limit = f"the limit is {self._text / 1e6:.0f} MB (PRISM_BENCH_LARGEST_JSON sets it)"
            raise ResultsError(f"{self._path}: {length / 1e6:.0f} MB of text or more; {limit}")


def _decompressed(data: bytes, limits: _ReadingLimits) -> bytearray:
    """Return what the gzip file holds; a large one is surveyed first, while nothing of it is kept."""
    promised = int.from_bytes(data[-4:], "little")
    if promised > _SMALL:
        limits.survey(_chunks(data))
    text = bytearray()
    for chunk in _chunks(data):
        text += chunk
    if promised <= _SMALL:
        limits.survey([text])
    return text


def _chunks(data: bytes) -> Iterator[bytes]:
    """Yield what the gzip file holds, at most _CHUNK bytes at once; a BadGzipFile where it is cut or goes on."""
    promised, length = int.from_bytes(data[-4:], "little"), 0
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    while not unpacking.eof:
        chunk = unpacking.decompress(data, _CHUNK)
        data = unpacking.unconsumed_tail
        if not chunk and not data:
            raise gzip.BadGzipFile("it is cut short")
        length += len(chunk)
        if promised <= _SMALL < length:
            raise gzip.BadGzipFile(f"it holds more than the {promised} bytes that it declares")
        yield chunk
    if unpacking.unused_data.strip(b"\0"):
        raise gzip.BadGzipFile("something follows its end")

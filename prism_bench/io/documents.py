"""Documents: JSON and other files that may come from anywhere, read within limits; JSON text, written strictly.

Every reader of our own files goes through here, so that a damaged or hostile file costs little and is named: limits are
of size, nesting and memory, compressed or not. Files of other programs are read whole and within a limit of size.

`json_text` and its neighbours are the only place that writes JSON for files, standard output and other programs. JSON
has neither infinities nor NaN. Such a value becomes null, and another field, `<name>_reason`, gives the cause. Outputs
of kernels that are infinite or NaN are words (`inf`, `nan`) in a record, and stay so.
"""

import gc
import gzip
import json
import math
import os
import re
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import msgspec

from prism_bench.errors import ResultsError
from prism_bench.io.files import number_variable, write_atomically

_LARGEST_JSON = "PRISM_BENCH_LARGEST_JSON"  # for those who keep more than _LARGEST in one file
_LARGEST = 256.0  # MB of text after decompression
# Parsing may take this much memory, or this many bytes for each byte of the file where that is more: a large file may
# cost much, a small one may not. The committed records are estimated at 22 to 86 for each byte.
_LEAST_MEMORY, _MEMORY_PER_BYTE = 100_000_000, 150
_Kind = TypeVar("_Kind")
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_SMALL = 8 * _CHUNK  # of more than it declares, a smaller file is refused while it is decompressed


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
    except IsADirectoryError:
        raise ResultsError(f"{path} is a folder, not {what}: name a file") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ResultsError(f"{path}: not {what} ({error})") from error


def json_of(path: Path, what: str) -> object:
    """Return the JSON value in the file; a ResultsError names the file that is not `what`."""
    text = content_of(path, what)
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ResultsError(f"{path}: not {what} ({error})") from error


def keys_in(text: bytes | bytearray) -> set[str]:
    """Return the names of the fields of the JSON object in the text; empty for any other text."""
    try:
        return set(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return set()


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


class _ReadingLimits:
    """Limits of what the file at `path`, of `size` bytes, may cost."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self.size = path, size
        self._text = 1e6 * number_variable(_LARGEST_JSON, _LARGEST, "a number of megabytes, at least 1", least=1.0)
        self._memory = max(_LEAST_MEMORY, _MEMORY_PER_BYTE * size)
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
            limit = f"the limit is {self._text / 1e6:.0f} MB ({_LARGEST_JSON} sets it)"
            raise ResultsError(f"{self._path}: {length / 1e6:.0f} MB of text or more; {limit}")


def _decompressed(data: bytes, limits: _ReadingLimits) -> bytearray:
    """Return what the gzip file holds, surveyed while it is decompressed: no more is kept than the limits allow."""
    text = bytearray()

    def chunks() -> Iterator[bytes]:
        for chunk in _chunks(data):
            text.extend(chunk)
            yield chunk

    limits.survey(chunks())
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


# Where a document is read from that is no longer in its folder: raw samples of a record may be kept elsewhere.
#
# A program sets that place once (`supply`); the command line does. Without it a missing document is missing.


class RawSource(Protocol):
    """A place that holds records which were removed from their folder."""

    def has(self, path: Path) -> bool:
        """Return whether the record that was at `path` is here."""
        ...

    def copy(self, path: Path) -> Path | None:
        """Return a readable copy of the record that was at `path`; None where it is not here."""
        ...


_source: Callable[[], RawSource | None] | None = None


def supply(make: Callable[[], RawSource | None] | None) -> None:
    """Let `make` return the source, once, when a record is missing for the first time; None for no source."""
    global _source
    _source = cache(make) if make else None


def is_present(path: Path) -> bool:
    """Return whether the record at `path` is there, or elsewhere."""
    if path.is_file():
        return True
    source = _source() if _source else None
    return source is not None and source.has(path)


def kept_copy(path: Path) -> Path | None:
    """Return a readable copy of the record that was at `path`; None where no source has it."""
    source = _source() if _source else None
    return source.copy(path) if source else None


_LARGEST_FOREIGN = 256_000_000  # bytes; a file of a thousand profiled launches with all metrics has some 50 million
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)


def bytes_of(path: Path, what: str, largest: int = _LARGEST_FOREIGN) -> bytes:
    """Return the content of the file; a ResultsError where it cannot be read as `what` or exceeds the limit."""
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        raise ResultsError(f"{path}: not readable as {what}: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > largest:
        raise ResultsError(f"{path}: more than {largest / 1e6:.0f} MB, the limit for {what}")
    return data


def table_text_of(path: Path, what: str) -> str:
    r"""Return the text of a table without its byte order mark; bytes that are no UTF-8 are shown as `\xff`.

    A ResultsError also where its last line has no end: a cell of it may be cut.
    """
    text = bytes_of(path, what).decode("utf-8-sig", "backslashreplace")
    if text and not text.endswith("\n"):
        raise ResultsError(f"{path}: the last line has no end, so the {what} is cut; export it again")
    return text


def whole_number(text: str, place: str) -> int:
    """Return the number in the text, digits and nothing else; a ResultsError names the place of any other text."""
    if not _WHOLE.fullmatch(text):
        raise ResultsError(f"{place} is {text!r:.40}, not a whole number")
    return int(text)


@runtime_checkable
class _ArrayLike(Protocol):
    """A scalar or an array of NumPy, or of a library like it."""

    def tolist(self) -> Any:
        """Return the value as Python's own numbers and lists."""
        ...


def json_text(value: object, *, indent: int | None = None, sort_keys: bool = False) -> str:
    """Return the value as strict JSON, compact without `indent`; see the module for what JSON cannot hold."""
    form: dict[str, Any] = {"indent": indent, "sort_keys": sort_keys, "allow_nan": False}
    form["separators"] = (",", ":") if indent is None else None
    try:
        return json.dumps(value, default=_other, **form)
    except (ValueError, TypeError):  # a float that is not finite, or a key that is no text
        return json.dumps(plain(value), **form)


def quoted(text: str) -> str:
    """Return the text as a string of JSON that YAML and TOML read alike, which know no pairs of surrogates."""
    return json.dumps(text, ensure_ascii=False)


def json_line(value: object) -> str:
    """Return JSON for our own processes, or to compare values by; infinities and NaN stay what they are."""
    return json.dumps(value, default=str)


def _other(value: object) -> Any:
    """Return NumPy's scalars and arrays as numbers and lists, anything else as text."""
    return value.tolist() if isinstance(value, _ArrayLike) else str(value)


def plain(value: object) -> Any:
    """Return the value in JSON's own types: null where a float is not finite, text where no type fits."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return _object(cast("Mapping[object, object]", value))
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in cast("Iterable[object]", value)]
    if isinstance(value, _ArrayLike):
        return plain(value.tolist())
    return str(value)


def _object(value: Mapping[object, object]) -> dict[str, Any]:
    """Return the object, with a reason for every value in which a float became null."""
    made: dict[str, Any] = {}
    for key, entry in value.items():
        made[str(key)] = plain(entry)
        reason = _reason(entry)
        if reason and f"{key}_reason" not in value:
            made[f"{key}_reason"] = reason
    return made


def _reason(value: object) -> str | None:
    """Return why the value, or an entry of a list, is null; None if it is not. Objects inside have other reasons."""
    value = value.tolist() if isinstance(value, _ArrayLike) else value
    odd = [number for number in _floats(value) if not math.isfinite(number)]
    if not odd:
        return None
    kinds = {"not a number" if math.isnan(number) else "infinite" if number > 0 else "minus infinite" for number in odd}
    reason = " and ".join(sorted(kinds))
    return reason if isinstance(value, float) else f"{len(odd)} null: {reason}"


def _floats(value: object) -> Iterator[float]:
    """Yield the float itself, or those of a list of lists; whatever has a `tolist` is such a list."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for entry in cast("Iterable[object]", value):
            yield from _floats(entry)
    elif isinstance(value, _ArrayLike):
        yield from _floats(value.tolist())


@contextmanager
def no_collection() -> Generator[None]:
    """Disable the cycle collector in the block, in which it would search everything again and again."""
    wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if wanted:
            gc.enable()


# JSON files with a schema.


@dataclass(frozen=True)
class Schema:
    """Kind of JSON file.

    `what` describes it (`a store of choices`), `number` is that of its schema, and `command` makes such a file.
    """

    what: str
    number: int
    command: str

    def read(self, path: Path) -> dict[str, Any] | None:
        """Return the object at `path`, None where there is no such file.

        Raise a ResultsError for a file that is no such object, or has another schema.
        """
        try:
            data = json_of(path, f"readable as {self.what}")
        except FileNotFoundError:
            return None
        except ResultsError as error:
            raise ResultsError(f"{error}; '{self.command}' makes one") from error
        values = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        schema = values.get("schema")
        if schema != self.number:
            raise ResultsError(f"{path}: schema is {schema!r}, not {self.number}; '{self.command}' makes it anew")
        return values

    def kind_of(self, value: object, kind: type[_Kind], path: Path) -> _Kind:
        """Return a part of the object at `path` as a dataclass; a ResultsError for a field of another type."""
        try:
            return as_kind(value, kind)
        except ValueError as error:
            raise self.damaged(path, error) from error

    def damaged(self, path: Path, error: Exception) -> ResultsError:
        """Return the error for an object at `path` that lacks a value, or has it in another form."""
        return ResultsError(f"{path}: damaged as {self.what} ({type(error).__name__}: {error})")

    def write(self, path: Path, plain: Mapping[str, Any]) -> Path:
        """Write plain values to `path`, whole or not at all, and return it; a ResultsError where that fails."""
        try:
            text = json.dumps({"schema": self.number, **plain}, indent=1, allow_nan=False)
            write_atomically(path, f"{text}\n".encode())
        except OSError as error:
            raise ResultsError(f"cannot write {path}: {error.strerror}") from error
        except ValueError as error:  # a number that JSON has not
            raise ResultsError(f"cannot write {path} as {self.what}: {error}") from error
        return path


def four_digits(value: object) -> Any:
    """Return the value with four digits of every float in it: more digits of a measured time would be noise."""
    if isinstance(value, Mapping):
        return {key: four_digits(entry) for key, entry in cast("Mapping[Any, object]", value).items()}
    if isinstance(value, list | tuple):
        return [four_digits(entry) for entry in cast("Iterable[object]", value)]
    return float(f"{value:.4g}") if isinstance(value, float) else value

"""Kinds of files by their content: what a file is, and which command reads it."""

import re
import sqlite3
import zipfile
import zlib
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from prism_bench.errors import PrismBenchError, ResultsError, UsageError
from prism_bench.extension import installed
from prism_bench.io.documents import content_of, keys_in
from prism_bench.record.formats import format_of

_HEAD = 1 << 20  # bytes that show the kind of a text: a program may print a lot before ncu's table
_GZIP, _SQLITE, _ZIP = b"\x1f\x8b", b"SQLite format 3\x00", b"PK\x03\x04"
# Formats that only their tools read are known by the names that the tools give.
_REPORTS = {".ncu-rep": "ncu report", ".nsys-rep": "nsys report", ".qdstrm": "nsys recording"}
_TABLES = (  # by a line of theirs
    ("ncu table", re.compile(r'^"?ID"?,.*Kernel Name', re.MULTILINE)),
    ("ncu source page", re.compile(r'^"?Line No"?,', re.MULTILINE)),
    ("nsys table", re.compile(r"^.*\b(Total Time|Duration|Total \().*\b(Name|Range|Operations?)\b", re.MULTILINE)),
    ("nsys table", re.compile(r"SKIPPED: .* does not contain")),
)


_FIELDS = (  # of a JSON object
    ("record", {"schema", "backend", "cases"}),
    ("choices", {"schema", "backend", "choices"}),
    ("policies", {"schema", "backend", "matmul", "windows", "batches"}),
    ("torch trace", {"traceEvents"}),
)
POLICIES = "policies"


@dataclass(frozen=True)
class FileKind:
    """A kind of file: its `name`, its `title` with an article, and the command that reads it, None without one."""

    name: str
    title: str
    command: str | None = None


KINDS = {
    kind.name: kind
    for kind in (
        FileKind("ncu table", "ncu's CSV", "profile"),
        FileKind("ncu report", "a report of ncu", "profile"),
        FileKind("ncu source page", "ncu's source page, which 'profile --counters lines' reads itself"),
        FileKind("nsys export", "nsys's SQLite export", "profile"),
        FileKind("nsys report", "a report of nsys", "profile"),
        FileKind("nsys recording", "a raw recording of nsys", "profile"),
        FileKind("nsys table", "nsys's CSV", "profile"),
        FileKind("timeline", "a recorded timeline", "profile"),
        FileKind("script", "a Python script", "profile"),
        FileKind("record", "a run record", "show"),
        FileKind("choices", "a file of tuned choices", "tune"),
        FileKind(POLICIES, "a file of measured policies", "tune"),
        FileKind("torch trace", "a trace of PyTorch's profiler", "import"),
    )
}


def kind_of(path: Path) -> FileKind | None:
    """Return the kind of the file by its content; None for a kind that no command reads.

    Raise a ResultsError for a file that is missing or cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such file") from None
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read ({error.strerror or error})") from error
    if path.suffix in _REPORTS:
        return KINDS[_REPORTS[path.suffix]]
    if head.startswith(_SQLITE):
        return KINDS["nsys export"] if _is_export(path) else None
    if head.startswith(_ZIP):
        return KINDS["timeline"] if _is_timeline(path) else None
    return _of_text(path, head)


def _is_export(path: Path) -> bool:
    """Return whether the database has a table of nsys; one that cannot be read is left to the reader of exports."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            names = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return True
    return "META_DATA_EXPORT" in names or any(name.startswith("CUPTI_") for name in names)


def _is_timeline(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as packed:
            return "work.start.npy" in packed.namelist()
    except (zipfile.BadZipFile, OSError):
        return True


def _of_text(path: Path, head: bytes) -> FileKind | None:
    """Return the kind of a text, which may be compressed."""
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(31).decompress(head, _HEAD)
        except zlib.error:
            return None
    text = head.decode("utf-8-sig", "replace").lstrip()
    if text.startswith(("{", "[", "<")):
        return _of_document(path, text)
    if path.suffix == ".py" or re.match(r"#!.*\bpython", text):
        return KINDS["script"]
    lines = text.replace("\r", "")
    for name, pattern in _TABLES:
        if pattern.search(lines):
            return KINDS[name]
    return _foreign(path)


def _of_document(path: Path, text: str) -> FileKind | None:
    """Return the kind of JSON or HTML: a run record, a file of an extension, or a result of another benchmark."""
    if text.startswith("{"):
        try:
            keys = keys_in(content_of(path, "JSON"))
        except ResultsError:
            return None
        for name, needed in _FIELDS:
            if needed <= keys:
                return KINDS[name]
    for extension in installed():
        for command, reference in extension.reads.items():
            if title := extension.function(reference)(path):
                return FileKind(command, title, command)
    return _foreign(path)


def _foreign(path: Path) -> FileKind | None:
    """Return the kind of another benchmark's results."""
    try:
        name = format_of(path)
    except PrismBenchError:
        return None
    return FileKind(name, f"a result of {name}", "import") if name else None


def refuse_other(path: Path, kind: FileKind | None, command: str) -> None:
    """Raise a UsageError for a file of a kind that the command does not read; it names the command that does."""
    if kind is not None and kind.command != command:
        reader = f": prism-bench {kind.command} {path}" if kind.command else "; no command reads it"
        raise UsageError(f"{path}: this is {kind.title}{reader}")


def other_kind(path: Path, command: str, error: PrismBenchError) -> PrismBenchError:
    """Return the error for a file that the command could not read: which command reads it, or the `error` itself."""
    try:
        refuse_other(path, kind_of(path), command)
    except UsageError as other:
        return other
    except ResultsError:
        return error
    return error

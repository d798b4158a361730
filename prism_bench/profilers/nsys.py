"""Nsight Systems: command lines, CSV tables and SQLite exports, read into a timeline."""

import csv
import io
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from prism_bench.errors import ResultsError
from prism_bench.io.documents import table_text_of, whole_number
from prism_bench.profilers import metrics
from prism_bench.profilers.timeline import (
    COPY,
    GRAPH,
    KERNEL,
    MOST_DEVICES,
    MOST_THREADS,
    SET,
    Caller,
    Calls,
    Checks,
    Ranges,
    Timeline,
    Work,
    is_transfer,
    timeline_of,
)
from prism_bench.profilers.tools import Tool
from prism_bench.units import count_text

# Command lines.


def capture(tool: Tool, report: Path, program: Sequence[str]) -> list[str]:
    """Return the command that traces what `program` does between its profiler marks into `report` (.nsys-rep)."""
    return [
        tool.program,
        "profile",
        "--trace",
        "cuda,nvtx",
        "--capture-range",
        "cudaProfilerApi",
        "--capture-range-end",
        "stop",
        "--cuda-graph-trace",
        "node",
        "--sample",
        "none",
        "--cpuctxsw",
        "none",
        "--force-overwrite",
        "true",
        "--output",
        str(report.with_suffix("")),
        *program,
    ]


def export(tool: Tool, report: Path, database: Path) -> list[str]:
    """Return the command that writes a report as an SQLite database."""
    return [
        tool.program,
        "export",
        "--type",
        "sqlite",
        "--force-overwrite",
        "true",
        "--output",
        str(database),
        str(report),
    ]


# CSV tables of `nsys stats` of all versions: columns are looked up by name, never by position.
#
# A header is a name and perhaps a unit, `Total Time (ns)`, `Avg (ns)`, `Time(%)`; a time without a unit is nanoseconds.

_COLUMN = re.compile(r"(?P<name>.*?)\s*(?:\((?P<unit>[^)]*)\))?", re.DOTALL)
# Our names of columns by the names in versions of nsys.
_NAMES = {
    "time": "share", "total time": "total", "total": "total", "instances": "count", "num calls": "count",
    "calls": "count", "count": "count", "operations": "count", "average": "mean", "avg": "mean", "med": "median",
    "median": "median", "minimum": "least", "min": "least", "maximum": "most", "max": "most", "stddev": "deviation",
    "name": "name", "operation": "name", "range": "name", "style": "style", "start": "start", "duration": "duration",
    "corrid": "correlation", "bytes": "bytes", "pid": "process", "tid": "thread", "device": "device", "strm": "stream",
}  # fmt: skip
# No time is longer than 30 days; no share is above one.
_LARGEST = {"share": 1.001, "duration": 30 * 86_400.0, "most": 30 * 86_400.0, "least": 30 * 86_400.0, "start": 4e9}
_TIMES = {"total", "mean", "median", "least", "most", "deviation", "start", "duration"}
_UNITS = dict.fromkeys(_TIMES, ("s", "B")) | {"start": ("s",), "duration": ("s",), "share": ("1",), "bytes": ("B",)}
_NUMBERS = _TIMES | {"share", "count", "correlation", "bytes"}
_OPERATIONS = {"HtoD": "Host-to-Device", "DtoH": "Device-to-Host", "DtoD": "Device-to-Device", "PtoP": "Peer-to-Peer"}
_LONG = {"B": "byte", "KB": "Kbyte", "MB": "Mbyte", "GB": "Gbyte", "MBps": "Mbyte/s", "MB/s": "Mbyte/s"}
_DEVICE = re.compile(r"\((\d+)\)\s*$", re.ASCII)  # `NVIDIA H200 (0)`
_SKIPPED = re.compile(r"SKIPPED: .* does not contain")


@dataclass(frozen=True)
class StatsTable:
    """Report of `nsys stats`, of a `kind`: rows by column, times in seconds, sizes in bytes, shares of one.

    `share` is of the listed rows, not of the wall time.
    """

    kind: str
    rows: tuple[dict[str, float | str], ...]


def read(path: Path | str) -> StatsTable:
    """Return the table in the file; raise ResultsError without a table. A report that nsys skipped is empty."""
    return parse(table_text_of(Path(path), "CSV of nsys stats"), str(path))


def parse(text: str, origin: str) -> StatsTable:
    """Return the table in the text, as `read` does, with any output of nsys before the table."""
    lines = io.StringIO(text).readlines()
    start = next((i for i, line in enumerate(lines) if _is_header(line)), None)
    if start is None:
        if _SKIPPED.search(text):
            return StatsTable("nothing", ())
        raise ResultsError(
            f"{origin}: no table of nsys stats: no line names columns such as 'Total Time (ns)' and 'Name'"
        )
    try:
        header, *body = csv.reader(lines[start:], strict=True)
    except csv.Error as error:
        raise ResultsError(f"{origin}: the table is cut or no CSV ({error})") from error
    columns = [_column(title) for title in header]
    twice = [name for name, count in Counter(name for name, _ in columns).items() if count > 1]
    if twice:
        raise ResultsError(f"{origin}: the table has two columns {twice[0]!r:.40}")
    rows = [row for row in body if len(row) == len(header)]
    if any(row and len(row) != len(header) for row in body):
        raise ResultsError(
            f"{origin}: a row has not the {count_text(len(header), 'field')} of the "
            "header; the table is cut or has words in it"
        )
    cells = (cell for row in rows for (name, _), cell in zip(columns, row, strict=True) if name != "name")
    mark = metrics.decimal_mark(cells, origin)
    table = tuple(
        {
            name: _cell(name, unit, cell, mark, f"{origin}: row {number}: {name}")
            for (name, unit), cell in zip(columns, row, strict=True)
        }
        for number, row in enumerate(rows, 1)
    )
    return StatsTable(_kind(header), table)


def timeline(table: StatsTable, origin: str) -> Timeline:
    """Return the timeline of a trace of the device (`cuda_gpu_trace`); it has no calls, so gaps have no cause.

    Raise ResultsError for any other table: a summary has no gaps.
    """
    if table.kind != "device trace":
        raise ResultsError(
            f"{origin}: a table of {table.kind} has no gaps; take nsys stats --report cuda_gpu_trace, "
            "or an SQLite export, which has the calls as well"
        )
    missing = {"start", "duration", "name"} - set(table.rows[0] if table.rows else ("start", "duration", "name"))
    if missing:
        raise ResultsError(f"{origin}: the trace has no column '{sorted(missing)[0]}'")
    names = {name: i for i, name in enumerate(dict.fromkeys(str(row["name"]) for row in table.rows))}
    work = [_work(row, names, f"{origin}: row {number}") for number, row in enumerate(table.rows, 1)]
    return timeline_of(work, (), (), names, source=origin, tool="nsys", notes=("a trace of the device has no calls",))


def _work(row: Mapping[str, Any], names: Mapping[str, int], place: str) -> tuple[int, ...]:
    """Return (start, end, device, kind, name, bytes, correlation, process), in nanoseconds."""
    kind = COPY if "memcpy" in row["name"] else SET if "memset" in row["name"] else KERNEL
    device = _DEVICE.search(str(row.get("device", "")))
    size = row.get("bytes") or 0
    number = whole_number(device[1], f"{place}: Device") if device else 0
    if number >= MOST_DEVICES or "" in (row["start"], row["duration"]):
        raise ResultsError(f"{place}: a start, a duration and a device below {MOST_DEVICES} are needed")
    start = round(row["start"] * 1e9)
    return start, start + round(row["duration"] * 1e9), number, kind, names[row["name"]], round(size), 0, 0


def _is_header(line: str) -> bool:
    names = {_column(title)[0] for title in line.split(",")}
    return "name" in names and bool(names & {"total", "duration"})


def _column(title: str) -> tuple[str, str]:
    match = _COLUMN.fullmatch(title.strip().strip('"'))
    assert match, "every title matches"
    name = _NAMES.get(match["name"].lower(), match["name"])
    return name, match["unit"] or ("ns" if name in _TIMES else "%" if name == "share" else "")


def _kind(header: Iterable[str]) -> str:
    """Return the kind of a table by the columns that only this kind has."""
    titles = {title.strip('"') for title in header}
    if any(title.startswith("Start") for title in titles):
        return "device trace" if "Strm" in titles else "host trace"
    if "Range" in titles:
        return "ranges"
    if "Operation" in titles or "Operations" in titles:
        return "sizes" if not any(title.startswith("Time") for title in titles) else "transfers"
    return "calls" if titles & {"Num Calls", "Calls"} else "kernels"


def _cell(name: str, unit: str, cell: str, mark: str, place: str) -> float | str:
    if name == "name":  # older versions write `[CUDA memcpy HtoD]`
        for old, new in _OPERATIONS.items():
            cell = cell.replace(f"[CUDA memcpy {old}]", f"[CUDA memcpy {new}]")
        return cell
    if not metrics.is_number(cell):
        if name in _NUMBERS and cell:
            raise ResultsError(f"{place} is {cell!r:.40}, not a number")
        return cell
    try:
        value, unit = metrics.to_si(metrics.number(cell, mark), _LONG.get(unit, unit))
    except ResultsError as error:
        raise ResultsError(f"{place}: {error}") from None
    if unit not in _UNITS.get(name, {unit}):
        raise ResultsError(f"{place} is in {unit!r:.20}, not in {' or '.join(_UNITS[name])}")
    if name in _NUMBERS and not 0 <= value <= _LARGEST.get(name, 1e18):
        raise ResultsError(f"{place} is {cell}, which cannot be")
    return value


# SQLite exports of schema 3.20 to 3.25, read in pieces, so that a gigabyte fits into memory.
#
# A table exists only if it has rows, and columns differ between versions, so both are looked up first. `globalPid` is
# the upper part of `globalTid`: the lower 24 bits are the thread's. Columns take the smallest type that holds them.

_OLDEST, _NEWEST = (3, 20), (3, 25)
_PIECE = 1 << 14  # rows
_ACTIVITY = "CUPTI_ACTIVITY_KIND_"
_WORK = {f"{_ACTIVITY}KERNEL": KERNEL, f"{_ACTIVITY}MEMCPY": COPY, f"{_ACTIVITY}MEMSET": SET,
         f"{_ACTIVITY}GRAPH_TRACE": GRAPH}  # fmt: skip
_CALLS, _RANGES, _OVERHEAD = f"{_ACTIVITY}RUNTIME", "NVTX_EVENTS", "PROFILER_OVERHEAD"
# Columns that a table needs to be read; a table is read under its newest name, such as `NVTX_EVENTS_V2`.
_NEEDED = {
    **{
        table: ("start", "end", "deviceId", "correlationId", *(["bytes"] if kind in (COPY, SET) else []))
        for table, kind in _WORK.items()
    },
    _CALLS: ("start", "end", "correlationId", "globalTid", "nameId"),
    _RANGES: ("start", "end", "eventType", "globalTid"),
    _OVERHEAD: ("start", "end"),
}
_NO_WORK = tuple(f"{_ACTIVITY}{kind}" for kind in ("SYNCHRONIZATION", "CUDA_EVENT", "OVERHEAD", "MEMORY"))
_PUSHED = "WHERE eventType IN (59, 60) AND end IS NOT NULL"  # push/pop and start/end, as nsys numbers its events
_CALL = {"start": "i8", "length": "length", "name": "name", "correlation": "i4", "process": "i2", "thread": "i2"}
_PIECE_OF_WORK = {"start": "i8", "length": "length", "device": "i1", "kind": "i1", "name": "name", "call": "i4"}
_RANGE = {"start": "i8", "end": "i8", "name": "name", "process": "i2", "thread": "i2"}


def read_export(path: Path | str) -> Timeline:
    """Return the timeline in the export; raise ResultsError if it is unreadable or has no work of a device."""
    if not Path(path).is_file():
        raise ResultsError(f"{path}: no such export")
    try:
        database = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        with closing(database):
            database.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
            return _Export(Path(path), database).timeline()
    except sqlite3.Error as error:
        raise ResultsError(f"{path}: not a readable SQLite export of nsys ({' '.join(str(error).split())})") from error
    except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError) as error:
        raise ResultsError(f"{path}: damaged export of nsys ({type(error).__name__}: {error})") from error


class _Tables:
    """Tables of one open file, with the `columns` of each."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        listed = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        self.columns = {name: {row[1] for row in database.execute(f'PRAGMA table_info("{name}")')} for name in listed}

    def names(self) -> tuple[dict[str, str], list[str]]:
        """Return the newest version of each known table by its base name, and tables of events that are not read."""
        chosen: dict[str, str] = {}
        for base, needed in _NEEDED.items():
            versions = {
                int(match[1]): name for name in self.columns if (match := re.fullmatch(rf"{base}_?V?(\d+)", name))
            }
            newer = [
                name for _, name in sorted(versions.items()) if {*needed} <= self.columns[name] and self.count(name)
            ]
            chosen[base] = newer[-1] if newer else base
        unread: list[str] = []
        for name in set(self.columns) - set(chosen.values()):
            is_work = name.startswith(_ACTIVITY) and {"start", "end", "deviceId"} <= self.columns[name]
            if name.startswith(tuple(chosen)) or (is_work and not name.startswith(_NO_WORK)):
                unread.append(name)
        return chosen, [name for name in sorted(unread) if name.isidentifier() and self.count(name)]

    def value(self, query: str) -> Any:
        """Return the single value of a query."""
        return self.database.execute(query).fetchone()[0]

    def count(self, table: str, condition: str = "") -> int:
        """Return the number of rows; 0 if the table does not exist."""
        return self.value(f"SELECT COUNT(*) FROM {table} {condition}") if table in self.columns else 0

    def pieces(self, table: str, terms: Sequence[str]) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the rows of integers piece by piece, with their positions in the table."""
        rows = self.database.execute(f"SELECT {', '.join(terms)} FROM {table}")
        for start, batch in _batches(rows):
            flat = np.fromiter(chain.from_iterable(batch), np.int64, len(batch) * len(terms))
            yield slice(start, start + len(batch)), flat.reshape(-1, len(terms))

    def term(self, table: str, column: str, otherwise: str = "0") -> str:
        """Return the column in SQL, `otherwise` if it is null or absent."""
        return f"COALESCE({column}, {otherwise})" if column in self.columns[table] else otherwise


class _Names:
    """Every string of the file by its index in `texts`. Texts that only ranges have get ids below -1 (`inline`)."""

    def __init__(self, tables: _Tables, path: Path, ranges: str) -> None:
        self._path = path
        known = (
            dict(tables.database.execute("SELECT id, value FROM StringIds")) if "StringIds" in tables.columns else {}
        )
        self.inline: dict[str, int] = {}
        if "text" in tables.columns.get(ranges, ()):
            rows = tables.database.execute(f"SELECT DISTINCT text FROM {ranges} {_PUSHED} AND text IS NOT NULL")
            self.inline = {text: -2 - i for i, (text,) in enumerate(rows)}
        strings = {**known, **{number: text for text, number in self.inline.items()}}
        self.texts = tuple(strings.values())
        ids = np.fromiter(strings, np.int64, len(strings))
        self._order = np.argsort(ids, kind="stable").astype(np.int32)
        self._ids = ids[self._order]

    def places(self, ids: np.ndarray) -> np.ndarray:
        """Return the indices of the names with these ids, -1 for the id -1; raise ResultsError for an unknown id."""
        nearest = np.minimum(np.searchsorted(self._ids, ids), max(len(self._ids) - 1, 0))
        known = self._ids[nearest] == ids if len(self._ids) else np.zeros(len(ids), bool)
        lost = ids[~known & (ids != -1)]
        if len(lost):
            raise ResultsError(f"{self._path}: a row refers to name {lost[0]}, which StringIds lacks; export it again")
        return np.where(known, self._order[nearest], -1).astype(np.int32) if known.any() else np.full(len(ids), -1)


class _Export:
    """Reader of one open file into a timeline: its calls, its work and its ranges."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self._path, self._db, self._tables = path, database, _Tables(database)
        self._columns = self._tables.columns
        self._processes, self._threads = {}, {}
        self._caller: Caller | None = None
        self._checks = Checks(database, self._columns, str(path))
        named, self._unread = self._tables.names()
        self._kinds = {named[table]: kind for table, kind in _WORK.items()}
        self._kernels, self._called, self._ranged, self._overhead = (
            named[table] for table in (f"{_ACTIVITY}KERNEL", _CALLS, _RANGES, _OVERHEAD)
        )

    def timeline(self) -> Timeline:
        if "META_DATA_EXPORT" not in self._columns:
            raise ResultsError(f"{self._path}: not an export of nsys: it has no META_DATA_EXPORT")
        row = self._db.execute("SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_SCHEMA_VERSION'").fetchone()
        version = row[0] if row and isinstance(row[0], str) else "unknown"
        self._check()
        self._refuse_mixed()
        self._names = _Names(self._tables, self._path, self._ranged)
        calls = self._calls()
        work = self._work()
        if not len(work):
            unread = f"; {', '.join(self._unread)} cannot be read" if self._unread else "; was CUDA traced (-t cuda)?"
            raise ResultsError(f"{self._path}: no kernel, copy, set or graph in the export{unread}")
        ranges, overhead = self._ranges(), 0
        if {"start", "end"} <= self._columns.get(self._overhead, set()):
            overhead = self._tables.value(f'SELECT COALESCE(SUM("end" - start), 0) FROM {self._overhead}')
        unread = tuple(
            f"table {name} was not read: {count_text(self._tables.count(name), 'row')}" for name in self._unread
        )
        facts = {"overhead": overhead, "notes": (*_untried(version), *unread)}
        return Timeline(work, calls, ranges, self._names.texts, str(self._path), "nsys", version, **facts)

    def _check(self) -> None:
        """Refuse rows that no correct export has: they would become wrong numbers, or errors without a place."""
        state = self._tables.value("PRAGMA quick_check(1)")
        if state != "ok":
            raise ResultsError(f"{self._path}: damaged as an SQLite file ({' '.join(state.split())}); export it again")
        for table, base in zip(self._kinds, _WORK, strict=True):
            self._checks.spans(table, _NEEDED[base])
        self._checks.spans(self._called, _NEEDED[_CALLS])
        self._checks.events(self._ranged)
        self._checks.spans(self._ranged, ("globalTid",), _PUSHED)
        if {"start", "end"} <= self._columns.get(self._overhead, set()):
            self._checks.spans(self._overhead)
        self._checks.strings((*self._kinds, self._called))

    def _refuse_mixed(self) -> None:
        """Refuse several processes if kernels do not name their process."""
        kernels = self._columns.get(self._kernels, {"globalPid"})
        self._anonymous = "globalPid" not in kernels
        if self._anonymous and "globalTid" in self._columns.get(self._called, ()):
            processes = self._tables.value(f"SELECT COUNT(DISTINCT globalTid >> 24) FROM {self._called}")
            if processes > 1:
                raise ResultsError(
                    f"{self._path}: {count_text(processes, 'process', 'processes')}, and kernels "
                    "that do not say whose they are; export again with a newer nsys"
                )

    def _calls(self) -> Calls:
        """Return the calls in the order of their start; set `_caller`, which finds the calls of work."""
        count = self._tables.count(self._called)
        columns = self._empty(_CALL, count, [self._called] if count else [])
        if count:
            ids = (("nameId", "-1"), ("correlationId", "0"), ("globalTid", "0"))
            terms = ["start", '"end" - start', *(self._tables.term(self._called, *column) for column in ids)]
            for where, piece in self._tables.pieces(self._called, terms):
                columns["start"][where], columns["length"][where] = piece[:, 0], piece[:, 1]
                columns["name"][where] = self._names.places(piece[:, 2])
                columns["correlation"][where] = piece[:, 3] & 0x7FFFFFFF
                columns["process"][where] = self._process(piece[:, 4] >> 24)
                columns["thread"][where] = _small(piece[:, 4], self._threads)
        _sort(columns)
        self._caller = Caller(columns["process"], columns.pop("correlation"))
        return Calls(**columns, outer=self._caller.outer())

    def _work(self) -> Work:
        counts = {table: self._tables.count(table) for table in self._kinds}
        present = [table for table, count in counts.items() if count]
        columns, sizes, start = self._empty(_PIECE_OF_WORK, sum(counts.values()), present), [], 0
        for table in present:
            columns["kind"][start : start + counts[table]] = self._kinds[table]
            sizes += self._fill_work(columns, table, start)
            start += counts[table]
        self._caller = None  # frees its memory for sorting
        sized = np.concatenate(sizes) if sizes else np.zeros(0, np.int64)
        before = np.flatnonzero(is_transfer(columns["kind"]))
        order = _sort(columns)
        if order is not None:
            sized = sized[np.searchsorted(before, order[is_transfer(columns["kind"])])]
        return Work(**columns, bytes=sized)

    def _fill_work(self, columns: dict[str, np.ndarray], table: str, start: int) -> Iterator[np.ndarray]:
        """Fill the columns from `start` on with the table's rows; yield the bytes of each piece of copies and sets."""
        owner = "globalPid" if "globalPid" in self._columns[table] else "globalTid"
        term = partial(self._tables.term, table)
        name = term("shortName", term("demangledName", "-1"))
        terms = ["start", '"end" - start', term("deviceId"), name, term("correlationId"), term(owner)]
        sized = self._kinds[table] in (COPY, SET)
        for where, piece in self._tables.pieces(table, terms + [term("bytes")] * sized):
            where = slice(where.start + start, where.stop + start)
            columns["start"][where], columns["length"][where] = piece[:, 0], piece[:, 1]
            columns["device"][where], columns["name"][where] = piece[:, 2], self._names.places(piece[:, 3])
            process = self._process(piece[:, 5] >> 24)
            assert self._caller is not None, "calls are read before work"
            columns["call"][where] = self._caller.of(process, piece[:, 4] & 0x7FFFFFFF)
            if sized:
                yield piece[:, 6].copy()

    def _ranges(self) -> Ranges:
        count = self._tables.count(self._ranged, _PUSHED)
        columns = self._empty(_RANGE, count, [])
        if count:
            text = "text" if self._names.inline else "NULL"
            terms = [
                "start",
                '"end"',
                self._tables.term(self._ranged, "textId", "-1"),
                self._tables.term(self._ranged, "globalTid"),
                text,
            ]
            rows = self._db.execute(f"SELECT {', '.join(terms)} FROM {self._ranged} {_PUSHED}")
            inline = self._names.inline
            for start, batch in _batches(rows):
                where = slice(start, start + len(batch))
                piece = np.array([row[:2] + (inline.get(row[4], row[2]), row[3]) for row in batch], np.int64)
                columns["start"][where], columns["end"][where] = piece[:, 0], piece[:, 1]
                columns["name"][where] = self._names.places(piece[:, 2])
                columns["process"][where] = self._process(piece[:, 3] >> 24)
                columns["thread"][where] = _small(piece[:, 3], self._threads)
        return Ranges(**columns)

    def _empty(self, types: Mapping[str, str], count: int, tables: Iterable[str]) -> dict[str, np.ndarray]:
        """Return columns to be filled; lengths take four bytes if the longest fits."""
        longest = [self._tables.value(f'SELECT MAX("end" - start) FROM {table}') for table in tables]
        small = {
            "length": "u4" if max((length or 0 for length in longest), default=0) < 1 << 32 else "i8",
            "name": "i2" if len(self._names.texts) < 1 << 15 else "i4",
        }
        return {name: np.zeros(count, small.get(kind, kind)) for name, kind in types.items()}

    def _process(self, numbers: np.ndarray) -> np.ndarray:
        return np.zeros(len(numbers), np.int16) if self._anonymous else _small(numbers, self._processes)


def _small(numbers: np.ndarray, known: dict[int, int]) -> np.ndarray:
    """Return the numbers renumbered in the order in which they occur; `known` keeps the numbering."""
    if (numbers == numbers[0]).all():
        return np.full(len(numbers), known.setdefault(int(numbers[0]), len(known)), np.int16)
    distinct, where = np.unique(numbers, return_inverse=True)
    if len(distinct) + len(known) > MOST_THREADS:
        raise ValueError(f"more than {MOST_THREADS} processes or threads")
    return np.array([known.setdefault(int(number), len(known)) for number in distinct], np.int16)[where]


def _batches(rows: sqlite3.Cursor) -> Iterator[tuple[int, list[Any]]]:
    """Yield the cursor's rows in batches, with the index of the first row."""
    start = 0
    for batch in iter(lambda: rows.fetchmany(_PIECE), []):
        yield start, batch
        start += len(batch)


def _sort(columns: dict[str, np.ndarray]) -> np.ndarray | None:
    """Sort the columns in place by start, one at a time to save memory; return the order, None if it was sorted."""
    start = columns["start"]
    if len(start) < 2 or (start[1:] >= start[:-1]).all():
        return None
    order = np.argsort(start, kind="stable").astype(np.int32)
    for name in columns:
        columns[name] = columns[name][order]
    return order


def _untried(version: str) -> tuple[str, ...]:
    number = tuple(int(part) for part in re.findall(r"[0-9]{1,6}", version)[:2])
    if _OLDEST <= number <= _NEWEST:
        return ()
    tried = " to ".join(".".join(map(str, schema)) for schema in (_OLDEST, _NEWEST))
    return (f"schema {version} is none of those this reader was tried on, {tried}",)

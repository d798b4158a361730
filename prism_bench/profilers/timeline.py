"""Timelines: work on devices, the host calls that enqueued it, and named ranges; their file; checks of nsys exports."""

import json
import sqlite3
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from prism_bench.errors import ResultsError
from prism_bench.io.documents import json_text

# Columns are arrays, so that millions of rows fit into memory. Times are nanoseconds on one clock. Work and calls are
# in the order of their start. A call belongs to a piece of work if correlation id AND process agree, because all
# processes number their calls alike (`Caller` joins them).

KERNEL, COPY, SET, GRAPH = 0, 1, 2, 3
NO_CALL = -1


@dataclass(frozen=True)
class Work:
    """Kernels, copies, sets, and executions of graphs that were traced as a whole.

    Each has `start` (int64) and `length`; `name` indexes the timeline's names, `call` its calls (-1: unknown). `bytes`
    has only the sizes of copies and sets, in their order.
    """

    start: np.ndarray
    length: np.ndarray
    device: np.ndarray
    kind: np.ndarray
    name: np.ndarray
    call: np.ndarray
    bytes: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    @property
    def transfers(self) -> np.ndarray:
        """Return the indices that `bytes` belong to."""
        return np.flatnonzero(is_transfer(self.kind))


@dataclass(frozen=True)
class Calls:
    """Calls of the CUDA runtime and driver. `outer` is false for a driver call inside a recorded runtime call."""

    start: np.ndarray
    length: np.ndarray
    name: np.ndarray
    process: np.ndarray
    thread: np.ndarray
    outer: np.ndarray

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Ranges:
    """Named ranges (NVTX) of a thread; `name` indexes the timeline's names."""

    start: np.ndarray
    end: np.ndarray
    name: np.ndarray
    process: np.ndarray
    thread: np.ndarray

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Timeline:
    """Timeline of one capture.

    `source` is the file or process, `tool` and `version` made it; `notes` are its limitations as sentences.
    """

    work: Work
    calls: Calls
    ranges: Ranges
    names: tuple[str, ...]
    source: str
    tool: str
    version: str | None = None
    overhead: int = 0
    notes: tuple[str, ...] = field(default=())

    def named(self, *parts: str) -> np.ndarray:
        """Return a mask over `names`: whether a name contains one of the lower-case parts, in any case."""
        return np.array([any(part in name.lower() for part in parts) for name in self.names], bool)


class Caller:
    """Index from process and correlation id to the call that enqueued a piece of work; of nested calls, the outer."""

    def __init__(self, process: np.ndarray, correlation: np.ndarray) -> None:
        """Index calls in the order of their start: a runtime call comes before the driver call inside it."""
        self._keys, self._order = _keys(process, correlation), None
        if len(self._keys) > 1 and not (self._keys[1:] >= self._keys[:-1]).all():
            order = np.argsort(self._keys, kind="stable")
            self._keys, self._order = self._keys[order], order.astype(np.int32)

    def of(self, process: np.ndarray, correlation: np.ndarray) -> np.ndarray:
        """Return the index of each piece of work's call; NO_CALL without a call."""
        wanted = _keys(process, correlation)
        if not len(self._keys):
            return np.full(len(wanted), NO_CALL, np.int32)
        place = np.searchsorted(self._keys, wanted)
        place[place == len(self._keys)] = 0
        call = place if self._order is None else self._order[place]
        return np.where(self._keys[place] == wanted, call, NO_CALL).astype(np.int32)

    def outer(self) -> np.ndarray:
        """Return a mask of the calls: whether it is the first of its id."""
        first = np.ones(len(self._keys), bool)
        first[1:] = self._keys[1:] != self._keys[:-1]
        if self._order is None:
            return first
        outer = np.empty_like(first)
        outer[self._order] = first
        return outer


def is_transfer(kinds: np.ndarray) -> np.ndarray:
    """Return a mask of the kinds of work: whether it is a copy or a set."""
    return (kinds == COPY) | (kinds == SET)


def _keys(process: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    return (process.astype(np.int64) << 32) | correlation


def columns(rows: Iterable[Sequence[int]], names: str) -> dict[str, np.ndarray]:
    """Return columns of these names (separated by spaces) from rows of integers, sorted by the first column."""
    table = np.array(list(rows), np.int64).reshape(-1, len(names.split()))
    table = table[np.argsort(table[:, 0], kind="stable")]
    return {name: table[:, i] for i, name in enumerate(names.split())}


def timeline_of(
    work: Iterable[Sequence[int]],
    calls: Iterable[Sequence[int]],
    ranges: Iterable[Sequence[int]],
    names: Iterable[str],
    **facts: Any,
) -> Timeline:
    """Return a timeline from rows, in nanoseconds, with exclusive ends.

    Work is (start, end, device, kind, name, bytes, correlation, process), calls are (start, end, name, correlation,
    process, thread), ranges (start, end, name, process, thread).
    """
    called = columns(calls, "start end name correlation process thread")
    done = columns(work, "start end device kind name bytes correlation process")
    caller = Caller(called["process"], called["correlation"])
    sized = done["bytes"][is_transfer(done["kind"])]
    return Timeline(
        Work(
            done["start"],
            done["end"] - done["start"],
            done["device"],
            done["kind"],
            done["name"],
            caller.of(done["process"], done["correlation"]),
            sized,
        ),
        Calls(
            called["start"],
            called["end"] - called["start"],
            called["name"],
            called["process"],
            called["thread"],
            caller.outer(),
        ),
        Ranges(**columns(ranges, "start end name process thread")),
        tuple(names),
        **facts,
    )


# Checks of the rows of an SQLite export of nsys before they are read: SQLite accepts any value in any column.

_LATEST = (1 << 62) - 1  # differences of times fit into eight bytes; nanoseconds since 1970 are below 2^61
LONGEST = 30 * 86_400 * 10**9  # ns of one piece of work or call, so that sums of them fit as well
_MOST_BYTES = 1 << 50
MOST_DEVICES, MOST_THREADS = 128, 1 << 15


@dataclass(frozen=True)
class _ColumnRule:
    """Rule of a column's values: an SQL condition, and the `expected` value as text."""

    column: str
    condition: str
    expected: str


def _integer(column: str, least: int, most: int, expected: str) -> _ColumnRule:
    name = f'"{column}"'
    return _ColumnRule(column, f"typeof({name}) = 'integer' AND {name} BETWEEN {least} AND {most}", expected)


def _or_null(rule: _ColumnRule) -> _ColumnRule:
    return _ColumnRule(rule.column, f'"{rule.column}" IS NULL OR ({rule.condition})', f"{rule.expected}, or NULL")


_NUMBER = "a whole number"
_SPAN = (
    _integer("start", -_LATEST, _LATEST, "a time in nanoseconds"),
    _integer("end", -_LATEST, _LATEST, "a time in nanoseconds"),
    _ColumnRule("end", '"end" >= start', "no time before its start"),
    _ColumnRule("end", f'"end" - start <= {LONGEST}', "a time at most 30 days after its start"),
)
_IDS = tuple(_integer(name, -(1 << 63), (1 << 63) - 1, _NUMBER) for name in ("correlationId", "globalPid", "globalTid"))
_NAME_IDS = ("shortName", "demangledName", "nameId", "textId")
_NAMES = tuple(_or_null(_integer(name, 0, _LATEST, "the id of a name")) for name in _NAME_IDS)
_RULES = (
    *_SPAN,
    *_IDS,
    *_NAMES,
    _integer("deviceId", 0, MOST_DEVICES - 1, f"a device from 0 to {MOST_DEVICES - 1}"),
    _integer("bytes", 0, _MOST_BYTES, "a number of bytes up to 2^50"),
    _ColumnRule("text", "typeof(text) IN ('text', 'null')", "text, or NULL"),
)
_EVENT = (_integer("eventType", 0, 1 << 31, "a kind of event"),)
_STRINGS = (_integer("id", 0, _LATEST, "a number from 0 on"), _ColumnRule("value", "typeof(value) = 'text'", "text"))


class Checks:
    """Checks of the tables of one export, given its columns by table; errors name the file `origin`."""

    def __init__(self, database: sqlite3.Connection, columns: Mapping[str, set[str]], origin: str) -> None:
        self._database, self._columns, self._origin = database, columns, origin

    def spans(self, table: str, needed: Iterable[str] = (), condition: str = "") -> None:
        """Check every row of a table and that it has columns start, end and `needed`; an empty table is correct."""
        if table not in self._columns or not self._used(table):
            return
        self._need(table, ("start", "end", *needed))
        self._rows(table, [rule for rule in _RULES if rule.column in self._columns[table]], condition)

    def strings(self, wanted: Iterable[str]) -> None:
        """Check the table of names, which must exist if one of the tables `wanted` refers to names by id."""
        columns = self._columns.get("StringIds")
        if columns is None:
            referring = [table for table in wanted if set(_NAME_IDS) & self._columns.get(table, set())]
            for table in filter(self._used, referring):
                raise ResultsError(f"{self._origin}: no table StringIds with the names of {table}; export it again")
            return
        if not {"id", "value"} <= columns:
            raise ResultsError(f"{self._origin}: StringIds has not the columns 'id' and 'value'; export it again")
        self._rows("StringIds", _STRINGS, "")
        twice = self._database.execute("SELECT id FROM StringIds GROUP BY id HAVING COUNT(*) > 1 LIMIT 1").fetchone()
        if twice:
            raise ResultsError(f"{self._origin}: StringIds has two names of id {twice[0]}; export it again")

    def events(self, table: str) -> None:
        """Check the kind of every event of the table, and that it has the columns that distinguish ranges."""
        if table in self._columns:
            self._need(table, ("eventType", "start", "end"))
            self._rows(table, _EVENT, "")

    def _need(self, table: str, needed: Iterable[str]) -> None:
        missing = [name for name in needed if name not in self._columns[table]]
        if missing:
            raise ResultsError(f"{self._origin}: {table} has no column '{missing[0]}'; export it again")

    def _used(self, table: str) -> bool:
        return self._database.execute(f'SELECT 1 FROM "{table}" LIMIT 1').fetchone() is not None

    def _rows(self, table: str, rules: Iterable[_ColumnRule], condition: str) -> None:
        """Raise ResultsError for the first row that breaks a rule."""
        rules = list(rules)
        sound = " AND ".join(f"({rule.condition})" for rule in rules)
        where = f"{condition} AND" if condition else "WHERE"
        verdicts = ", ".join(f"({rule.condition})" for rule in rules)
        values = ", ".join(f'"{rule.column}"' for rule in rules)
        broken = self._database.execute(
            f'SELECT rowid, {verdicts}, {values} FROM "{table}" {where} COALESCE(NOT ({sound}), 1) LIMIT 1'
        ).fetchone()
        if broken is None:
            return
        row, holds, cells = broken[0], broken[1 : 1 + len(rules)], broken[1 + len(rules) :]
        rule, value = next((rule, value) for rule, kept, value in zip(rules, holds, cells, strict=True) if not kept)
        shown = "NULL" if value is None else f"{value!r:.40}"
        raise ResultsError(f"{self._origin}: {table}, row {row}: '{rule.column}' is {shown}, not {rule.expected}")


# A timeline in one file (NumPy's .npz), so that one process can record it and another can read it.

_LARGEST = 256_000_000  # bytes of arrays, unpacked: some five million kernels with their calls
_PARTS = {"work": Work, "calls": Calls, "ranges": Ranges}


def save(timeline: Timeline, path: Path) -> None:
    """Write the timeline to `path`."""
    arrays = {f"{part}.{name}": column for part in _PARTS for name, column in vars(getattr(timeline, part)).items()}
    facts = {name: value for name, value in vars(timeline).items() if name not in _PARTS}
    with path.open("wb") as file:
        np.savez_compressed(file, facts=json_text(facts), **arrays)


def load(path: Path) -> Timeline:
    """Return the timeline in `path`; raise ResultsError if it is no timeline, damaged, or too large for memory."""
    try:
        with zipfile.ZipFile(path) as packed:  # each member declares its size, and NumPy reads no more than that
            size = sum(member.file_size for member in packed.infolist())
        if size > _LARGEST:
            raise ValueError(f"{size / 1e6:.0f} MB of data; the limit is {_LARGEST / 1e6:.0f} MB")
        with np.load(path, allow_pickle=False) as arrays:
            parts = {part: kind(**_columns(arrays, part)) for part, kind in _PARTS.items()}
            facts = json.loads(str(arrays["facts"]))
        timeline = Timeline(**parts, **{**facts, "names": tuple(facts["names"]), "notes": tuple(facts["notes"])})
        _refuse_broken(timeline)
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, MemoryError) as error:
        raise ResultsError(f"{path}: not a recorded timeline ({error})") from error
    except (ArithmeticError, AttributeError, LookupError, RecursionError, RuntimeError, TypeError, ValueError) as error:
        raise ResultsError(f"{path}: not a recorded timeline ({type(error).__name__}: {error})") from error
    return timeline


def _columns(arrays: Mapping[str, np.ndarray], part: str) -> dict[str, np.ndarray]:
    return {key.removeprefix(f"{part}."): arrays[key] for key in arrays if key.startswith(f"{part}.")}


def _refuse_broken(timeline: Timeline) -> None:
    """Raise ValueError for columns that do not fit together, and for impossible times and places."""
    _check_columns(timeline.work, bytes=len(timeline.work.transfers))
    _check_columns(timeline.calls)
    _check_columns(timeline.ranges)
    names, calls = len(timeline.names), len(timeline.calls)
    for part in (timeline.work, timeline.calls, timeline.ranges):
        _within(part.name, -1, names - 1, "a name")
        _within(part.start, -_LATEST, _LATEST, "a start")
    for part in (timeline.work, timeline.calls):
        _within(part.length, 0, LONGEST, "a length")
    _within(timeline.ranges.end - timeline.ranges.start, 0, LONGEST, "a range's length")
    _within(timeline.work.call, -1, calls - 1, "a call")
    _within(timeline.work.kind, KERNEL, GRAPH, "a kind of work")
    _within(timeline.work.device, 0, MOST_DEVICES - 1, "a device")
    _within(timeline.work.bytes, 0, 1 << 50, "a number of bytes")
    if not isinstance(timeline.overhead, int) or timeline.overhead < 0:
        raise ValueError("the overhead is no number of nanoseconds")
    texts = (*timeline.names, *timeline.notes, timeline.source, timeline.tool, timeline.version or "")
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a name is no text")


def _check_columns(part: Work | Calls | Ranges, **lengths: int) -> None:
    """Require columns of whole numbers, each as long as the part unless `lengths` has another length for it."""
    for name, column in vars(part).items():
        wanted = lengths.get(name, len(part))
        if column.ndim != 1 or column.dtype.kind not in "iub" or len(column) != wanted:
            raise ValueError(f"column '{name}' is not one of {wanted} whole numbers")


def _within(column: np.ndarray, least: int, most: int, name: str) -> None:
    if len(column) and not (least <= int(column.min()) and int(column.max()) <= most):
        raise ValueError(f"{name} is outside of {least} to {most}")

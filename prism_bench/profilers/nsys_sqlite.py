"""Nsight Systems' SQLite exports, of schema 3.20 to 3.25, into a timeline; in pieces, so that a gigabyte fits.

Tables exist only where they have rows, and columns come and go, so both are asked for first. `globalPid` is the upper
part of `globalTid`: the lower 24 bits are the thread's.
"""

import sqlite3
from itertools import chain
from pathlib import Path

import numpy as np

from prism_bench.errors import ResultsError
from prism_bench.profilers.timeline import (
    CALL_TYPES,
    COPY,
    KERNEL,
    RANGE_TYPES,
    SET,
    WORK_TYPES,
    Calls,
    Ranges,
    Timeline,
    Work,
    empty,
)  # fmt: skip

OLDEST, NEWEST = (3, 20), (3, 25)
_PIECE = 1 << 16
_WORK = {"CUPTI_ACTIVITY_KIND_KERNEL": KERNEL, "CUPTI_ACTIVITY_KIND_MEMCPY": COPY, "CUPTI_ACTIVITY_KIND_MEMSET": SET}
_CALLS, _RANGES, _GRAPHS = "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_PUSHED = (59, 60)  # push/pop and start/end, as nsys numbers its events


def read(path: Path | str) -> Timeline:
    """The timeline in the export; a ResultsError where it cannot be read or holds no work of a device."""
    if not Path(path).is_file():
        raise ResultsError(f"{path}: no such export")
    try:
        return _Export(Path(path)).timeline()
    except sqlite3.DatabaseError as error:
        raise ResultsError(f"{path}: not a readable SQLite export of nsys ({error})") from error


class _Export:
    """One open file: which tables and columns it has, and what process and string ids in it stand for."""

    def __init__(self, path):
        self._path = path
        self._db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        listed = [row[0] for row in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        self._columns = {
            table: {row[1] for row in self._db.execute(f'PRAGMA table_info("{table}")')} for table in listed
        }
        self._processes: dict[int, int] = {}
        self._names: dict[int, int] = {}

    def timeline(self):
        version = self._schema()
        work = self._work()
        if not len(work):
            raise ResultsError(f"{self._path}: no kernel, copy or set in the export; was CUDA traced (-t cuda)?")
        calls = self._calls()
        ranges = self._ranges()
        self._db.close()
        return Timeline(
            work,
            calls,
            ranges,
            self._texts(),
            str(self._path),
            "nsys",
            version,
            self._graphs,
            self._overhead,
            self._notes,
        )

    def _schema(self):
        if "META_DATA_EXPORT" not in self._columns:
            raise ResultsError(f"{self._path}: not an export of nsys: it has no META_DATA_EXPORT")
        row = self._db.execute("SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_SCHEMA_VERSION'").fetchone()
        version = row[0] if row else "unknown"
        number = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        self._notes = () if OLDEST <= number <= NEWEST else (
            f"schema {version} is none of those this reader was tried on, {_dotted(OLDEST)} to {_dotted(NEWEST)}",
        )  # fmt: skip
        self._graphs, self._overhead = self._count(_GRAPHS), self._overhead_time()
        self._string_ids = (
            dict(self._db.execute("SELECT id, value FROM StringIds")) if "StringIds" in self._columns else {}
        )
        self._refuse_mixed()
        return version

    def _count(self, table):
        return self._db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] if table in self._columns else 0

    def _overhead_time(self):
        if not {"start", "end"} <= self._columns.get("PROFILER_OVERHEAD", set()):
            return 0
        return self._db.execute("SELECT COALESCE(SUM(end - start), 0) FROM PROFILER_OVERHEAD").fetchone()[0]

    def _work(self):
        counts = {table: self._count(table) for table in _WORK}
        together = empty(WORK_TYPES, sum(counts.values()))
        first = 0
        for table, count in counts.items():
            if count:
                self._fill(together, first, table, self._work_terms(table))
                first += count
        return Work(**together)

    def _filled(self, table, types, terms, condition=""):
        count = self._db.execute(f"SELECT COUNT(*) FROM {table} {condition}").fetchone()[0]
        found = empty(types, count)
        self._fill(found, 0, table, terms, condition)
        return found

    def _fill(self, into, first, table, terms, condition=""):
        """Put the table's rows into the columns from `first` on, a piece at a time."""
        rows = self._db.execute(f"SELECT {', '.join(terms.values())} FROM {table} {condition}")
        for piece in iter(lambda: rows.fetchmany(_PIECE), []):
            flat = np.fromiter(chain.from_iterable(piece), np.int64, len(piece) * len(terms)).reshape(-1, len(terms))
            for i, name in enumerate(terms):
                into[name][first : first + len(piece)] = self._small(name, flat[:, i])
            first += len(piece)

    def _small(self, column, values):
        """Ids of processes and strings as small numbers, in the order in which they are met."""
        known = {"process": self._processes, "name": self._names}.get(column)
        if known is None:
            return values & 0x7FFFFFFF if column == "correlation" else values
        distinct, where = np.unique(values, return_inverse=True)
        return np.array([known.setdefault(int(one), len(known)) for one in distinct], np.int64)[where]

    def _term(self, table, column, otherwise="0"):
        return f"COALESCE({column}, {otherwise})" if column in self._columns[table] else otherwise

    def _process(self, table):
        """Where kernels do not say whose they are, there is but one process (`_refuse_mixed`), whatever its number."""
        if self._anonymous:
            return "0"
        return "COALESCE(globalPid, 0) >> 24" if "globalPid" in self._columns[table] else "COALESCE(globalTid, 0) >> 24"

    def _refuse_mixed(self):
        kernels = self._columns.get("CUPTI_ACTIVITY_KIND_KERNEL", {"globalPid"})
        self._anonymous = "globalPid" not in kernels
        if self._anonymous and "globalTid" in self._columns.get(_CALLS, ()):
            processes = self._db.execute(f"SELECT COUNT(DISTINCT globalTid >> 24) FROM {_CALLS}").fetchone()[0]
            if processes > 1:
                raise ResultsError(f"{self._path}: {processes} processes, and kernels that do not say whose they are; "
                                   "export again with a newer nsys")  # fmt: skip

    def _work_terms(self, table):
        name = self._term(table, "shortName", self._term(table, "demangledName", "-1"))
        return {
            "start": "start", "end": '"end"', "device": self._term(table, "deviceId"), "kind": str(_WORK[table]),
            "name": name, "bytes": self._term(table, "bytes"), "correlation": self._term(table, "correlationId"),
            "process": self._process(table),
        }  # fmt: skip

    def _calls(self):
        if _CALLS not in self._columns:
            return Calls(**empty(CALL_TYPES))
        terms = {
            "start": "start", "end": '"end"', "name": self._term(_CALLS, "nameId", "-1"),
            "correlation": self._term(_CALLS, "correlationId"), "process": self._process(_CALLS),
            "thread": self._thread(_CALLS),
        }  # fmt: skip
        return Calls(**self._filled(_CALLS, CALL_TYPES, terms))

    def _thread(self, table):
        return "COALESCE(globalTid, 0) & 16777215" if "globalTid" in self._columns[table] else "0"

    def _ranges(self):
        if _RANGES not in self._columns:
            return Ranges(**empty(RANGE_TYPES))
        terms = {"start": "start", "end": '"end"', "name": self._own_texts(), "process": self._process(_RANGES),
                 "thread": self._thread(_RANGES)}  # fmt: skip
        return Ranges(**self._filled(_RANGES, RANGE_TYPES, terms, f"WHERE eventType IN {_PUSHED} AND end IS NOT NULL"))

    def _own_texts(self):
        """The term for a range's text: registered strings have an id; the others get one here, below -1."""
        registered = self._term(_RANGES, "textId", "NULL")
        if "text" not in self._columns[_RANGES]:
            return f"COALESCE({registered}, -1)"
        self._db.execute("CREATE TEMP TABLE own (id INTEGER PRIMARY KEY, text TEXT UNIQUE)")
        self._db.execute(f"INSERT INTO own (text) SELECT DISTINCT text FROM {_RANGES} WHERE text IS NOT NULL")
        self._string_ids |= dict(self._db.execute("SELECT -1 - id, text FROM own"))
        return f"COALESCE({registered}, (SELECT -1 - id FROM own WHERE own.text = {_RANGES}.text), -1)"

    def _texts(self):
        return tuple(self._string_ids.get(one, "unnamed") for one in self._names)


def _dotted(version):
    return ".".join(map(str, version))

"""Checks of the rows of an SQLite export of nsys before they are read: SQLite puts any value into any column."""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prism_bench.errors import ResultsError

LATEST = (1 << 62) - 1  # so that differences of times fit into eight bytes; nanoseconds since 1970 are below 2^61
LONGEST = 30 * 86_400 * 10**9  # of one piece of work or call, so that sums of them fit as well
_MOST_BYTES = 1 << 50
MOST_DEVICES, MOST_THREADS = 128, 1 << 15


@dataclass(frozen=True)
class ColumnRule:
    """What a column must hold: an SQL condition on it, and the same in words."""

    column: str
    condition: str
    words: str


def _integer(column: str, least: int, most: int, words: str) -> ColumnRule:
    name = f'"{column}"'
    return ColumnRule(column, f"typeof({name}) = 'integer' AND {name} BETWEEN {least} AND {most}", words)


def _or_null(rule: ColumnRule) -> ColumnRule:
    return ColumnRule(rule.column, f'"{rule.column}" IS NULL OR ({rule.condition})', f"{rule.words}, or NULL")


_NUMBER = "a whole number"
_SPAN = (
    _integer("start", -LATEST, LATEST, "a time in nanoseconds"),
    _integer("end", -LATEST, LATEST, "a time in nanoseconds"),
    ColumnRule("end", '"end" >= start', "no time before its start"),
    ColumnRule("end", f'"end" - start <= {LONGEST}', "a time at most 30 days after its start"),
)
_IDS = tuple(_integer(name, -(1 << 63), (1 << 63) - 1, _NUMBER) for name in ("correlationId", "globalPid", "globalTid"))
_NAME_IDS = ("shortName", "demangledName", "nameId", "textId")
_NAMES = tuple(_or_null(_integer(name, 0, LATEST, "the id of a name")) for name in _NAME_IDS)
_RULES = (
    *_SPAN, *_IDS, *_NAMES, _integer("deviceId", 0, MOST_DEVICES - 1, f"a device from 0 to {MOST_DEVICES - 1}"),
    _integer("bytes", 0, _MOST_BYTES, "a number of bytes up to 2^50"),
    ColumnRule("text", "typeof(text) IN ('text', 'null')", "text, or NULL"),
)  # fmt: skip
_EVENT = (_integer("eventType", 0, 1 << 31, "a kind of event"),)
_STRINGS = (
    _integer("id", 0, LATEST, "a number from 0 on"),
    ColumnRule("value", "typeof(value) = 'text'", "text"),
)


class Checks:
    """The tables of one export, by name with their columns, and what is checked of them; errors name the file."""

    def __init__(self, database: sqlite3.Connection, columns: Mapping[str, set[str]], origin: str) -> None:
        self._database, self._columns, self._origin = database, columns, origin

    def spans(self, table: str, needed: Iterable[str] = (), condition: str = "") -> None:
        """Check every row of a table of things with a start and an end, and that it has these columns and the `needed`.

        A table without rows needs no columns.
        """
        if table not in self._columns or not self._used(table):
            return
        self._need(table, ("start", "end", *needed))
        self._rows(table, [rule for rule in _RULES if rule.column in self._columns[table]], condition)

    def strings(self, wanted: Iterable[str]) -> None:
        """Check the table of names; it must be there where one of the tables `wanted` refers to names by id."""
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
        """Check the kind of every event of the table, and that it has what distinguishes ranges from other events."""
        if table in self._columns:
            self._need(table, ("eventType", "start", "end"))
            self._rows(table, _EVENT, "")

    def _need(self, table: str, needed: Iterable[str]) -> None:
        missing = [name for name in needed if name not in self._columns[table]]
        if missing:
            raise ResultsError(f"{self._origin}: {table} has no column '{missing[0]}'; export it again")

    def _used(self, table: str) -> bool:
        return self._database.execute(f'SELECT 1 FROM "{table}" LIMIT 1').fetchone() is not None

    def _rows(self, table: str, rules: Iterable[ColumnRule], condition: str) -> None:
        """Raise a ResultsError for the first row that breaks a rule."""
        rules = list(rules)
        sound = " AND ".join(f"({rule.condition})" for rule in rules)
        where = f"{condition} AND" if condition else "WHERE"
        verdicts = ", ".join(f"({rule.condition})" for rule in rules)
        values = ", ".join(f'"{rule.column}"' for rule in rules)
        found = self._database.execute(
            f'SELECT rowid, {verdicts}, {values} FROM "{table}" {where} COALESCE(NOT ({sound}), 1) LIMIT 1'
        ).fetchone()
        if found is None:
            return
        row, held, given = found[0], found[1 : 1 + len(rules)], found[1 + len(rules) :]
        rule, value = next((rule, value) for rule, kept, value in zip(rules, held, given, strict=True) if not kept)
        shown = "NULL" if value is None else f"{value!r:.40}"
        raise ResultsError(f"{self._origin}: {table}, row {row}: '{rule.column}' is {shown}, not {rule.words}")

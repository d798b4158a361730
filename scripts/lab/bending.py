"""Ways to damage a file as disks, editors, locales and attackers do: seeded, and aware of what is in the file.

Each function draws one change and returns the new content with words for it; none knows a reader.
"""

import csv
import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from random import Random
from typing import Any

from lab.record_mutations import paths_in

# New contents of a cell: nothing, other words, other types, other alphabets, too much.
CELLS = (
    "", "NULL", "n/a", "-1", "0", "1e999", "-1e999", "9" * 400, "9" * 5000, "²", "٣", "1,2,3", "1.2.3", "12,34", "0x10",
    "nan", "inf", "true", "1_000", " 7 ", "7 000", "\x00", "\u2028", "[/x]", "../../x", "=1+1", "x" * 200_000, "7\n8",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, "", "x", -1, 0, 1.5, float("inf"), float("nan"), True, [], {}, [[]], 10**400, "9" * 5000, "²", "1_000",
    "0x10", "1e999", -(1 << 63), 1 << 63, "\x00", "\ud800", "../../x", "/etc/hostname", [None], {"x": None},
    "x" * 100_000,
)  # fmt: skip
_COLUMN_VALUES: tuple[Any, ...] = (
    None, -1, 0, 1.5, float("inf"), "x", "", b"\xff\xfe", b"", (1 << 63) - 1, -(1 << 63), 1 << 40, 1 << 62, 300, "7",
    "²", "x" * 100_000,
)  # fmt: skip


@dataclass(frozen=True)
class Bent:
    """A damaged file: how it came about (`kind`, one word or two) and what was done in words."""

    kind: str
    words: str


def bend_bytes(path: Path, draw: Random) -> Bent:
    """Cut the file, flip, insert or repeat bytes of it, or empty it."""
    data = path.read_bytes()
    place = draw.randrange(len(data) + 1)
    kind = draw.choice(("cut", "cut", "cut", "flip", "flip", "insert", "repeat", "no text", "empty"))
    if kind == "cut":
        changed = data[:place]
    elif kind == "flip":
        place = min(place, len(data) - 1)
        changed = data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1 :]
    elif kind == "insert":
        changed = data[:place] + draw.choice((b"\x00", b"\xff", b'"', b"\r", b"\xef\xbb\xbf", b"\n\n")) + data[place:]
    elif kind == "repeat":
        changed = data[:place] + data[place : place + draw.randrange(1, 200)] + data[place:]
    else:
        changed = b"" if kind == "empty" else draw.randbytes(draw.randrange(1, 2000))
    path.write_bytes(changed)
    return Bent(kind, f"{kind} at byte {place} of {len(data)}")


def bend_table(path: Path, draw: Random) -> Bent:
    """Change one cell, row or column of the table in a CSV file, whatever is before the table."""
    lines = io.StringIO(path.read_text("utf-8-sig", "replace")).readlines()
    start = max(range(len(lines)), key=lambda i: (lines[i].count(",") > 2) * (len(lines) - i))
    rows = list(csv.reader(lines[start:]))
    kind, words = _bend_rows(rows, draw)
    text = io.StringIO()
    csv.writer(text, quoting=draw.choice((csv.QUOTE_ALL, csv.QUOTE_MINIMAL)), lineterminator="\n").writerows(rows)
    path.write_bytes("".join([*lines[:start], text.getvalue()]).encode("utf-8", "surrogatepass"))
    return Bent(kind, words)


def _bend_rows(rows: list[list[str]], draw: Random) -> tuple[str, str]:
    number = draw.randrange(len(rows))
    row = rows[number]
    column = draw.randrange(len(row)) if row else 0
    other = draw.randrange(len(rows))
    changes: dict[str, Callable[[], object]] = {
        "cell": lambda: row.__setitem__(column, draw.choice(CELLS)) if row else None,
        "swap in row": lambda: _swap(row, column, row, draw.randrange(len(row))) if row else None,
        "swap in column": lambda: _swap(row, column, rows[other], min(column, len(rows[other]) - 1)) if row else None,
        "cell gone": lambda: row.pop(column) if row else None,
        "cell more": lambda: row.insert(column, "7"),
        "row twice": lambda: rows.insert(number, list(row)),
        "row gone": lambda: rows.pop(number),
        "rows swapped": lambda: _swap(rows, number, rows, other),
        "column gone": lambda: [one.pop(column) for one in rows if column < len(one)],
        "column twice": lambda: [one.insert(column, one[column]) for one in rows if column < len(one)],
        "head": lambda: rows[0].__setitem__(column % len(rows[0]), draw.choice(("", "ID", "Name", "x"))),
    }
    kind = draw.choice(("cell", "cell", "cell", *changes))
    before = row[column : column + 1]
    changes[kind]()
    return kind, f"{kind}: row {number}, column {column}, was {before!r:.60}, other row {other}"


def _swap(first: list[Any], i: int, second: list[Any], j: int) -> None:
    first[i], second[j] = second[j], first[i]


def bend_json(path: Path, draw: Random) -> Bent:
    """Change, remove, repeat or exchange one value somewhere in a JSON file."""
    plain = json.loads(path.read_text())
    place: tuple[Any, ...] = draw.choice(list(paths_in(plain)))
    kind = draw.choice(("value", "value", "value", "gone", "twice", "swap", "field twice", "deep"))
    holder, last = reduce(getitem, place[:-1], plain), place[-1]
    if kind == "value":
        holder[last] = draw.choice(VALUES)
    elif kind == "gone":
        del holder[last]
    elif kind == "twice" and isinstance(holder, list):
        holder.insert(last, holder[last])
    elif kind == "swap":
        other = draw.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        holder[last], holder[other] = holder[other], holder[last]
    elif kind == "deep":
        holder[last] = json.loads("[" * 500 + "]" * 500)
    text = json.dumps(plain)
    if kind == "field twice" and isinstance(last, str):
        name = json.dumps(last)
        text = text.replace(f"{name}: ", f"{name}: 7, {name}: ", 1)
    path.write_text(text)
    return Bent(kind, f"{kind} at {'/'.join(map(str, place))}")


def bend_database(path: Path, draw: Random) -> Bent:
    """Change one value, row, column or table of an SQLite file; kinds that SQLite refuses leave it as it was."""
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = draw.choice(tables)
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
        column, other = draw.choice(columns), draw.choice(columns)
        row = draw.randrange(1, 1 + max(1, int(database.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()[0])))
        kind = draw.choice(
            (
                "cell",
                "cell",
                "cell",
                "cell",
                "swap",
                "early end",
                "row twice",
                "row gone",
                "table gone",
                "column gone",
                "table renamed",
                "no rows",
            )
        )
        same = ", ".join(f'"{name}"' for name in columns)
        statement, values = {
            "cell": (f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = {row}', (draw.choice(_COLUMN_VALUES),)),
            "swap": (f'UPDATE "{table}" SET "{column}" = "{other}", "{other}" = "{column}" WHERE rowid = {row}', ()),
            "early end": (f'UPDATE "{table}" SET "end" = start - {draw.randrange(1, 1 << 34)} WHERE rowid = {row}', ()),
            "row twice": (f'INSERT INTO "{table}" ({same}) SELECT {same} FROM "{table}" WHERE rowid = {row}', ()),
            "row gone": (f'DELETE FROM "{table}" WHERE rowid = {row}', ()),
            "table gone": (f'DROP TABLE "{table}"', ()),
            "column gone": (f'ALTER TABLE "{table}" DROP COLUMN "{column}"', ()),
            "table renamed": (f'ALTER TABLE "{table}" RENAME TO renamed', ()),
            "no rows": (f'DELETE FROM "{table}"', ()),
        }[kind]
        try:
            with database:
                database.execute(statement, values)
        except (sqlite3.Error, OverflowError):
            return Bent("unchanged", f"SQLite refuses: {statement:.100}")
    return Bent(kind, f"{statement:.150} {values!r:.60}")

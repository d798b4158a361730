"""Tables as CSV files, from rows of one dataclass or from mappings."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from prism_bench.files import write_atomically


def write_rows(kind: type, rows: Iterable[Sequence[object]], path: Path) -> None:
    """Write the field names of the dataclass `kind`, then one line per row; the folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(kind))
        writer.writerows(rows)


def table_text(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return the rows as CSV with the columns as header; a row may lack columns, and have no others."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_mappings(columns: Sequence[str], rows: Iterable[Mapping[str, object]], path: Path) -> None:
    """Write the rows as CSV at once, so that no reader sees half a table; the folder is made where it is missing."""
    write_atomically(path, table_text(columns, rows).encode())

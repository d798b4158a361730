"""Rows of one dataclass as a CSV file."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path


def write_rows(kind: type, rows: Iterable[Sequence[object]], path: Path) -> None:
    """Write the field names of the dataclass `kind`, then one line per row; the folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(kind))
        writer.writerows(rows)

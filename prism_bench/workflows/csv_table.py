"""Tables as CSV files, from mappings or rows of a dataclass."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prism_bench.io.files import write_atomically


def table_text(rows: Iterable[Any], columns: Sequence[str] = ()) -> str:
    """Return the rows as CSV under a header: the columns, or those of the first row; a row may lack some of them."""
    plain: list[Mapping[str, object]] = [row if isinstance(row, Mapping) else asdict(row) for row in rows]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns or list(plain[0] if plain else ()), lineterminator="\n")
    writer.writeheader()
    writer.writerows(plain)
    return text.getvalue()


def write_table(rows: Iterable[Any], path: Path, columns: Sequence[str] = ()) -> None:
    """Write the rows as CSV at once, so that no reader sees half a table; the folder is made where it is missing."""
    write_atomically(path, table_text(rows, columns).encode())

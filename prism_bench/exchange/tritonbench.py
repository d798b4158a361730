"""TritonBench's CSV (`--csv`, `--output`) as a record: a case for each backend and input, by its column `latency`.

The first column is `x_val`; the others are `BACKEND-METRIC`. A latency is in milliseconds, with its spread behind it
where there is one: `0.0123 (±1.05%)`.
"""

import csv
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.exchange.foreign import Imported, case, number, record, timing
from prism_bench.foreign_files import bytes_of
from prism_bench.run_record import CaseResult

BACKEND = "tritonbench"
FIRST, LATENCY = "x_val", "-latency"
_VALUE = re.compile(r"\s*([^\s(±]+)")


def recognised(data: object) -> bool:
    """Return False for every JSON: its files are CSV."""
    return False


def is_csv(path: Path) -> bool:
    """Return whether the file's name is that of a CSV file."""
    return path.suffix.lower() == ".csv"


def read(path: Path) -> Imported:
    """Return the record of one file. TritonBench writes neither time nor device: the file's last change counts."""
    text = bytes_of(path, "CSV").decode("utf-8", "replace").lstrip("\ufeff")
    try:
        header, *rows = [*_lines(text)] or [[]]
    except csv.Error as error:
        raise ResultsError(f"{path}: no CSV: {error}") from None
    columns = {index: name.removesuffix(LATENCY) for index, name in enumerate(header) if name.endswith(LATENCY)}
    if not header or header[0].strip() != FIRST or not columns:
        raise ResultsError(f"{path}: no CSV of TritonBench: its first column is {FIRST}, others end in {LATENCY}")
    cases = [one for index, row in enumerate(rows, 2) if row for one in _cases(row, columns, f"{path}:{index}")]
    if not cases:
        raise ResultsError(f"{path}: no latency of any input")
    created = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return Imported((record(BACKEND, "unknown", created, cases, version="1"),))


def _lines(text: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text), delimiter=";" if ";" in text.partition("\n")[0] else ",")


def _cases(row: list[str], columns: dict[int, str], place: str) -> list[CaseResult]:
    found: list[CaseResult] = []
    for index, name in columns.items():
        value = _VALUE.match(row[index]) if index < len(row) else None
        if value:
            seconds = number(value[1], f"{place}: {name}{LATENCY}") * 1e-3
            note = ("one number: the median that triton.testing gives",)
            found.append(case(name, {FIRST: row[0]}, [timing("cold_time", [seconds], note)]))
    return found

"""TritonBench's CSV (`--csv`, `--output`) as a record: a case for each backend and input, by its column `latency`.

As its `BenchmarkOperatorResult.write_csv_to_file` writes it: separated by semicolons; the first column has the name
that the operator gives its inputs, such as `x_val` or `(M, N, K)`, the others are `BACKEND-METRIC`, or a metric of the
input alone. A latency is the median in milliseconds, with its spread behind it in other tables: `0.0123 (±1.05%)`. A
backend that failed has its error in its first column. The last rows are an average and hashes of sources, no inputs.
"""

import csv
import io
import re
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.io.documents import bytes_of
from prism_bench.record.formats.foreign import Imported, ImportedRows, case, number, record, single
from prism_bench.record.run_record import CaseResult

BACKEND = "tritonbench"
_LATENCY, _INPUT = "-latency", "x_val"
_NO_INPUTS = ("average", "hashes")
_VALUE = re.compile(r"\s*([-+0-9.einfa]+)\s*(\(.*\))?\s*", re.IGNORECASE)


def recognised(data: object) -> bool:
    """Return False for every JSON: its files are CSV."""
    return False


def is_csv(path: Path) -> bool:
    """Return whether the file's name is that of a CSV file."""
    return path.suffix.lower() == ".csv"


def is_table(path: Path) -> bool:
    """Return whether the file is a CSV with a column of latencies."""
    return is_csv(path) and _LATENCY.encode() in bytes_of(path, "CSV").partition(b"\n")[0]


def read(path: Path) -> Imported:
    """Return the record of one file. TritonBench writes neither time nor machine: the last change is the guess."""
    text = bytes_of(path, "CSV").decode("utf-8", "replace").lstrip("\ufeff")
    try:
        delimiter = ";" if ";" in text.partition("\n")[0] else ","
        header, *lines = [*csv.reader(io.StringIO(text), delimiter=delimiter)] or [[]]
    except csv.Error as error:
        raise ResultsError(f"{path}: no CSV: {error}") from None
    columns = {index: name.removesuffix(_LATENCY) for index, name in enumerate(header) if name.endswith(_LATENCY)}
    if not columns or 0 in columns:
        raise ResultsError(
            f"{path}: no CSV of TritonBench: its first column names the inputs, others end in {_LATENCY}"
        )
    first_columns: dict[str, int] = {}  # by backend: TritonBench writes an error there in place of a metric
    for index, name in enumerate(header):
        first_columns.setdefault(name.rpartition("-")[0], index)
    rows = ImportedRows(path)
    for row, line in enumerate(lines, 2):
        for index, name in columns.items() if line and line[0] not in _NO_INPUTS else ():
            with rows.row(f"{path}:{row}"):
                result = _case(line, index, name, first_columns[name], f"{path}:{row}")
                if result:
                    rows.add(result)
    cases = rows.cases()
    if not any(result.measurements for result in cases):
        reasons = [result.reason for result in cases if result.reason] or [*rows.left_out, "no line of an input"]
        raise ResultsError(f"{path}: no latency of any input: {reasons[0]}")
    return Imported((record(BACKEND, None, path, cases, version="1"),), tuple(rows.left_out))


def _case(line: list[str], index: int, name: str, first: int, place: str) -> CaseResult | None:
    """Return the case of one backend on one input, its latency at `index`; None where the backend did not run it."""
    error, text = (line[at] if at < len(line) else "" for at in (first, index))
    value = _VALUE.fullmatch(text)
    if value:
        seconds = number(value[1], f"{place}: {name}{_LATENCY}") * 1e-3
        return case(name, {_INPUT: line[0]}, [single("cold_time", seconds, "the median that TritonBench gives")])
    if text.strip() or (error.strip() and not _VALUE.fullmatch(error)):
        reason = f"TritonBench writes: {text.strip() or error.strip():.200}"
        return case(name, {_INPUT: line[0]}, [], status="failed", reason=reason)
    return None

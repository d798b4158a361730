"""The CSV tables of `nsys stats`, in every generation of their headers: columns are found by name, never by place.

A header is a name and perhaps a unit, `Total Time (ns)`, `Avg (ns)`, `Time(%)`; a time without a unit is nanoseconds.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_bench.errors import ResultsError
from prism_bench.io.documents import table_text_of, whole_number
from prism_bench.profilers import numbers
from prism_bench.profilers.nsys_checks import MOST_DEVICES
from prism_bench.profilers.timeline import COPY, KERNEL, SET, Timeline, timeline_of
from prism_bench.units import count_text

_COLUMN = re.compile(r"(?P<name>.*?)\s*(?:\((?P<unit>[^)]*)\))?", re.DOTALL)
# What a column is called here, by what it was ever called there.
_NAMES = {
    "time": "share", "total time": "total", "total": "total", "instances": "count", "num calls": "count",
    "calls": "count", "count": "count", "operations": "count", "average": "mean", "avg": "mean", "med": "median",
    "median": "median", "minimum": "least", "min": "least", "maximum": "most", "max": "most", "stddev": "deviation",
    "name": "name", "operation": "name", "range": "name", "style": "style", "start": "start", "duration": "duration",
    "corrid": "correlation", "bytes": "bytes", "pid": "process", "tid": "thread", "device": "device", "strm": "stream",
}  # fmt: skip
# No time is longer than 30 days; a share is one of all.
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
    """One report of `nsys stats`, of a `kind`: rows by column, times in seconds, sizes in bytes, shares of one.

    `share` is of the rows listed, not of the wall time.
    """

    kind: str
    rows: tuple[dict[str, float | str], ...]


def read(path: Path | str) -> StatsTable:
    """Return the table in the file; a ResultsError where there is none. What nsys skipped for want of data is empty."""
    return parse(table_text_of(Path(path), "CSV of nsys stats"), str(path))


def parse(text: str, origin: str) -> StatsTable:
    """Return the same from text, with any output of nsys before the table."""
    lines = io.StringIO(text).readlines()
    start = next((i for i, line in enumerate(lines) if _is_header(line)), None)
    if start is None and _SKIPPED.search(text):
        return StatsTable("nothing", ())
    if start is None:
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
    mark = numbers.decimal_mark(cells, origin)
    found = tuple(
        {name: _cell(name, unit, cell, mark, f"{origin}: row {number}: {name}")
         for (name, unit), cell in zip(columns, row, strict=True)}
        for number, row in enumerate(rows, 1)
    )  # fmt: skip
    return StatsTable(_kind(header), found)


def timeline(table: StatsTable, origin: str) -> Timeline:
    """Return the timeline of a trace of the device (`cuda_gpu_trace`); it has no calls, so gaps have no cause.

    A ResultsError for any other table: a summary has no gaps.
    """
    if table.kind != "device trace":
        raise ResultsError(f"{origin}: a table of {table.kind} has no gaps; take nsys stats --report cuda_gpu_trace, "
                           "or an SQLite export, which has the calls as well")  # fmt: skip
    missing = {"start", "duration", "name"} - set(table.rows[0] if table.rows else ("start", "duration", "name"))
    if missing:
        raise ResultsError(f"{origin}: the trace has no column '{sorted(missing)[0]}'")
    names = {name: i for i, name in enumerate(dict.fromkeys(str(row["name"]) for row in table.rows))}
    work = [_work(row, names, f"{origin}: row {number}") for number, row in enumerate(table.rows, 1)]
    return timeline_of(work, (), (), names, source=origin, tool="nsys", notes=("a trace of the device has no calls",))


def _work(row: Mapping[str, Any], names: Mapping[str, int], place: str) -> tuple[int, ...]:
    """(start, end, device, kind, name, bytes, correlation, process), in nanoseconds."""
    kind = COPY if "memcpy" in row["name"] else SET if "memset" in row["name"] else KERNEL
    device = _DEVICE.search(str(row.get("device", "")))
    size = row.get("bytes") or 0
    number = whole_number(device[1], f"{place}: Device") if device else 0
    if number >= MOST_DEVICES or "" in (row["start"], row["duration"]):
        raise ResultsError(f"{place}: a start, a duration and a device below {MOST_DEVICES} are needed")
    start = round(row["start"] * 1e9)
    return start, start + round(row["duration"] * 1e9), number, kind, names[row["name"]], round(size), 0, 0


def _is_header(line: str) -> bool:
    words = {_column(title)[0] for title in line.split(",")}
    return "name" in words and bool(words & {"total", "duration"})


def _column(title: str) -> tuple[str, str]:
    found = _COLUMN.fullmatch(title.strip().strip('"'))
    assert found, "every title matches"
    name = _NAMES.get(found["name"].lower(), found["name"])
    return name, found["unit"] or ("ns" if name in _TIMES else "%" if name == "share" else "")


def _kind(header: Iterable[str]) -> str:
    """`kernels`, `calls`, `transfers`, `sizes`, `ranges`, or a trace of device or host, by columns only they have."""
    titles = {title.strip('"') for title in header}
    if any(title.startswith("Start") for title in titles):
        return "device trace" if "Strm" in titles else "host trace"
    if "Range" in titles:
        return "ranges"
    if "Operation" in titles or "Operations" in titles:
        return "sizes" if not any(title.startswith("Time") for title in titles) else "transfers"
    return "calls" if titles & {"Num Calls", "Calls"} else "kernels"


def _cell(name: str, unit: str, cell: str, mark: str, place: str) -> float | str:
    if name == "name":
        return _operation(cell)
    if not numbers.is_number(cell):
        if name in _NUMBERS and cell:
            raise ResultsError(f"{place} is {cell!r:.40}, not a number")
        return cell
    try:
        value, unit = numbers.to_si(numbers.number(cell, mark), _LONG.get(unit, unit))
    except ResultsError as error:
        raise ResultsError(f"{place}: {error}") from None
    if unit not in _UNITS.get(name, {unit}):
        raise ResultsError(f"{place} is in {unit!r:.20}, not in {' or '.join(_UNITS[name])}")
    if name in _NUMBERS and not 0 <= value <= _LARGEST.get(name, 1e18):
        raise ResultsError(f"{place} is {cell}, which cannot be")
    return value


def _operation(name: str) -> str:
    """`[CUDA memcpy HtoD]` of older versions as newer ones write it."""
    for old, new in _OPERATIONS.items():
        name = name.replace(f"[CUDA memcpy {old}]", f"[CUDA memcpy {new}]")
    return name

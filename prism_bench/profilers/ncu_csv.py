"""Nsight Compute's CSV in its four layouts: long (current, older, with NVTX) and wide, whatever stands around it."""

import csv
import re
from dataclasses import replace
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.profilers import numbers
from prism_bench.profilers.launches import ProfiledLaunch, Quantity, Rule

_IDENTITY = frozenset(
    "ID,Process ID,Process Name,Host Name,Kernel Name,Kernel Time,Context,Stream,Block Size,Grid Size,Device,CC".split(
        ","
    )
)  # fmt: skip
_HEADER = re.compile(r'"?ID"?,.*Kernel Name')
_EXTENT = re.compile(r"\d+")


def read(path: Path | str) -> list[ProfiledLaunch]:
    """The launches in the file; a ResultsError where it cannot be read or holds none."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise ResultsError(f"{path}: {error.strerror}") from error
    return parse(text, str(path))


def parse(text: str, origin: str) -> list[ProfiledLaunch]:
    """The launches in ncu's CSV output, whatever stands around the table; a ResultsError where there are none."""
    lines = text.lstrip("\ufeff").splitlines(keepends=True)
    start = next((i for i, line in enumerate(lines) if _HEADER.match(line)), None)
    if start is None:
        raise ResultsError(f"{origin}: no table of kernels: no line starts with ID and names a Kernel Name")
    try:
        header, *body = csv.reader(lines[start:])
    except csv.Error as error:
        raise ResultsError(f"{origin}: not a CSV table ({error})") from error
    wide = "Metric Name" not in header
    launches = _wide(header, body, origin) if wide else _long(header, body, origin)
    if not launches:
        raise ResultsError(f"{origin}: the table of kernels is empty: nothing was profiled")
    return launches


def _wide(header, body, origin):
    """A row per launch and a column per metric; the row without an ID holds the units."""
    units = next((row for row in body if row and not row[0] and len(row) == len(header)), None)
    if units is None:
        raise ResultsError(f"{origin}: a wide table without its row of units")
    rows = [row for row in body if _is_launch(row)]
    _refuse_cut(rows, len(header), len(header), origin)
    columns = [i for i, name in enumerate(header) if name not in _IDENTITY and not _is_range(name)]
    mark = numbers.decimal_mark((row[i] for row in rows for i in columns), origin)
    return [
        replace(_launch(dict(zip(header, row, strict=True))),
                metrics={header[i]: _quantity(row[i], units[i], mark) for i in columns})
        for row in rows
    ]  # fmt: skip


def _long(header, body, origin):
    """A row per metric of a launch, shorter than the header, and a row per rule, where the page has rules."""
    fields = header.index("Metric Value") + 1
    rows = [row for row in body if _is_launch(row)]
    _refuse_cut(rows, fields, len(header), origin)
    rows = [dict(zip(header, row, strict=False)) for row in rows]
    mark = numbers.decimal_mark((row["Metric Value"] for row in rows), origin)
    launches, metrics, rules = {}, {}, {}
    for row in rows:
        which = (row["Process ID"], int(row["ID"]))
        launches.setdefault(which, _launch(row))
        if row["Metric Name"]:
            quantity = _quantity(row["Metric Value"], row["Metric Unit"], mark)
            metrics.setdefault(which, {})[_key(row)] = quantity
        else:
            rules.setdefault(which, []).append(_rule(row))
    return [
        replace(launch, metrics=metrics.get(which, {}), rules=tuple(rules.get(which, ())))
        for which, launch in launches.items()
    ]


def _is_launch(row):
    return bool(row) and row[0].isdigit()


def _refuse_cut(rows, least, most, origin):
    for row in rows:
        if not least <= len(row) <= most:
            raise ResultsError(f"{origin}: the row of launch {row[0]} is cut: {len(row)} of {least} fields")


def _is_range(column):
    """The columns that `--nvtx` adds, such as `Id:Domain:Push/Pop_Range:PL_Type:...`."""
    return "_Range:" in column or column.startswith(("NVTX", "Id:Domain"))


def _key(row):
    """Metric names are unique, labels are not: `Memory Throughput` is a share and a rate in one report."""
    name = row["Metric Name"]
    return name if "__" in name else f"{row.get('Section Name', '')}: {name} [{row['Metric Unit']}]"


def _launch(row):
    return ProfiledLaunch(
        id=int(row["ID"]),
        kernel=row["Kernel Name"],
        metrics={},
        process=int(row["Process ID"]) if row.get("Process ID", "").isdigit() else None,
        device=int(row["Device"]) if row.get("Device", "").isdigit() else None,
        capability=row.get("CC") or None,
        grid=_extent(row.get("Grid Size", "")),
        block=_extent(row.get("Block Size", "")),
        ranges=tuple(cell.strip() for name, cell in row.items() if name and _is_range(name) and cell and cell.strip()),
    )


def _extent(text):
    return tuple(int(part) for part in _EXTENT.findall(text))


def _quantity(text, unit, mark):
    if not numbers.is_number(text):
        return Quantity(None, unit, text)
    value, unit = numbers.to_si(numbers.number(text, mark), unit)
    return Quantity(value, unit, text)


def _rule(row):
    speedup = row.get("Estimated Speedup") or ""
    return Rule(
        name=row.get("Rule Name") or "",
        kind=row.get("Rule Type") or "",
        text=row.get("Rule Description") or "",
        speedup_kind=row.get("Estimated Speedup Type") or "",
        speedup=float(speedup) if speedup.replace(".", "", 1).isdigit() else None,
    )

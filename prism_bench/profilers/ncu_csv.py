"""Nsight Compute's CSV in its four layouts: long (current, older, with NVTX) and wide, with any text around it."""

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.io.documents import table_text_of, whole_number
from prism_bench.profilers import numbers
from prism_bench.profilers.launches import ProfiledLaunch, ProfiledValue, ProfilerAdvice
from prism_bench.units import count_text

_IDENTITY = frozenset(
    "ID,Process ID,Process Name,Host Name,Kernel Name,Kernel Time,Context,Stream,Block Size,Grid Size,Device,CC".split(
        ","
    )
)  # fmt: skip
_NEEDED = ("ID", "Kernel Name")
_NEEDED_LONG = (*_NEEDED, "Process ID", "Metric Name", "Metric Unit", "Metric Value")
_HEADER = re.compile(r'"?ID"?,.*Kernel Name')
_EXTENT = re.compile(r"\d+", re.ASCII)
_SPEEDUP = re.compile(r"\d{1,9}(\.\d{1,30})?", re.ASCII)


def read(path: Path | str) -> list[ProfiledLaunch]:
    """Return the launches in the file; a ResultsError where it cannot be read or holds none."""
    return parse(table_text_of(Path(path), "CSV of ncu"), str(path))


def parse(text: str, origin: str) -> list[ProfiledLaunch]:
    """Return the launches in ncu's CSV output, with any text around the table; a ResultsError if there are none."""
    lines = io.StringIO(text.lstrip("\ufeff")).readlines()
    start = next((i for i, line in enumerate(lines) if _HEADER.match(line)), None)
    if start is None:
        raise ResultsError(f"{origin}: no table of kernels: no line starts with ID and names a Kernel Name")
    try:
        header, *body = csv.reader(lines[start:], strict=True)  # strict: a quoted cell that is cut is an error
    except csv.Error as error:
        raise ResultsError(f"{origin}: the table is cut or no CSV ({error})") from error
    wide = "Metric Name" not in header
    needed = _NEEDED if wide else _NEEDED_LONG
    missing = [name for name in needed if name not in header]
    if missing:
        raise ResultsError(f"{origin}: the table has no column '{missing[0]}'; it is cut, or no table of ncu")
    twice = [name for name, count in Counter(header).items() if count > 1 and not _is_range(name)]
    if twice:
        raise ResultsError(f"{origin}: the table has two columns {twice[0]!r:.80}")
    launches = _wide(header, body, origin) if wide else _long(header, body, origin)
    if not launches:
        raise ResultsError(f"{origin}: the table of kernels is empty: nothing was profiled")
    return launches


def _wide(header: Sequence[str], body: Sequence[list[str]], origin: str) -> list[ProfiledLaunch]:
    """Return a row per launch and a column per metric; the row without an ID holds the units."""
    units = next((row for row in body if row and not row[0] and len(row) == len(header)), None)
    if units is None:
        raise ResultsError(f"{origin}: a wide table without its row of units")
    rows = [row for row in body if _is_launch(row)]
    _refuse_cut(rows, len(header), len(header), origin)
    columns = [i for i, name in enumerate(header) if name not in _IDENTITY and not _is_range(name)]
    mark = numbers.decimal_mark((row[i] for row in rows for i in columns), origin)
    launches: dict[tuple[int | None, int], ProfiledLaunch] = {}
    for row in rows:
        found = _launch(dict(zip(header, row, strict=True)), origin)
        if (found.process, found.id) in launches:
            raise ResultsError(f"{origin}: launch {found.id} is in two rows")
        place = f"{origin}: launch {found.id}"
        metrics = {header[i]: _quantity(row[i], units[i], mark, f"{place}, {header[i]!r:.80}") for i in columns}
        launches[found.process, found.id] = replace(found, metrics=metrics)
    return list(launches.values())


def _long(header: Sequence[str], body: Sequence[list[str]], origin: str) -> list[ProfiledLaunch]:
    """Return a row per metric of a launch, shorter than the header, and a row per rule, where the page has rules."""
    fields = header.index("Metric Value") + 1
    rows = [row for row in body if _is_launch(row)]
    _refuse_cut(rows, fields, len(header), origin)
    rows = [dict(zip(header, row, strict=False)) for row in rows]
    mark = numbers.decimal_mark((row["Metric Value"] for row in rows), origin)
    launches, metrics, rules = {}, {}, {}
    for row in rows:
        launch = _launch(row, origin)
        which = (launch.process, launch.id)
        if launches.setdefault(which, launch) != launch:
            raise ResultsError(f"{origin}: two rows contradict each other about launch {launch.id}; one is damaged")
        if row["Metric Name"]:
            key, place = _key(row), f"{origin}: launch {launch.id}, {row['Metric Name']!r:.80}"
            quantity = _quantity(row["Metric Value"], row["Metric Unit"], mark, place)
            if metrics.setdefault(which, {}).setdefault(key, quantity) != quantity:
                values = metrics[which][key].text, quantity.text
                raise ResultsError(f"{place} has two values, {values!r:.80}")
        else:
            rules.setdefault(which, []).append(_rule(row))
    return [
        replace(launch, metrics=metrics.get(which, {}), rules=tuple(rules.get(which, ())))
        for which, launch in launches.items()
    ]


def _is_launch(row: Sequence[str]) -> bool:
    return bool(row) and row[0].isascii() and row[0].isdigit()


def _refuse_cut(rows: Sequence[Sequence[str]], least: int, most: int, origin: str) -> None:
    for row in rows:
        if not least <= len(row) <= most:
            raise ResultsError(
                f"{origin}: the row of launch {row[0]} is cut: {len(row)} of {count_text(least, 'field')}"
            )


def _is_range(column: str) -> bool:
    """Return the columns that `--nvtx` adds, such as `Id:Domain:Push/Pop_Range:PL_Type:...`."""
    return "_Range:" in column or column.startswith(("NVTX", "Id:Domain"))


def _key(row: Mapping[str, str]) -> str:
    """Metric names are unique, labels are not: `Memory Throughput` is a share and a rate in one report."""
    name = row["Metric Name"]
    return name if "__" in name else f"{row.get('Section Name', '')}: {name} [{row['Metric Unit']}]"


def _launch(row: Mapping[str, str], origin: str) -> ProfiledLaunch:
    place = f"{origin}: launch {row['ID']:.20}"
    return ProfiledLaunch(
        id=whole_number(row["ID"], f"{origin}: ID of a launch"),
        kernel=row["Kernel Name"],
        metrics={},
        process=_optional(row.get("Process ID"), f"{place}: Process ID"),
        device=_optional(row.get("Device"), f"{place}: Device"),
        capability=row.get("CC") or None,
        grid=_extent(row.get("Grid Size", ""), f"{place}: Grid Size"),
        block=_extent(row.get("Block Size", ""), f"{place}: Block Size"),
        ranges=tuple(cell.strip() for name, cell in row.items() if name and _is_range(name) and cell and cell.strip()),
    )


def _optional(text: str | None, place: str) -> int | None:
    """Return a number that older layouts have not; words such as a device's name are none."""
    return whole_number(text, place) if text and text.isascii() and text.isdigit() else None


def _extent(text: str, place: str) -> tuple[int, ...]:
    return tuple(whole_number(part, place) for part in _EXTENT.findall(text))


def _quantity(text: str, unit: str, mark: str, place: str) -> ProfiledValue:
    if not numbers.is_number(text):
        if numbers.looks_numeric(text) and (unit or not text.isascii()):  # a word would have no unit
            raise ResultsError(f"{place} is {text!r:.40}, a number in no known locale; {numbers.CURE}")
        return ProfiledValue(None, unit, text)
    try:
        value, unit = numbers.to_si(numbers.number(text, mark), unit)
    except ResultsError as error:
        raise ResultsError(f"{place}: {error}") from None
    return ProfiledValue(value, unit, text)


def _rule(row: Mapping[str, str]) -> ProfilerAdvice:
    speedup = row.get("Estimated Speedup") or ""
    return ProfilerAdvice(
        name=row.get("Rule Name") or "",
        kind=row.get("Rule Type") or "",
        text=row.get("Rule Description") or "",
        speedup_kind=row.get("Estimated Speedup Type") or "",
        speedup=float(speedup) if _SPEEDUP.fullmatch(speedup) else None,
    )

"""Nsight Compute: command lines, CSV in four layouts, report files, and source pages."""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from prism_bench.errors import BackendUnavailable, ResultsError
from prism_bench.io.documents import table_text_of, whole_number
from prism_bench.io.installation import pip_install
from prism_bench.profilers.metrics import (
    CURE,
    ProfiledLaunch,
    ProfiledValue,
    ProfilerAdvice,
    decimal_mark,
    is_number,
    looks_numeric,
    number,
    to_si,
)
from prism_bench.profilers.tools import Tool
from prism_bench.units import count_text

# Command lines, and messages.

_PASSES = re.compile(
    r'==PROF== Profiling "(?P<kernel>[^"]*)".*?(?P<passes>\d{1,9}) pass(?:es)?\s*$', re.MULTILINE | re.ASCII
)
# Both are computed from the launch; only the occupancy counter takes a pass.
_SECTIONS = ("LaunchStats", "Occupancy")
_SOURCE = "SourceCounters"  # samples of waiting warps, and counts of each instruction


@dataclass(frozen=True)
class Counting:
    """Options of ncu: metrics, flushing of caches before each pass, and control of clocks.

    `lines` adds samples of waiting warps by source line, and keeps the source in the report. Clocks are not controlled
    by default: a card is shared, and a killed ncu leaves them locked.
    """

    metrics: tuple[str, ...]
    sections: tuple[str, ...] = _SECTIONS
    clock_control: str = "none"
    cache_control: str = "all"
    lines: bool = False


def capture(tool: Tool, counting: Counting, report: Path, program: Sequence[str]) -> list[str]:
    """Return the command that profiles launches of `program` between its profiler marks into `report` (.ncu-rep)."""
    wanted = (*counting.sections, *([_SOURCE] if counting.lines else []))
    sections = [argument for section in wanted for argument in ("--section", section)]
    sections += ["--import-source", "yes"] if counting.lines else []
    return [
        tool.program,
        "--config-file",
        "off",
        "--clock-control",
        counting.clock_control,
        "--cache-control",
        counting.cache_control,
        "--replay-mode",
        "kernel",
        "--profile-from-start",
        "off",
        "--nvtx",
        "--target-processes",
        "application-only",
        "--metrics",
        ",".join(counting.metrics),
        *sections,
        "--force-overwrite",
        "--export",
        str(report),
        *program,
    ]


def exports(tool: Tool, report: Path) -> list[list[str]]:
    """Return the commands that print a report as a wide table in base units, the best first.

    The second is for an ncu that refuses to print ranges.
    """
    plain = ["--config-file", "off", "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]
    return [[tool.program, *plain, "--nvtx"], [tool.program, *plain]]


def source_export(tool: Tool, report: Path, launch: int) -> list[str]:
    """Return the command that prints the source page of one launch of a report, counted from 0.

    The page names no launch, so each is printed by itself.
    """
    return [
        tool.program,
        "--config-file",
        "off",
        "--import",
        str(report),
        "--launch-skip",
        str(launch),
        "--launch-count",
        "1",
        "--csv",
        "--page",
        "source",
        "--print-source",
        "cuda,sass",
    ]


def passes(log: str) -> int | None:
    """Return the most passes that ncu ran for a launch, from its progress lines; None without such lines."""
    return max((int(match["passes"]) for match in _PASSES.finditer(log)), default=None)


# CSV in four layouts: long (current, older, with NVTX) and wide, with any text around it.

_COLUMNS = "ID,Process ID,Process Name,Host Name,Kernel Name,Kernel Time,Context,Stream,Block Size,Grid Size,Device,CC"
_IDENTITY = frozenset(_COLUMNS.split(","))
_NEEDED = ("ID", "Kernel Name")
_NEEDED_LONG = (*_NEEDED, "Process ID", "Metric Name", "Metric Unit", "Metric Value")
_HEADER = re.compile(r'"?ID"?,.*Kernel Name')
_EXTENT = re.compile(r"\d+", re.ASCII)
_SPEEDUP = re.compile(r"\d{1,9}(\.\d{1,30})?", re.ASCII)


def read(path: Path | str) -> list[ProfiledLaunch]:
    """Return the launches in the file; raise ResultsError if it cannot be read or has no launches."""
    return parse(table_text_of(Path(path), "CSV of ncu"), str(path))


def parse(text: str, origin: str) -> list[ProfiledLaunch]:
    """Return the launches in ncu's CSV output, with any text around the table; raise ResultsError without launches."""
    lines = io.StringIO(text.lstrip("\ufeff")).readlines()
    start = next((i for i, line in enumerate(lines) if _HEADER.match(line)), None)
    if start is None:
        raise ResultsError(f"{origin}: no table of kernels: no line starts with ID and names a Kernel Name")
    try:
        header, *body = csv.reader(lines[start:], strict=True)  # strict: an unclosed quote is an error
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
    """Read a table with a row per launch and a column per metric; the row without an ID has the units."""
    units = next((row for row in body if row and not row[0] and len(row) == len(header)), None)
    if units is None:
        raise ResultsError(f"{origin}: a wide table without its row of units")
    rows = [row for row in body if _is_launch(row)]
    _refuse_cut(rows, len(header), len(header), origin)
    columns = [i for i, name in enumerate(header) if name not in _IDENTITY and not _is_range(name)]
    mark = decimal_mark((row[i] for row in rows for i in columns), origin)
    launches: dict[tuple[int | None, int], ProfiledLaunch] = {}
    for row in rows:
        launch = _launch(dict(zip(header, row, strict=True)), origin)
        if (launch.process, launch.id) in launches:
            raise ResultsError(f"{origin}: launch {launch.id} is in two rows")
        place = f"{origin}: launch {launch.id}"
        metrics = {header[i]: _quantity(row[i], units[i], mark, f"{place}, {header[i]!r:.80}") for i in columns}
        launches[launch.process, launch.id] = replace(launch, metrics=metrics)
    return list(launches.values())


def _long(header: Sequence[str], body: Sequence[list[str]], origin: str) -> list[ProfiledLaunch]:
    """Read a table with a row per metric of a launch, shorter than the header, and perhaps a row per rule."""
    fields = header.index("Metric Value") + 1
    rows = [row for row in body if _is_launch(row)]
    _refuse_cut(rows, fields, len(header), origin)
    rows = [dict(zip(header, row, strict=False)) for row in rows]
    mark = decimal_mark((row["Metric Value"] for row in rows), origin)
    launches, metrics, rules = {}, {}, {}
    for row in rows:
        launch = _launch(row, origin)
        which = (launch.process, launch.id)
        if launches.setdefault(which, launch) != launch:
            raise ResultsError(f"{origin}: two rows contradict each other about launch {launch.id}; one is damaged")
        if name := row["Metric Name"]:
            # Metric names are unique, labels are not: `Memory Throughput` is a share and a rate in one report.
            key = name if "__" in name else f"{row.get('Section Name', '')}: {name} [{row['Metric Unit']}]"
            place = f"{origin}: launch {launch.id}, {name!r:.80}"
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
    """Return whether `--nvtx` adds the column, as `Id:Domain:Push/Pop_Range:PL_Type:...`."""
    return "_Range:" in column or column.startswith(("NVTX", "Id:Domain"))


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
    """Return a number that older layouts lack; None for text, such as a device's name."""
    return whole_number(text, place) if text and text.isascii() and text.isdigit() else None


def _extent(text: str, place: str) -> tuple[int, ...]:
    return tuple(whole_number(part, place) for part in _EXTENT.findall(text))


def _quantity(text: str, unit: str, mark: str, place: str) -> ProfiledValue:
    if not is_number(text):
        if looks_numeric(text) and (unit or not text.isascii()):  # text would have no unit
            raise ResultsError(f"{place} is {text!r:.40}, a number in no known locale; {CURE}")
        return ProfiledValue(None, unit, text)
    try:
        value, unit = to_si(number(text, mark), unit)
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


# Report files (.ncu-rep), read by NVIDIA's package `ncu-report`, without ncu and without a GPU.


def read_report(path: Path | str) -> list[ProfiledLaunch]:
    """Return the launches in the report.

    Raise BackendUnavailable without the reader, ResultsError without launches: for a corrupt file the reader returns an
    empty report.
    """
    try:
        import ncu_report
    except ImportError:
        raise BackendUnavailable(
            f"reading .ncu-rep takes the package ncu-report ({pip_install('ncu')}); without it, export the "
            "report: ncu --import FILE --csv --page raw"
        ) from None
    if not Path(path).is_file():
        raise ResultsError(f"{path}: no such report")
    try:
        context = ncu_report.load_report(str(path))  # pyright: ignore[reportAttributeAccessIssue]  # without stubs
    except (RuntimeError, OSError) as error:
        raise ResultsError(f"{path}: not a readable report ({error})") from error
    ranges = [context.range_by_idx(i) for i in range(context.num_ranges())]
    actions = [part.action_by_idx(i) for part in ranges for i in range(part.num_actions())]
    if not actions:
        raise ResultsError(f"{path}: the report is empty or corrupt: it holds no launch")
    try:
        return [_report_launch(index, action) for index, action in enumerate(actions)]
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ResultsError(f"{path}: damaged report ({type(error).__name__}: {error})") from error


def _report_launch(index: int, action: Any) -> ProfiledLaunch:
    metrics = {name: _report_quantity(action.metric_by_name(name)) for name in action.metric_names()}

    def extent(of: str) -> tuple[int, ...]:
        return tuple(int(_plain(metrics, f"launch__{of}_dim_{axis}", 1)) for axis in "xyz")

    # Push/pop ranges around the launch, written as ncu's CSV writes them: `domain:range`.
    state = action.nvtx_state()
    domains = [] if state is None else [state.domain_by_id(i) for i in state.domains()]
    major, minor = (_plain(metrics, f"device__attribute_compute_capability_{part}") for part in ("major", "minor"))
    return ProfiledLaunch(
        id=index,
        kernel=action.name(),
        metrics=metrics,
        device=int(_plain(metrics, "launch__device_id", 0)),
        capability=None if major is None else f"{major:.0f}.{minor:.0f}",
        grid=extent("grid"),
        block=extent("block"),
        ranges=tuple(f"{domain.name()}:{name}:" for domain in domains for name in domain.push_pop_ranges()),
        rules=tuple(_report_rule(result) for result in action.rule_results_as_dicts()),
    )


def _plain(metrics: Mapping[str, ProfiledValue], name: str, otherwise: Any = None) -> Any:
    quantity = metrics.get(name)
    return otherwise if quantity is None or quantity.value is None else quantity.value


def _report_quantity(metric: Any) -> ProfiledValue:
    unit = metric.unit() or ""
    if metric.kind() == metric.ValueKind_STRING or not metric.has_value():
        return ProfiledValue(None, unit, metric.as_string() or "")
    value = float(metric.as_double())
    if not math.isfinite(value):
        return ProfiledValue(None, unit, str(value))
    value, unit = to_si(value, unit)
    return ProfiledValue(value, unit, str(value))


def _report_rule(result: Mapping[str, Any]) -> ProfilerAdvice:
    message, speedup = result["rule_message"], result.get("speedup_estimation", {})
    return ProfilerAdvice(
        name=result["rule_identifier"],
        kind=str(message["type"]),
        text=message["message"],
        speedup_kind=str(speedup.get("type", "")),
        speedup=speedup.get("speedup"),
    )


# The source page as CSV, `--page source --print-source cuda,sass`: samples of warps by source line.
#
# A page is one launch: for every file a line `File Path`, a line `Function Name`, a header that begins with `Line No`
# and has `Source` twice, and rows. A row with a line number and no address is a line of source; rows with an address
# below it are its instructions. Values of a line are sums over its instructions, so only instructions are counted,
# each once.

# Titles of the samples of an instruction in versions of ncu.
_SAMPLES = ("Warp Stall Sampling (All Samples)", "Warp Stall Sampling (All Cycles)", "# Samples")
_COUNT = re.compile(r"\d+|\d{1,3}([.,]\d{3})+", re.ASCII)
_STALL, _NOT_ISSUED = "stall_", " (Not Issued)"
_WORKING = ("selected", "not_selected")  # these warps do not wait
# ncu's abbreviations of its stall reasons.
_STALLS = {
    "imc": "IMC miss", "lg": "LG throttle", "long_sb": "long scoreboard", "math": "math pipe throttle",
    "mio": "MIO throttle", "no_inst": "no instruction", "short_sb": "short scoreboard", "sleep": "sleeping",
    "tex": "TEX throttle",
}  # fmt: skip


@dataclass
class SampledLine:
    """A line of source: its file without folders, its number from 1, its text if known, its samples by stall."""

    file: str
    line: int
    text: str | None
    samples: int = 0
    stalls: Counter[str] = field(default_factory=Counter)

    def plain(self) -> dict[str, object]:
        """Return the line as a record holds it, with the most frequent stall of its warps."""
        stall = max(self.stalls, key=lambda name: self.stalls[name], default=None)
        named = _STALLS.get(stall, stall.replace("_", " ")) if stall else None
        return {"file": self.file, "line": self.line, "samples": self.samples, "text": self.text, "stall": named}


def read_source_page(path: Path | str) -> list[SampledLine]:
    """Return the lines with samples of the page in the file; raise ResultsError if the file has no such page."""
    return parse_source_page(table_text_of(Path(path), "source page of ncu"), str(path))


def parse_source_page(text: str, origin: str) -> list[SampledLine]:
    """Return the lines with samples, in the order of the page.

    Raise ResultsError if no table of lines and instructions begins in the text, if a table has no column of samples, or
    if samples are not whole numbers.
    """
    page = _Page(origin)
    try:
        for row in csv.reader(io.StringIO(text.lstrip("\ufeff")), strict=True):
            page.take(row)
    except csv.Error as error:
        raise ResultsError(f"{origin}: the page is cut or no CSV ({error})") from error
    if not page.began:
        raise ResultsError(
            f"{origin}: no page of source lines: no header begins with 'Line No'; ncu prints one with --page source "
            "--print-source cuda,sass, of kernels that were compiled with line information"
        )
    return [line for line in page.lines.values() if line.samples]


def together(launches: Iterable[Sequence[SampledLine]]) -> list[dict[str, object]]:
    """Return the lines of several launches added up, as a record holds them, the line with the most samples first."""
    sums: dict[tuple[str, int], SampledLine] = {}
    for line in (line for lines in launches for line in lines):
        total = sums.setdefault((line.file, line.line), SampledLine(line.file, line.line, line.text))
        total.samples += line.samples
        total.stalls += line.stalls
    return [line.plain() for line in sorted(sums.values(), key=lambda line: (-line.samples, line.file, line.line))]


class _Page:
    """State of the reader of a page, fed row by row."""

    def __init__(self, origin: str) -> None:
        self.lines: dict[tuple[str, int], SampledLine] = {}
        self.began = False
        self._origin, self._file, self._line = origin, "", SampledLine("", 0, None)
        self._columns: _Columns | None = None
        self._seen: set[str] = set()  # addresses: an inlined instruction may be on the page twice

    def take(self, row: Sequence[str]) -> None:
        """Take a row: a file, a header, a line of source or one of its instructions; other rows are ncu's messages."""
        title = row[0].strip() if row else ""
        if title in ("File Path", "Function Name", "Kernel Name"):
            self._columns = None
            if title == "File Path" and len(row) > 1:  # without its folders, which are of one machine
                self._file = (PureWindowsPath if "\\" in row[1] else PurePosixPath)(row[1].strip()).name
        elif title == "Line No":
            self._columns, self.began = _Columns(row, self._origin), True
        elif self._columns is not None and len(row) > self._columns.address:
            self._add(row, self._columns)

    def _add(self, row: Sequence[str], columns: "_Columns") -> None:
        number, address = row[0].strip(), row[columns.address].strip()
        if address.startswith("0x"):
            if address in self._seen or not self._line.line:
                return
            self._seen.add(address)
            self._line.samples += columns.samples_of(row)
            self._line.stalls.update(columns.stalls_of(row))
        elif number.isascii() and number.isdigit() and int(number):
            key = (self._file, int(number))
            self._line = self.lines.setdefault(key, SampledLine(*key, row[1].strip() or None))


class _Columns:
    """The columns of one header."""

    def __init__(self, header: Sequence[str], origin: str) -> None:
        names = [name.strip() for name in header]
        self._origin = origin
        self.address = self._place(names, ("Address",), "an address")
        self._samples = self._place(names, _SAMPLES, "samples of warps; collect the section SourceCounters")
        stalls = {
            name.removeprefix(_STALL): place
            for place, name in enumerate(names)
            if name.startswith(_STALL) and not name.endswith(_NOT_ISSUED)
        }
        self._stalls = {reason: place for reason, place in stalls.items() if reason not in _WORKING}

    def _place(self, names: Sequence[str], titles: Sequence[str], content: str) -> int:
        title = next((title for title in titles if title in names), None)
        if title is None:
            raise ResultsError(f"{self._origin}: the page of source lines has no column of {content}")
        return names.index(title)

    def samples_of(self, row: Sequence[str]) -> int:
        """Return the samples of an instruction; raise ResultsError if its row ends before them."""
        if len(row) <= self._samples:
            raise ResultsError(f"{self._origin}: the row of instruction {row[self.address]:.40} is cut")
        return self._count(row, self._samples)

    def stalls_of(self, row: Sequence[str]) -> dict[str, int]:
        """Return the samples of an instruction by stall reason."""
        return {name: count for name, place in self._stalls.items() if (count := self._count(row, place))}

    def _count(self, row: Sequence[str], place: int) -> int:
        text = row[place].strip() if place < len(row) else ""
        if text in ("", "-", "n/a"):
            return 0
        if not _COUNT.fullmatch(text):
            raise ResultsError(f"{self._origin}: samples are '{text:.40}', not a whole number")
        return int(text.replace(",", "").replace(".", ""))

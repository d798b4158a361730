"""Profiles in the terminal: bottlenecks, launch ledgers, and why a case takes its time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.bounds.bottleneck import SourceLine
from prism_bench.analysis.bounds.profiles import LaunchLedger, rows
from prism_bench.analysis.bounds.why import COUNTERS, CodeAgainst, CountedNear, Fix, Why, WhyCounter
from prism_bench.analysis.run_analysis import Finding
from prism_bench.profilers.metrics import ProfiledLaunch, chips, combined, why_missing
from prism_bench.record.run_record import RunRecord
from prism_bench.report.headline import times_text
from prism_bench.report.plain import changes_of, code_difference_json
from prism_bench.report.terminal.tables import FittedColumn, FittedTable, fitted
from prism_bench.units import bytes_text, count_text, share_text, time_text
from prism_bench.workflows.tracing import LaunchCost

# Profiles in the terminal: shares of peaks and the bottleneck of each case, and the launches of a capture.

_MOST_LAUNCHES = 20  # that a capture shows one by one
_SHARES = ("dram_share", "l2_share", "fp32_share", "tensor_share", "sfu_share", "issue_share", "occupancy")
_HEADINGS = ("bound", "duration", "launches", "DRAM", "of model", "emulated", *_SHARES, "registers", "local")
# Columns that a narrow terminal leaves out, the first to go first; case, bottleneck and time stay.
_DISPENSABLE = ("local", "registers", "emulated", "sfu_share", "tensor_share", "fp32_share", "launches", "l2_share",
                "occupancy", "issue_share", "of model", "DRAM")  # fmt: skip
_GRAVITY_STYLES = {"bad": "red", "untrusted": "yellow"}


def profile_rows(record: RunRecord, emulated: Mapping[str, float] | None) -> list[dict[str, Any]]:
    """Return a row for each case, with the emulated ratio by kernel where that was counted."""
    lines = rows(record)
    for line in lines if emulated is not None else ():
        line["emulated_ratio"] = (emulated or {}).get(str(line["case"]).split("[")[0])
    return lines


def profile_json(lines: Sequence[dict[str, Any]], findings: Sequence[Finding], kept: Sequence[Path]) -> dict[str, Any]:
    """Return what `prism-bench profile --json` prints."""
    return {
        "cases": list(lines),
        "findings": [asdict(finding) for finding in findings],
        "kept": [str(path) for path in kept],
    }


def profile_view(lines: Sequence[dict[str, Any]], findings: Sequence[Finding]) -> RenderableType:
    """Return the table and the findings."""
    texts = [
        Text(f"{finding.case or 'capture'}: {finding.message}", style=_GRAVITY_STYLES.get(finding.gravity, ""))
        for finding in findings
    ]
    return Group(profile_table(lines), *texts)


def profile_table(lines: Sequence[dict[str, Any]]) -> FittedTable:
    """Return shares of peaks, DRAM bytes over the compulsory ones, and the bottleneck of each case.

    `emulated` is what the source touches over what its spec declares. A column without any figure is left out.
    """
    cells = [_cells(row) for row in lines]
    filled = [i for i in range(len(_HEADINGS)) if any(line[i] != "-" for line in cells)]
    columns = [FittedColumn("kernel"), FittedColumn("label"), *(_column(_HEADINGS[i]) for i in filled)]
    named = [
        (
            (row["case"].split("[")[0], row["label"], *(line[i] for i in filled)),
            None if row["status"] == "ok" else "red",
        )
        for row, line in zip(lines, cells, strict=True)
    ]
    return fitted("counted by the profiler; its durations are no benchmark times", columns, named)


def _column(heading: str) -> FittedColumn:
    """Return the column of figures with this heading."""
    goes = _DISPENSABLE.index(heading) + 1 if heading in _DISPENSABLE else None
    return FittedColumn(heading.replace("_share", ""), numbers=True, goes=goes)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    shares = (share_text(row.get(name)) for name in _SHARES)
    parts = [row.get(name) for name in ("local_loads", "local_stores")]
    local = None if None in parts else sum(filter(None, parts))
    facts = (row["bound"] or "-", time_text(row.get("profiler_duration")), _count(row.get("launches")))
    memory = (bytes_text(row["dram_bytes"]), share_text(row["dram_ratio"]), share_text(row.get("emulated_ratio")))
    return (*facts, *memory, *shares, _count(row.get("profiled_registers")), _count(local))


def _count(number: float | None) -> str:
    return "-" if number is None else f"{number:.4g}"


def capture_json(launches: Sequence[ProfiledLaunch]) -> list[dict[str, Any]]:
    """Return the launches of a capture, with the metric set where the names of its metrics are known.

    `missing` has the metrics without a value, and why.
    """
    return [
        {
            "id": launch.id,
            "process": launch.process,
            "device": launch.device,
            "kernel": launch.kernel,
            "grid": launch.grid,
            "block": launch.block,
            "capability": launch.capability,
            "values": _values([launch]),
            "missing": _missing(launch),
            "metrics": {name: asdict(quantity) for name, quantity in launch.metrics.items()},
            "rules": [asdict(rule) for rule in launch.rules],
        }
        for launch in launches
    ]


def capture_view(launches: Sequence[ProfiledLaunch]) -> RenderableType:
    """Return each launch with its values, missing metrics and the rules of ncu; of many, a row for each kernel.

    Processes and devices are shown where the capture has several.
    """
    several = tuple(key for key in ("process", "device") if len({getattr(launch, key) for launch in launches}) > 1)
    if len(launches) > _MOST_LAUNCHES:
        return _capture_by_kernel(launches, several)
    lines: list[Text] = []
    for launch in launches:
        place = "".join(f"  {key} {_known(getattr(launch, key))}" for key in several)
        lines.append(Text(f"{launch.kernel}  grid {launch.grid}  block {launch.block}{place}", style="bold"))
        values = {name: (entry["value"], entry["unit"]) for name, entry in _values([launch]).items()}
        if all(value is None for value, _ in values.values()):
            values = {name: (quantity.value, quantity.unit) for name, quantity in launch.metrics.items()}
        missing = _missing(launch)
        lines += [
            Text(f"  {name} = {value:.6g} {unit}")
            for name, (value, unit) in values.items()
            if value is not None and name not in missing
        ]
        lines += _missing_lines(missing)
        lines += [Text(f"  rule of ncu ({rule.kind}): {rule.text[:300]}", style="dim") for rule in launch.rules]
    return Group(*lines)


def _capture_by_kernel(launches: Sequence[ProfiledLaunch], several: Sequence[str]) -> RenderableType:
    """Return a table of the kernels (by process and device, where there are several), the longest in sum first."""
    groups: dict[tuple[str, ...], list[ProfiledLaunch]] = {}
    for launch in launches:
        groups.setdefault((launch.kernel, *(_known(getattr(launch, key)) for key in several)), []).append(launch)
    rows: list[tuple[float, tuple[str, ...]]] = []
    for key, group in groups.items():
        values = {name: entry["value"] for name, entry in _values(group).items()}
        seconds = sorted(filter(None, map(_seconds, group)))
        times = (sum(seconds), median(seconds), seconds[-1]) if seconds else (None, None, None)
        shares = (share_text(values.get(name)) for name in _SHARES)
        rows.append((times[0] or 0.0, (*key, str(len(group)), *map(time_text, times), *shares)))
    rows.sort(key=lambda row: -row[0])
    numbers = ("launches", "in sum", "median", "longest", *_SHARES)
    first = 1 + len(several)
    filled = [i for i in range(first + len(numbers)) if i <= first or any(cells[i] != "-" for _, cells in rows)]
    columns = [FittedColumn("kernel"), *map(FittedColumn, several), *(_column(name) for name in numbers)]
    table = fitted(
        f"{count_text(len(launches), 'launch', 'launches')} by kernel; --json has each launch",
        [columns[i] for i in filled],
        [(tuple(cells[i] for i in filled), None) for _, cells in rows],
    )
    missing = {name: reason for launch in launches for name, reason in _missing(launch).items()}
    return Group(table, *_missing_lines(missing, "in some launch: "))


def _missing_lines(missing: Mapping[str, str], where: str = "") -> list[Text]:
    """Return a line for each reason with the metrics that have no value for it."""
    names: dict[str, list[str]] = {}
    for name, reason in missing.items():
        names.setdefault(reason, []).append(name)
    return [Text(f"  {where}no value of {', '.join(of)}: {reason}", style="yellow") for reason, of in names.items()]


def _missing(launch: ProfiledLaunch) -> dict[str, str]:
    """Return why a counter of the launch has no value, by its name; words, such as a policy's, are values."""
    chip = chips().get(launch.capability or "")
    reasons = {
        name: why_missing(name, quantity, chip)
        for name, quantity in launch.metrics.items()
        if quantity.value is not None or quantity.is_missing
    }
    return {name: reason for name, reason in reasons.items() if reason}


def _values(launches: Sequence[ProfiledLaunch]) -> dict[str, dict[str, Any]]:
    """Return the metric set over launches of one chip; nothing where the chip is unknown."""
    chip = chips().get(launches[0].capability or "")
    return combined(launches, chip, "all") if chip else {}


def _seconds(launch: ProfiledLaunch) -> float | None:
    """Return the duration of a launch by its counter, or by its label on the details page."""
    return next(
        (
            quantity.value
            for name, quantity in launch.metrics.items()
            if quantity.unit == "s" and (name == "gpu__time_duration.sum" or ": Duration [" in name)
        ),
        None,
    )


def _known(number: int | None) -> str:
    return "unknown" if number is None else str(number)


# The launch ledger as a table and as JSON.

CAUSES = ("sync", "host", "launch", "queued")


def ledger_json(account: LaunchLedger, costs: Mapping[str, LaunchCost]) -> dict[str, Any]:
    """Return what `prism-bench ledger --json` prints."""
    return {**asdict(account), "costs": {name: asdict(cost) for name, cost in costs.items()}}


def ledger_view(account: LaunchLedger, costs: Mapping[str, LaunchCost], *, whole: bool) -> RenderableType:
    """Return a row for each range, the total first with `whole`, then what launching costs the host, and notes."""
    title = Text(f"launch ledger of {account.source}, by {account.tool} {account.version}")
    table = Table()
    table.add_column("range", overflow="fold")
    graphs = ("graphs",) if account.total.graphs else ()
    for name in ("kernels", *graphs, "launch calls", "busy", "span", "idle", "gaps", *CAUSES, "copies"):
        table.add_column(name, justify="right")
    for row in [*([account.total] if whole else []), *account.ranges]:
        causes = (time_text(row.gaps[word].seconds) if word in row.gaps else "-" for word in CAUSES)
        times = (share_text(row.busy_share), time_text(row.span), time_text(row.idle))
        copies = f"{row.copies} ({bytes_text(row.copied_bytes)})"
        kernels, *cells = (str(row.kernels), str(row.launch_calls), *times, str(row.gap_count), *causes, copies)
        table.add_row(Text(row.name or "all"), kernels, *(str(row.graphs) for _ in graphs), *cells)
    lines = [
        f"{name}: the host takes {time_text(cost.plain)} to launch it, {time_text(cost.watched)} while watched"
        for name, cost in costs.items()
    ]
    return Group(title, table, *map(Text, [*lines, *(f"note: {note}" for note in account.notes)]))


# Why a case takes its time, in a terminal: at most fifteen lines of what the kernel's page shows.

MOST = 15  # lines
_VERDICT, _FIXES, _LINES, _NOTES = 4, 3, 3, 2  # lines of each part at most; of notes, how many


def why_view(account: Why) -> RenderableType:
    """Return the account in at most `MOST` lines of the terminal.

    Lines are cut at its edge, but for the verdict and for the names and commands of notes, which are folded.
    """
    return _Account(account)


@dataclass
class _Part:
    """Lines of one subject; where the terminal has too few for all, no more than the last ones go, down to `least`."""

    lines: list[Text]
    least: int

    @property
    def spare(self) -> int:
        return len(self.lines) - self.least


class _Account:
    def __init__(self, account: Why) -> None:
        self._account = account

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts = list(_parts(self._account, console, options.max_width))
        texts = [Text(f"note      {note}", style="dim") for note in self._account.notes[:_NOTES]]
        notes = [_folded(text, console, options.max_width) for text in texts]
        while len(notes) > 1 and sum(part.least for part in parts) + sum(map(len, notes)) > MOST:
            notes.pop()  # a note with a command is shown in whole, or not at all
        _shorten(parts, MOST - sum(map(len, notes)))
        yield from [line for lines in (*(part.lines for part in parts), *notes) for line in lines][:MOST]


def _shorten(parts: Sequence[_Part], most: int) -> None:
    """Remove the last lines of the parts that can spare most, until there are no more than `most`."""
    while sum(len(part.lines) for part in parts) > most and any(part.spare for part in parts):
        max(reversed(parts), key=lambda part: part.spare).lines.pop()


def _parts(account: Why, console: Console, width: int) -> Iterator[_Part]:
    """Yield the parts from the first line to the last, without notes."""
    verdict = Text(account.verdict, style="bold yellow" if account.bottleneck else "bold")
    folded = _folded(verdict, console, width)[:_VERDICT]
    yield _Part([*_cut([Text(account.case, style="bold")]), *folded], 1 + len(folded))
    counters = [*_counters(account.counters), *_counted_in(account)]
    sources = account.lines or (account.near.lines if account.near else ())
    for lines, least in (
        (counters, COUNTERS),
        (_near(account.near), 1 + COUNTERS),
        (_roof(account), 1),
        (_fixes(account), 1),
        (_lines(sources), 1),
        (_code(account.code), 1),
    ):
        cut = _cut(lines)
        yield _Part(cut, min(least, len(cut)))


def _folded(text: Text, console: Console, width: int) -> list[Text]:
    return list(text.wrap(console, width, overflow="fold"))


def _cut(lines: Iterable[Text]) -> list[Text]:
    """Return the lines so that each is cut at the edge of the terminal."""
    cut = list(lines)
    for line in cut:
        line.no_wrap, line.overflow = True, "ellipsis"
    return cut


def _counters(counters: Iterable[WhyCounter]) -> Iterator[Text]:
    for counter in counters:
        yield Text(f"  {counter.text:>8}  {counter.meaning}")


def _counted_in(account: Why) -> Iterator[Text]:
    if account.counted_in:
        yield Text(f"          counted in {account.counted_in}", style="dim")


def _near(near: CountedNear | None) -> Iterator[Text]:
    """Yield what was counted at another workload."""
    if near is None:
        return
    yield Text(f"at {near.label:<7}{near.verdict}")
    yield from _counters(near.counters)


def _roof(account: Why) -> Iterator[Text]:
    if account.roof:
        roof = account.roof
        least = f"{time_text(roof.seconds)} cold; the {roof.limit} limit allows {time_text(roof.least)}"
        yield Text(f"roof      {least}: {share_text(roof.share)} of it reached")
    elif account.seconds:
        yield Text(f"time      {time_text(account.seconds)} cold")


def _fixes(account: Why) -> Iterator[Text]:
    for number, fix in enumerate(account.fixes[:_FIXES]):
        yield Text(f"{'' if number else 'fix':<10}{fix.words}{_gain(account, fix)}")


def _gain(account: Why, fix: Fix) -> str:
    """Return the time that a fix would bring at best, and how many times as fast that is."""
    if fix.seconds is None:
        return ""
    faster = f", {times_text(account.roof.seconds / fix.seconds)} as fast" if account.roof else ""
    return f": {time_text(fix.seconds)}{faster}"


def _lines(lines: Sequence[SourceLine]) -> Iterator[Text]:
    for number, line in enumerate(lines[:_LINES]):
        stall = f" ({line.stall})" if line.stall else ""
        text = f"  {line.text.strip()}" if line.text else ""
        yield Text(f"{'' if number else 'source':<10}{line.file}:{line.line} {share_text(line.share)}{stall}{text}")


def _code(code: CodeAgainst | None) -> Iterator[Text]:
    """Yield how the machine code differs from the earlier run's."""
    if code is None:
        return
    if code.state == "unknown":
        yield Text(f"code      {code.note}")
        return
    facts = [f"{name.replace('_', ' ')} {was} to {now}" for name, (was, now) in code.facts.items()]
    facts += ["launched otherwise"] if code.relaunched else []
    yield Text(f"code      {code.state} since {code.before}")
    if facts:
        yield Text(f"          {', '.join(facts)}")
    for entry in code_difference_json(code.entries)[:1]:
        yield Text(f"          {entry['entry']}: {', '.join(changes_of(entry)) or 'other operands or another order'}")
    if code.note:
        yield Text(f"          {code.note}", style="dim")

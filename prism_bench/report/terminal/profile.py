"""Profiles in the terminal: shares of peaks and the bottleneck of each case, and the launches of a capture."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from prism_bench.analysis.bounds.profile_table import rows
from prism_bench.analysis.findings import Finding
from prism_bench.profilers.chips import chips
from prism_bench.profilers.launches import ProfiledLaunch
from prism_bench.profilers.metrics import combined, why_missing
from prism_bench.record.run_record import RunRecord
from prism_bench.report.terminal.fitted_table import FittedColumn, FittedTable, fitted
from prism_bench.units import bytes_text, count_text, share_text, time_text

MOST_LAUNCHES = 20  # that a capture shows one by one
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


def profile_json(lines: Sequence[dict[str, Any]], found: Sequence[Finding], kept: Sequence[Path]) -> dict[str, Any]:
    """Return what `prism-bench profile --json` prints."""
    return {"cases": list(lines), "findings": [asdict(one) for one in found], "kept": [str(one) for one in kept]}


def profile_view(lines: Sequence[dict[str, Any]], found: Sequence[Finding]) -> RenderableType:
    """Return the table and the findings."""
    texts = [
        Text(f"{one.case or 'capture'}: {one.message}", style=_GRAVITY_STYLES.get(one.gravity, "")) for one in found
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
        {"id": one.id, "process": one.process, "device": one.device,
         "kernel": one.kernel, "grid": one.grid, "block": one.block, "capability": one.capability,
         "values": _values([one]), "missing": _missing(one),
         "metrics": {name: asdict(quantity) for name, quantity in one.metrics.items()},
         "rules": [asdict(rule) for rule in one.rules]}
        for one in launches
    ]  # fmt: skip


def capture_view(launches: Sequence[ProfiledLaunch]) -> RenderableType:
    """Return each launch with its values, missing metrics and the rules of ncu; of many, a row for each kernel.

    Processes and devices are shown where the capture has several.
    """
    several = tuple(key for key in ("process", "device") if len({getattr(one, key) for one in launches}) > 1)
    if len(launches) > MOST_LAUNCHES:
        return _capture_by_kernel(launches, several)
    lines: list[Text] = []
    for one in launches:
        place = "".join(f"  {key} {_known(getattr(one, key))}" for key in several)
        lines.append(Text(f"{one.kernel}  grid {one.grid}  block {one.block}{place}", style="bold"))
        values = {name: (entry["value"], entry["unit"]) for name, entry in _values([one]).items()}
        if all(value is None for value, _ in values.values()):
            values = {name: (quantity.value, quantity.unit) for name, quantity in one.metrics.items()}
        missing = _missing(one)
        lines += [
            Text(f"  {name} = {value:.6g} {unit}")
            for name, (value, unit) in values.items()
            if value is not None and name not in missing
        ]
        lines += _missing_lines(missing)
        lines += [Text(f"  rule of ncu ({rule.kind}): {rule.text[:300]}", style="dim") for rule in one.rules]
    return Group(*lines)


def _capture_by_kernel(launches: Sequence[ProfiledLaunch], several: Sequence[str]) -> RenderableType:
    """Return a table of the kernels (by process and device, where there are several), the longest in sum first."""
    groups: dict[tuple[str, ...], list[ProfiledLaunch]] = {}
    for one in launches:
        groups.setdefault((one.kernel, *(_known(getattr(one, key)) for key in several)), []).append(one)
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
    missing = {name: reason for one in launches for name, reason in _missing(one).items()}
    return Group(table, *_missing_lines(missing, "in some launch: "))


def _missing_lines(missing: Mapping[str, str], where: str = "") -> list[Text]:
    """Return a line for each reason with the metrics that have no value for it."""
    names: dict[str, list[str]] = {}
    for name, reason in missing.items():
        names.setdefault(reason, []).append(name)
    return [Text(f"  {where}no value of {', '.join(of)}: {reason}", style="yellow") for reason, of in names.items()]


def _missing(one: ProfiledLaunch) -> dict[str, str]:
    """Return why a counter of the launch has no value, by its name; words, such as a policy's, are values."""
    chip = chips().get(one.capability or "")
    reasons = {
        name: why_missing(name, quantity, chip)
        for name, quantity in one.metrics.items()
        if quantity.value is not None or quantity.is_missing
    }
    return {name: reason for name, reason in reasons.items() if reason}


def _values(launches: Sequence[ProfiledLaunch]) -> dict[str, dict[str, Any]]:
    """Return the metric set over launches of one chip; nothing where the chip is unknown."""
    chip = chips().get(launches[0].capability or "")
    return combined(launches, chip, "all") if chip else {}


def _seconds(one: ProfiledLaunch) -> float | None:
    """Return the duration of a launch by its counter, or by its label on the details page."""
    return next(
        (
            quantity.value
            for name, quantity in one.metrics.items()
            if quantity.unit == "s" and (name == "gpu__time_duration.sum" or ": Duration [" in name)
        ),
        None,
    )


def _known(number: int | None) -> str:
    return "unknown" if number is None else str(number)

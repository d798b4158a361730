"""Profiles in the terminal: shares of peaks and the bottleneck of each case, and the launches of a capture."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from prism_bench.analysis.bounds.profile_table import rows
from prism_bench.analysis.findings import Finding
from prism_bench.profilers.chips import chip_of
from prism_bench.profilers.launches import ProfiledLaunch
from prism_bench.profilers.metrics import combined
from prism_bench.report.terminal.fitted_table import FittedColumn, FittedTable, fitted
from prism_bench.run_record import RunRecord
from prism_bench.units import bytes_text, share_text, time_text

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
    """Return the launches of a capture, with the metric set where the names of its metrics are known."""
    return [
        {"kernel": one.kernel, "grid": one.grid, "block": one.block, "capability": one.capability,
         "values": combined([one], chip_of(one.capability), "all") if one.capability else {},
         "metrics": {name: asdict(quantity) for name, quantity in one.metrics.items()},
         "rules": [asdict(rule) for rule in one.rules]}
        for one in launches
    ]  # fmt: skip


def capture_view(launches: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return each launch with its known values, else with the metrics of ncu, and the rules of ncu."""
    lines: list[Text] = []
    for one in launches:
        lines.append(Text(f"{one['kernel']}  grid {one['grid']}  block {one['block']}", style="bold"))
        known = {name: entry for name, entry in one["values"].items() if entry["value"] is not None}
        shown = known or {name: entry for name, entry in one["metrics"].items() if entry["value"] is not None}
        lines += [Text(f"  {name} = {entry['value']:.6g} {entry['unit']}") for name, entry in shown.items()]
        lines += [Text(f"  rule of ncu ({rule['kind']}): {rule['text'][:300]}", style="dim") for rule in one["rules"]]
    return Group(*lines)

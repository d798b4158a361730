"""Views of a recording: the terminal's table, JSON, and a trace for Perfetto."""

from collections.abc import Iterator
from dataclasses import asdict
from statistics import median
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from prism_bench.extensions.timeline.recording import ProbeCost, Recording
from prism_bench.extensions.timeline.regions import RegionRow, Spread, overlaps, rows
from prism_bench.io.documents import json_text
from prism_bench.report.terminal.tables import FittedColumn, fitted
from prism_bench.units import change_range_text, change_text, count_text, share_text, time_text

_NO_TIMES = "no times: the emulator runs warps in its own order; order and counts are those of the source"

# Terminal.


def timeline_view(recording: Recording) -> RenderableType:
    """Return the table of the regions; a high cost of the probes comes first."""
    cost = [Text(cost_text(recording.cost))] if recording.cost else [Text(_NO_TIMES)]
    notes = [Text(note, "yellow") for note in recording.notes]
    if recording.cost and recording.cost.is_high:
        cost[0].stylize("yellow")
        return Group(*cost, *notes, *_table(recording))
    return Group(*_table(recording), *cost, *notes)


def cost_text(cost: ProbeCost) -> str:
    """Return what the probes cost, in all and for each event."""
    interval = f", 95 % interval {change_range_text(*(1 + each for each in cost.interval))}" if cost.interval else ""
    verdict = "more than 5 %, so its regions are longer than without them" if cost.is_high else "at most 5 %"
    events = f"by the {count_text(cost.events, 'event')} of the busiest warp's place"
    each = f"{cost.per_event * 1e9:.1f} ns an event, {events}" if cost.is_resolved else "which is within the noise"
    return (
        f"the probes change the kernel by {change_text(1 + cost.share)} ({verdict}): {time_text(median(cost.plain))} "
        f"without, {time_text(median(cost.probed))} with them ({count_text(len(cost.plain), 'pair')}{interval}), {each}"
    )


def _table(recording: Recording) -> Iterator[RenderableType]:
    timeline, partners = recording.timeline, _partners(recording)
    yield Text(f"{recording.case} on {recording.device}: {count_text(len(timeline), 'region')}", "bold")
    columns = [FittedColumn("region"), *(FittedColumn(name, numbers=True) for name in ("count", "blocks", "warps"))]
    if timeline.is_timed:
        columns += [FittedColumn(name, numbers=True) for name in ("share", "median", "5 to 95 %")]
        columns += [
            FittedColumn("slowest warp", numbers=True, goes=2),
            FittedColumn("slowest SM", numbers=True, goes=1),
        ]
        columns += [FittedColumn("meanwhile", goes=4)]
    columns += [FittedColumn("inside", goes=3)]
    yield fitted("", columns, [(_cells(row, partners), None) for row in rows(timeline)])
    if timeline.is_timed:
        yield Text(
            "share: of the warps' time between first and last region, without regions inside; slowest: longest total "
            "against the median; meanwhile: share of its time in which another warp of the block is in that region",
            "dim",
        )
        mismatch = time_text(timeline.mismatch * 1e-9)
        yield Text(f"95 % of the regions miss the device's clock by at most {mismatch}", "dim")


def _cells(row: RegionRow, partners: dict[str, str]) -> tuple[str, ...]:
    counts = (row.name, f"{row.count:,}", f"{row.blocks:,}", str(row.warps))
    if row.low is None or row.middle is None or row.high is None:
        return (*counts, row.inside)
    low, middle, high = (time_text(value * 1e-9) for value in (row.low, row.middle, row.high))
    spreads = (_slowest(row.over_warps), _slowest(row.over_multiprocessors))
    return (
        *counts,
        share_text(row.share),
        middle,
        f"{low} to {high}",
        *spreads,
        partners.get(row.name, ""),
        row.inside,
    )


def _slowest(spread: Spread | None) -> str:
    return change_text(spread.highest / spread.median) if spread and spread.median else "-"


def _partners(recording: Recording) -> dict[str, str]:
    """Return for each region the one that another warp of its block is in for the largest share of its time."""
    best: dict[str, tuple[float, str]] = {}
    for (first, second), share in overlaps(recording.timeline).items():
        best[first] = max(best.get(first, (0.0, "")), (share, second))
    return {first: f"{share_text(share)} {second}" for first, (share, second) in best.items() if share}


# JSON.


def timeline_json(recording: Recording) -> dict[str, Any]:
    """Return the recording without its single regions."""
    timeline, cost = recording.timeline, recording.cost
    return {
        "case": recording.case,
        "backend": recording.backend,
        "device": recording.device,
        "unit": "ns" if timeline.is_timed else "events",
        "buffer": {"regions": recording.buffer.shards * recording.buffer.regions, "used": len(timeline)},
        "cost": cost and {
            "plain_seconds": cost.plain, "probed_seconds": cost.probed, "seconds": cost.seconds, "share": cost.share,
            "interval": cost.interval, "events": cost.events, "seconds_per_event": cost.per_event,
        },
        "mismatch_ns": timeline.mismatch if timeline.is_timed else None,
        "notes": [*recording.notes, *([] if timeline.is_timed else [_NO_TIMES])],
        "regions": [asdict(row) for row in rows(timeline)],
        "overlaps": [
            {"region": first, "other": second, "share": share}
            for (first, second), share in overlaps(timeline).items()
        ],
    }  # fmt: skip


# Perfetto: the JSON format of Chrome's trace events, which ui.perfetto.dev opens. Times are microseconds, with
# fractions; a process is a multiprocessor, a thread a warp's place on it.
# https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU


def perfetto_trace(recording: Recording) -> bytes:
    """Return the trace of all regions; on the emulator an event takes one microsecond of it."""
    timeline, scale = recording.timeline, 1e-3 if recording.timeline.is_timed else 1.0
    threads = timeline.slot * 32 + timeline.warp
    events: list[dict[str, Any]] = []
    for number in map(int, np.unique(timeline.multiprocessor)):
        title = f"SM {number}" if timeline.is_timed else "emulator, in order of events, no times"
        events.append({"name": "process_name", "ph": "M", "pid": number, "args": {"name": title}})
    for number, thread in np.unique(np.stack((timeline.multiprocessor, threads)), axis=1).T.tolist():
        title = f"block slot {thread // 32}, warp {thread % 32}"
        events.append({"name": "thread_name", "ph": "M", "pid": number, "tid": thread, "args": {"name": title}})
    begin, length = (np.round(times * scale, 4).tolist() for times in (timeline.begin, timeline.length))
    places = (timeline.multiprocessor, threads, timeline.block, timeline.launch)
    regions = zip(timeline.region.tolist(), begin, length, *(place.tolist() for place in places), strict=True)
    for number, at, lasts, process, thread, block, launch in regions:
        events.append({
            "name": timeline.names[number], "ph": "X", "ts": at, "dur": lasts, "pid": process, "tid": thread,
            "args": {"block": block, "launch": launch},
        })  # fmt: skip
    notes = {
        key: value for key, value in timeline_json(recording).items() if key in ("case", "device", "unit", "notes")
    }
    return json_text({"traceEvents": events, "displayTimeUnit": "ns", "otherData": notes}).encode()

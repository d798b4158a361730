"""The machine: what it can do, under which conditions it was measured, how much it differs from itself."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from prism_bench.analysis.summary import number
from prism_bench.report.machine import facts, machine_name
from prism_bench.report.site.attention import case_link
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.report.site.shown import ShownCase
from prism_bench.report.terminal.noise import noise_json
from prism_bench.run_record import RunRecord

_QUANTITIES = ("sm_clock", "memory_clock", "power", "power_average", "temperature", "utilization")


def page(context: SiteContext, loads: Mapping[str, Sequence]) -> Page:
    """Return the page of the machine."""
    reading, record = context.reading, context.record
    noise = noise_json(context.noise) if context.noise else None
    view = {
        "machine": machine_name(record), "night": record.created, "backend": record.backend,
        "floors": dict(reading.limits.floors), "ceilings": dict(reading.limits.ceilings),
        "sources": dict(reading.limits.sources), "cold_doubt": reading.limits.cold_doubt,
        "facts": {title: dict(pairs) for title, pairs in facts(record)},
        "rulers": [_ruler(context, told) for told in context.cases.values() if told.case.ceiling],
        "noise": noise, "monitor": list(record.monitor), "telemetry": _telemetry(record),
        "passed_by": list(context.passed_by),
        "records": [asdict(one) for one in context.own[-30:]],
    }  # fmt: skip
    return Page("machine", "Machine", view, scripts=("plot.js", "pictures.js"))


def _ruler(context: SiteContext, told: ShownCase) -> dict[str, Any]:
    """Return the times and rates of a kernel that measures the machine."""
    return {"case": told.case.name, "ceiling": told.case.ceiling, "label": told.case.label,
            "cold": number(told.row["cold_time"]), "hot": number(told.row["hot_time"]),
            "bandwidth": number(told.row["bandwidth"]), "flop_rate": number(told.row["flop_rate"]),
            "link": case_link(context, told.case.name)}  # fmt: skip


def _telemetry(record: RunRecord) -> dict[str, Any]:
    """Return the windows of the run in the record's order: each case and, by quantity, (lowest, median, highest)."""
    windows = [
        (case.name, one.metric, process, evidence)
        for case in record.cases for one in case.measurements if one.metric != "launch_time"
        for process, evidence in enumerate(one.evidence)
    ]  # fmt: skip
    quantities = [name for name in _QUANTITIES if any(name in evidence.spans for *_, evidence in windows)]
    return {
        "windows": [[case, metric, process] for case, metric, process, _ in windows],
        "quantities": {name: [evidence.spans.get(name) for *_, evidence in windows] for name in quantities},
    }

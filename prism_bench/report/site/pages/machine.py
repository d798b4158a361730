"""The machine: what it can do, under which conditions it was measured, how much it differs from itself."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from prism_bench.report.plain import facts, machine_name, noise_json
from prism_bench.report.site.answers import case_link, machine_answer
from prism_bench.report.site.cases import telemetry
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.report.view import CaseView

_FLOOR = ("case", "metric", "seconds", "between", "within", "smallest_change", "processes")


def page(context: SiteContext, loads: Mapping[str, Sequence]) -> Page:
    """Return the page of the machine."""
    reading, record = context.reading, context.record
    noise = noise_json(context.noise) if context.noise else None
    if noise:
        noise["floors"] = [{name: floor[name] for name in _FLOOR} for floor in noise["floors"]]
    view = {
        "machine": machine_name(record),
        "answer": machine_answer(reading.limits),
        "night": record.created,
        "backend": record.backend,
        "floors": dict(reading.limits.floors),
        "ceilings": dict(reading.limits.ceilings),
        "sources": dict(reading.limits.sources),
        "cold_doubt": reading.limits.cold_doubt,
        "facts": {title: dict(pairs) for title, pairs in facts(record)},
        "ceiling_cases": [_ceiling_case(context, view) for view in context.cases.values() if view.case.ceiling],
        "noise": noise,
        "monitor": list(record.monitor),
        "telemetry": telemetry(record),
        "passed_by": list(context.passed_by),
        "records": [asdict(facts) for facts in context.own[-30:]],
    }
    return Page("machine", "Machine", view, scripts=("plot.js", "pictures.js"), drawn=view["telemetry"])


def _ceiling_case(context: SiteContext, view: CaseView) -> dict[str, Any]:
    """Return the times and rates of a kernel that measures the machine."""
    return {
        "case": view.case.name,
        "ceiling": view.case.ceiling,
        "label": view.case.label,
        "cold": view.number("cold_time"),
        "hot": view.number("hot_time"),
        "bandwidth": view.number("bandwidth"),
        "flop_rate": view.number("flop_rate"),
        "link": case_link(context, view.case.name),
    }

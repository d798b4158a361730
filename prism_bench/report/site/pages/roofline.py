"""The roofline of the whole catalogue, as the newest run measured it."""

from collections.abc import Hashable, Mapping
from typing import Any

from prism_bench.analysis.bounds.roofline import plotted, roofs
from prism_bench.analysis.summary import number
from prism_bench.report.site.attention import case_link
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page

_NUMBERS = ("intensity", "flop_rate", "flop_share", "bandwidth", "bandwidth_share", "cold_time", "bound_share")


def page(context: SiteContext) -> Page:
    """Return the page of the roofline."""
    reading = context.reading
    rows = [_row(context, row) for row in plotted(reading.frame).to_dict("records")]
    rows.sort(key=lambda row: -(row["bound_share"] or 0))
    view = {"night": context.record.created, "ceilings": dict(reading.limits.ceilings),
            "floors": dict(reading.limits.floors), "cases": rows,
            "left_out": len(reading.cases) - len(rows)}  # fmt: skip
    bandwidth = {"bandwidth": reading.limits.ceilings.get("bandwidth")}
    return Page("roofline", "Roofline", view, {"roofs": {**bandwidth, **roofs(reading.limits)}},
                scripts=("plot.js", "pictures.js"))  # fmt: skip


def _row(context: SiteContext, row: Mapping[Hashable, Any]) -> dict[str, Any]:
    case = context.record.case(row["case"])
    return {"case": row["case"], "implementation": row["implementation"], "label": row["label"],
            "variant": row["variant"],
            "arithmetic": case.arithmetic if case else None, "bound": row["bound"],
            "link": case_link(context, row["case"]),
            **{name: number(row[name]) for name in _NUMBERS}}  # fmt: skip

"""The roofline of the whole catalogue, as the newest run measured it."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from prism_bench.analysis.bounds.bottleneck import ARITHMETIC, PRODUCTS, ceiling_of, plotted, roofs, unmeasured_peaks
from prism_bench.analysis.summary import number
from prism_bench.measure.plausibility import Limits
from prism_bench.report.site.answers import case_link, roofline_answer
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page

_DRAWN = (
    "case",
    "label",
    "variant",
    "arithmetic",
    "bound",
    "link",
    "intensity",
    "flop_rate",
    "cold_time",
    "bound_share",
)
_NUMBERS = ("intensity", "flop_rate", "flop_share", "bandwidth", "bandwidth_share", "cold_time", "bound_share")


def page(context: SiteContext) -> Page:
    """Return the page of the roofline."""
    reading = context.reading
    rows = [_row(context, row) for row in plotted(reading.frame).to_dict("records")]
    rows.sort(key=lambda row: (row["bound_share"] is None, row["bound_share"] or 0))
    peaks = unmeasured_peaks(context.record.machine, reading.limits, {str(row["arithmetic"]) for row in rows})
    view = {
        "night": context.record.created,
        "answer": roofline_answer(reading.busy_shares),
        "ceilings": dict(reading.limits.ceilings),
        "peaks": peaks,
        "floors": dict(reading.limits.floors),
        "cases": rows,
        "left_out": len(reading.cases) - len(rows),
    }
    bandwidth = {"bandwidth": reading.limits.ceilings.get("bandwidth")}
    drawn = {
        "points": {name: [_short(row[name]) for row in rows] for name in _DRAWN},
        "roofs": {**bandwidth, **roofs(reading.limits)},
        "peaks": peaks,
    }
    return Page(
        "roofline",
        "Roofline",
        view,
        {"unmeasured": _unmeasured(rows, reading.limits)},
        scripts=("plot.js", "roofline.js", "pictures.js"),
        drawn=drawn,
        empty=not rows,
    )


def _unmeasured(rows: Sequence[Mapping[str, Any]], limits: Limits) -> dict[str, int]:
    """Return the kinds of arithmetic whose ceiling the run did not measure, with the number of their cases.

    Those of PRODUCTS only where there are cases.
    """
    counts = Counter(row["arithmetic"] for row in rows)
    kinds = ARITHMETIC | {name: title for name, title in PRODUCTS.items() if counts[name]}
    return {title: counts[name] for name, title in kinds.items() if ceiling_of(name, limits) is None}


def _short(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _row(context: SiteContext, row: Mapping[Hashable, Any]) -> dict[str, Any]:
    case = context.record.case(row["case"])
    return {
        "case": row["case"],
        "implementation": row["implementation"],
        "label": row["label"],
        "variant": row["variant"],
        "arithmetic": case.arithmetic if case else None,
        "bound": row["bound"],
        "link": case_link(context, row["case"]),
        **{name: number(row[name]) for name in _NUMBERS},
    }

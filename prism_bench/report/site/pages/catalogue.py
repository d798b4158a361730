"""The catalogue: every kernel and variant with its times, its share of the limit, its best peer, budgets and trend."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prism_bench.analysis import rivals
from prism_bench.analysis.summary import number
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page, kernel_page
from prism_bench.report.site.shown import ShownCase
from prism_bench.report.site.sparkline import sparkline
from prism_bench.report.terminal.case_table import VERDICTS, table_of
from prism_bench.workload import LABELS

_ORIGINS = {"newest": "measured", "older": "older", "round": "round"}  # the best first: it represents the row
_NIGHTS = 60  # of a sparkline


def page(context: SiteContext) -> Page:
    """Return the page of all kernels."""
    rows = [row for kernel, told in context.kernels() for row in _rows(context, kernel, told)]
    rows.sort(key=lambda row: row["state"] == "unmeasured")
    shown = {"families": sorted({row["family"] for row in rows if row["family"]}), "labels": LABELS,
             "verdicts": [word for word in VERDICTS if any(row["budget"] == word for row in rows)]}  # fmt: skip
    return Page("catalogue", "Catalogue", {"created": context.record.created, "kernels": rows}, shown)


def _rows(context: SiteContext, kernel: str, told: Sequence[ShownCase]) -> Iterator[dict[str, Any]]:
    """Yield a row for the kernel and one for each variant of it."""
    spec = context.catalogue.kernels.get(kernel) if context.catalogue else None
    variants = [None, *(spec.variants if spec else ())]
    variants += [one.case.variant for one in told if one.case.variant not in variants]
    for variant in dict.fromkeys(variants):
        own = {one.case.label: one for one in told if one.case.variant == variant}
        family = spec.family if spec else next((one.case.family for one in told), "")
        yield _row(context, kernel, variant, family, own)


def _row(
    context: SiteContext, kernel: str, variant: str | None, family: str, own: Mapping[str, ShownCase]
) -> dict[str, Any]:
    largest = next((own[label] for label in reversed(LABELS) if label in own and _time(own[label])), None)
    rest = [label for label in own if label not in LABELS]
    largest = largest or next((own[label] for label in rest), None)
    return {
        "kernel": kernel, "variant": variant, "family": family, "link": f"{kernel_page(kernel)}.html",
        "times": {label: _cell(own[label]) for label in (*LABELS, *rest) if label in own},
        "limit": _limit(largest), "peer": _peer(largest), "budget": _budget(list(own.values())),
        "trend": _trend(context, largest), "state": _state(own),
    }  # fmt: skip


def _time(told: ShownCase) -> float | None:
    metric = "cold_time" if number(told.row["cold_time"]) else "wall_time"
    return number(told.row[metric])


def _cell(told: ShownCase) -> dict[str, Any]:
    reason = told.case.reason if told.case.status != "ok" else told.row["invalid"]
    return {"case": told.case.name, "workload": told.row["workload"], "seconds": _time(told),
            "status": told.case.status, "reason": reason, "created": told.created, "origin": told.origin}  # fmt: skip


def _limit(told: ShownCase | None) -> dict[str, Any] | None:
    share = number(told.row["bound_share"]) if told else None
    return {"share": share, "by": told.row["bound"], "label": told.case.label} if told and share else None


def _peer(told: ShownCase | None) -> dict[str, Any] | None:
    ratio = number(told.row["peer_ratio"]) if told else None
    best = next(iter(rivals.peers(told.case)), None) if told and ratio else None
    if told is None or best is None:
        return None
    return {"ratio": ratio, "name": best.name, "label": told.case.label, "unstable": best.unstable_text}


def _budget(told: Sequence[ShownCase]) -> str:
    """Return the worst verdict of all its cases; an empty word where nothing was promised."""
    rows = table_of([one.line for one in told]).rows
    words = [row.budget.sort for row in rows if row.budget.sort]
    return next((word for word in VERDICTS if word in words), "")


def _state(own: Mapping[str, ShownCase]) -> str:
    """Return `measured`, `older` or `round` where only those know it, `unmeasured`, or what went wrong."""
    if not own:
        return "unmeasured"
    wrong = [one.case.status for one in own.values() if one.case.status not in ("ok", "skipped")]
    if wrong:
        return wrong[0]
    timed = [one for one in own.values() if _time(one)]
    origins = {one.origin for one in timed}
    return next((word for origin, word in _ORIGINS.items() if origin in origins), "unmeasured")


def _trend(context: SiteContext, told: ShownCase | None) -> dict[str, Any] | None:
    """Return the last runs of its cold time and the newest step in it."""
    if told is None:
        return None
    wanted = {("cold_time", "kernel"), ("wall_time", "kernel")}
    series = [one for one in context.series.get(told.case.name, ()) if (one.key.metric, one.key.subject) in wanted]
    if not series:
        return None
    values = series[0].values[-_NIGHTS:]
    steps = [step for step in context.steps.get(told.case.name, ()) if step.key == series[0].key]
    return {"label": told.case.label, "nights": len(series[0].values), "line": sparkline(values.tolist()),
            "step": steps[0].ratio if steps else None, "since": steps[0].since if steps else None}  # fmt: skip

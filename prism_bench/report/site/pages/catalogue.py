"""The catalogue: every kernel and variant with its times, its share of the limit, its best peer, budgets and trend."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prism_bench.analysis import peers
from prism_bench.analysis.summary import number
from prism_bench.report.site.answers import catalogue_answer
from prism_bench.report.site.cases import forms, operation_page, recent, sparkline
from prism_bench.report.site.context import ShownCase, SiteContext
from prism_bench.report.site.page import Page, kernel_page
from prism_bench.report.terminal.record import VERDICTS, table_of
from prism_bench.spec.workload import LABELS

# The best first: it represents the row.
_ORIGINS = {"newest": "measured", "older": "older", "round": "round", "languages": "languages"}
_NIGHTS = 60  # of a sparkline


def page(context: SiteContext) -> Page:
    """Return the page of all kernels."""
    rows = [row for kernel, cases in context.kernels() for row in _rows(context, kernel, cases)]
    rows.sort(key=_rank)
    labels = [label for label in LABELS if any(label in row["times"] for row in rows)]
    shown = {
        "families": sorted({row["family"] for row in rows if row["family"]}),
        "labels": labels or LABELS,
        "trends": any(row["trend"] and row["trend"]["line"] for row in rows),
        "verdicts": [word for word in VERDICTS if any(row["budget"] == word for row in rows)],
    }
    view = {
        "created": context.record.created,
        "answer": catalogue_answer(rows, context.record.stand_in),
        "kernels": rows,
    }
    return Page("catalogue", "Catalogue", view, shown)


def _rank(row: Mapping[str, Any]) -> tuple[int, float, str]:
    """Sort the worst first: what went wrong, missed budgets, then the farthest from its limit; unmeasured rows last."""
    if row["state"] == "unmeasured":
        return 3, 0.0, row["kernel"]
    grade = 0 if row["state"] not in _ORIGINS.values() else 1 if row["budget"] == "missed" else 2
    return grade, row["limit"]["share"] if row["limit"] else 2.0, row["kernel"]


def _rows(context: SiteContext, kernel: str, cases: Sequence[ShownCase]) -> Iterator[dict[str, Any]]:
    """Yield a row for the kernel and one for each variant of it."""
    spec = context.catalogue.kernels.get(kernel) if context.catalogue else None
    variants = [None, *(spec.variants if spec else ())]
    variants += [one.case.variant for one in cases if one.case.variant not in variants]
    for variant in dict.fromkeys(variants):
        own = {one.case.label: one for one in cases if one.case.variant == variant}
        family = spec.family if spec else next((one.case.family for one in cases), "")
        yield _row(context, kernel, variant, family, own)


def _row(
    context: SiteContext, kernel: str, variant: str | None, family: str, own: Mapping[str, ShownCase]
) -> dict[str, Any]:
    largest = next((own[label] for label in reversed(LABELS) if label in own and _time(own[label])), None)
    rest = [label for label in own if label not in LABELS]
    largest = largest or next((own[label] for label in rest), None)
    return {
        "kernel": kernel,
        "variant": variant,
        "family": family,
        "link": f"{kernel_page(kernel)}.html",
        "languages": len(forms(context.catalogue, kernel)) if variant is None else 0,
        "operation": f"{operation_page(kernel)}.html",
        "times": {label: _cell(own[label]) for label in (*LABELS, *rest) if label in own},
        "limit": _limit(largest),
        "peer": _peer(largest),
        "budget": _budget(list(own.values())),
        "trend": _trend(context, largest),
        "state": _state(own),
    }


def _time(shown: ShownCase) -> float | None:
    metric = "cold_time" if number(shown.row["cold_time"]) else "wall_time"
    return number(shown.row[metric])


def _cell(shown: ShownCase) -> dict[str, Any]:
    reason = shown.case.reason if shown.case.status != "ok" else shown.row["invalid"]
    return {
        "case": shown.case.name,
        "workload": shown.row["workload"],
        "seconds": _time(shown),
        "status": shown.case.status,
        "reason": reason,
        "elsewhere": shown.elsewhere,
    }


def _limit(shown: ShownCase | None) -> dict[str, Any] | None:
    share = number(shown.row["bound_share"]) if shown else None
    return {"share": share, "by": shown.row["bound"], "label": shown.case.label} if shown and share else None


def _peer(shown: ShownCase | None) -> dict[str, Any] | None:
    ratio = number(shown.row["peer_ratio"]) if shown else None
    best = next(iter(peers.peers(shown.case)), None) if shown and ratio else None
    if shown is None or best is None:
        return None
    return {"ratio": ratio, "name": best.name, "label": shown.case.label, "unstable": best.unstable_text}


def _budget(cases: Sequence[ShownCase]) -> str:
    """Return the worst verdict of all its cases; an empty word where nothing was promised."""
    rows = table_of([one.line for one in cases]).rows
    words = [row.budget.sort for row in rows if row.budget.sort]
    return next((word for word in VERDICTS if word in words), "")


def _state(own: Mapping[str, ShownCase]) -> str:
    """Return `measured`, `older`, `round` or `languages` where only those know it, `unmeasured`, or what went wrong."""
    if not own:
        return "unmeasured"
    wrong = [one.case.status for one in own.values() if one.case.status not in ("ok", "skipped")]
    if wrong:
        return wrong[0]
    timed = [one for one in own.values() if _time(one)]
    origins = {one.origin for one in timed}
    return next((word for origin, word in _ORIGINS.items() if origin in origins), "unmeasured")


def _trend(context: SiteContext, shown: ShownCase | None) -> dict[str, Any] | None:
    """Return the last runs of its cold time on one GPU, their range, and the newest step."""
    if shown is None:
        return None
    wanted = {("cold_time", "kernel"), ("wall_time", "kernel")}
    series = [one for one in context.past.newest(shown.case.name) if (one.key.metric, one.key.subject) in wanted]
    if not series:
        return None
    values = recent(series[0], _NIGHTS)
    steps = [step for step in context.steps.get(shown.case.name, ()) if step.key == series[0].key]
    return {
        "label": shown.case.label,
        "nights": len(values),
        "line": sparkline(values),
        "low": min(values),
        "high": max(values),
        "step": steps[0].ratio if steps else None,
        "since": steps[0].since if steps else None,
    }

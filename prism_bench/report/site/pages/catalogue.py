"""The catalogue: every kernel and variant with its times, its share of the limit, its best peer, budgets and trend."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prism_bench.analysis import peers
from prism_bench.report.site.answers import catalogue_answer
from prism_bench.report.site.cases import forms, operation_page, recent, sparkline
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page, kernel_page
from prism_bench.report.view import VERDICTS, CaseView
from prism_bench.spec.workload import LABELS

# The best first: it represents the row.
_STATES = {"newest": "measured", "older": "older", "round": "round", "languages": "languages"}
_RUNS = 60  # of a sparkline


def page(context: SiteContext) -> Page:
    """Return the page of all kernels."""
    rows = [row for kernel, views in context.kernels.items() for row in _rows(context, kernel, views)]
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
    grade = 0 if row["state"] not in _STATES.values() else 1 if row["budget"] == "missed" else 2
    return grade, row["limit"]["share"] if row["limit"] else 2.0, row["kernel"]


def _rows(context: SiteContext, kernel: str, views: Sequence[CaseView]) -> Iterator[dict[str, Any]]:
    """Yield a row for the kernel and one for each variant of it."""
    spec = context.catalogue.kernels.get(kernel) if context.catalogue else None
    family = spec.family if spec else next((view.case.family for view in views), "")
    variants = dict.fromkeys([None, *(spec.variants if spec else ()), *(view.case.variant for view in views)])
    for variant in variants:
        by_label = {view.case.label: view for view in views if view.case.variant == variant}
        yield _row(context, kernel, variant, family, by_label)


def _row(
    context: SiteContext, kernel: str, variant: str | None, family: str, by_label: Mapping[str, CaseView]
) -> dict[str, Any]:
    other_labels = [label for label in by_label if label not in LABELS]
    timed = (by_label[label] for label in reversed(LABELS) if label in by_label and _time(by_label[label]))
    largest = next(timed, None) or next((by_label[label] for label in other_labels), None)
    verdicts = {view.budget.text for view in by_label.values() if view.budgets}
    return {
        "kernel": kernel,
        "variant": variant,
        "family": family,
        "link": f"{kernel_page(kernel)}.html",
        "languages": len(forms(context.catalogue, kernel)) if variant is None else 0,
        "operation": f"{operation_page(kernel)}.html",
        "times": {label: _cell(by_label[label]) for label in (*LABELS, *other_labels) if label in by_label},
        "limit": _limit(largest) if largest else None,
        "peer": _peer(largest) if largest else None,
        "budget": next((word for word in VERDICTS if word in verdicts), ""),
        "trend": _trend(context, largest) if largest else None,
        "state": _state(list(by_label.values())),
    }


def _time(view: CaseView) -> float | None:
    return view.number("cold_time") or view.number("wall_time")


def _cell(view: CaseView) -> dict[str, Any]:
    return {
        "case": view.case.name,
        "workload": view.row["workload"],
        "seconds": _time(view),
        "status": view.case.status,
        "reason": view.case.reason if view.case.status != "ok" else view.row["invalid"],
        "elsewhere": view.elsewhere,
    }


def _limit(view: CaseView) -> dict[str, Any] | None:
    share = view.number("bound_share")
    return {"share": share, "by": view.row["bound"], "label": view.case.label} if share else None


def _peer(view: CaseView) -> dict[str, Any] | None:
    ratio = view.number("peer_ratio")
    best = next(iter(peers.peers(view.case)), None) if ratio else None
    if best is None:
        return None
    return {"ratio": ratio, "name": best.name, "label": view.case.label, "unstable": best.unstable_text}


def _state(views: Sequence[CaseView]) -> str:
    """Return `measured`, `older`, `round` or `languages` where only those know it, `unmeasured`, or what went wrong."""
    wrong = [view.case.status for view in views if view.case.status not in ("ok", "skipped")]
    if wrong:
        return wrong[0]
    origins = {view.origin for view in views if _time(view)}
    return next((word for origin, word in _STATES.items() if origin in origins), "unmeasured")


def _trend(context: SiteContext, view: CaseView) -> dict[str, Any] | None:
    """Return the last runs of its cold time on one GPU, their range, and the newest step."""
    wanted = {("cold_time", "kernel"), ("wall_time", "kernel")}
    courses = context.past.newest(view.case.name)
    series = next((course for course in courses if (course.key.metric, course.key.subject) in wanted), None)
    if series is None:
        return None
    values = recent(series, _RUNS)
    steps = [step for step in context.steps.get(view.case.name, ()) if step.key == series.key]
    return {
        "label": view.case.label,
        "nights": len(values),
        "line": sparkline(values),
        "low": min(values),
        "high": max(values),
        "step": steps[0].ratio if steps else None,
        "since": steps[0].since if steps else None,
    }

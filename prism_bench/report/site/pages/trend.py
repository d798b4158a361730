"""What moved over all runs, and why; changes of the environment; what was set aside."""

from collections.abc import Mapping, Sequence
from typing import Any

from prism_bench.analysis.gate.checks import ENOUGH
from prism_bench.analysis.trend import Step
from prism_bench.analysis.trend.causes import RECENT, Shift
from prism_bench.report.plain import alike
from prism_bench.report.site.answers import case_link, trend_answer
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page


def page(context: SiteContext, loads: Mapping[str, Sequence]) -> Page:
    """Return the page of the steps over all runs."""
    view = {
        "answer": trend_answer(context.shifts, len(context.own), ENOUGH),
        "nights": len(context.own),
        "enough": ENOUGH,
        "series": context.trend.series,
        "first": context.own[0].when if context.own else None,
        "last": context.own[-1].when if context.own else None,
        "steps": [_shift(context, shift) for shift in context.shifts],
        "breakpoints": [vars(point) for point in context.breakpoints],
        "aside": _aside(context.trend.aside),
        "order": context.history.unordered,
        "problems": [vars(problem) for problem in context.history.problems],
    }
    return Page("trend", "Trend", view, scripts=("plot.js", "pictures.js"), empty=len(context.own) < 2)


def _aside(counts: Mapping[str, int]) -> dict[str, int]:
    """Return how many measurements were set aside by reason, the most frequent first.

    Of reasons that differ only in numbers the most frequent one represents all.
    """
    ordered = sorted(counts, key=lambda reason: -counts[reason])
    totals = {
        group.text: sum(counts[reason] for reason in group.cases)
        for group in alike(("aside", reason, reason) for reason in ordered)
    }
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


def _shift(context: SiteContext, shift: Shift) -> dict[str, Any]:
    largest = shift.largest
    return {
        "worse": shift.first.worse,
        "recovered": all(step.recovered for step in shift.steps),
        "gravity": shift.gravity(RECENT),
        "cause": shift.first.cause.kind,
        "since": shift.first.since,
        "record": shift.first.record,
        "cases": list(shift.cases),
        "metrics": list(shift.metrics),
        "ratio": shift.ratio,
        "message": shift.message,
        "link": case_link(context, largest.key.case),
        "case": largest.key.case,
        "picture": _picture(context, largest),
    }


def _picture(context: SiteContext, step: Step) -> dict[str, Any]:
    """Return the runs around the step by number, and the two levels in seconds."""
    series, place = context.past.around(step)
    nights = [context.run_numbers[record] for record in series.records.tolist()]
    return {
        "metric": step.key.metric,
        "nights": nights,
        "values": series.values.tolist(),
        "step": nights[place],
        "before": step.before,
        "after": step.after,
    }

"""Every budget: how much of it is used, whether it is met, until when it binds."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.report.site.answers import budgets_answer, case_link
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.report.view import VERDICTS

NEAR = timedelta(days=30)  # a budget that ends within these is worth a word


def page(context: SiteContext) -> Page:
    """Return the page of all budgets."""
    today = datetime.now(UTC).date()
    rows = sorted((_budget(context, judged, today) for judged in context.reading.every_budget), key=_rank)
    counts = Counter(row["verdict"] for row in rows)
    reading, labels = context.reading, {case.name: case.label for case in context.record.cases}
    view = {
        "night": context.record.created,
        "answer": budgets_answer(reading.every_budget, labels),
        "device_file": reading.promises.source or None,
        "counts": {word: counts[word] for word in VERDICTS if counts[word]},
        "budgets": rows,
    }
    return Page("budgets", "Budgets", view, empty=not rows)


def _budget(context: SiteContext, judged: BudgetVerdict, today: date) -> dict[str, Any]:
    budget, case = judged.budget, context.cases.get(judged.case)
    return {
        "case": judged.case,
        "label": case.case.label if case else "",
        "link": case_link(context, judged.case),
        "metric": budget.metric,
        "at_most": budget.at_most,
        "at_least": budget.at_least,
        "limit": budget.limit,
        "value": judged.value,
        "interval": judged.interval,
        "verdict": judged.verdict,
        "ratio": judged.ratio,
        "use": judged.use,
        "source": judged.source,
        "owner": budget.owner,
        "reason": budget.reason,
        "expires": budget.expires.isoformat() if budget.expires else None,
        "near": bool(budget.expires and today <= budget.expires <= today + NEAR),
    }


def _rank(row: Mapping[str, Any]) -> tuple[int, float, str]:
    return VERDICTS.index(row["verdict"]), -(row["use"] or 0), row["case"]

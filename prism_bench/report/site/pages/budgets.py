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
    found = sorted((_budget(context, one, today) for one in context.reading.every_budget), key=_rank)
    counts = Counter(one["verdict"] for one in found)
    reading, labels = context.reading, {one.name: one.label for one in context.record.cases}
    view = {
        "night": context.record.created,
        "answer": budgets_answer(reading.every_budget, labels),
        "device_file": reading.promises.source or None,
        "counts": {word: counts[word] for word in VERDICTS if counts[word]},
        "budgets": found,
    }
    return Page("budgets", "Budgets", view)


def _budget(context: SiteContext, one: BudgetVerdict, today: date) -> dict[str, Any]:
    budget, case = one.budget, context.cases.get(one.case)
    return {
        "case": one.case,
        "label": case.case.label if case else "",
        "link": case_link(context, one.case),
        "metric": budget.metric,
        "at_most": budget.at_most,
        "at_least": budget.at_least,
        "limit": budget.limit,
        "value": one.value,
        "interval": one.interval,
        "verdict": one.verdict,
        "ratio": one.ratio,
        "use": one.use,
        "source": one.source,
        "owner": budget.owner,
        "reason": budget.reason,
        "expires": budget.expires.isoformat() if budget.expires else None,
        "near": bool(budget.expires and today <= budget.expires <= today + NEAR),
    }


def _rank(one: Mapping[str, Any]) -> tuple[int, float, str]:
    return VERDICTS.index(one["verdict"]), -(one["use"] or 0), one["case"]

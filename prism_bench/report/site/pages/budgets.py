"""Every budget: how much of it is used, whether it is met, until when it binds."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta

from prism_bench.budget import Budget
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.report.site.pages.overview import case_link
from prism_bench.report.terminal.case_table import VERDICTS

NEAR = timedelta(days=30)  # a budget that ends within these is worth a word


def page(context: SiteContext) -> Page:
    today = datetime.now(UTC).date()
    found = sorted((_budget(context, one, today) for one in context.reading.every_budget), key=_rank)
    counts = Counter(one["verdict"] for one in found)
    reading = context.reading
    view = {
        "night": context.record.created, "device_file": reading.promises.source or None,
        "counts": {word: counts[word] for word in VERDICTS if counts[word]}, "budgets": found,
    }  # fmt: skip
    return Page("budgets", "Budgets", view)


def _budget(context, one, today: date):
    budget, case = one.budget, context.cases.get(one.case)
    return {
        "case": one.case, "label": case.case.label if case else "", "link": case_link(context, one.case),
        "metric": budget.metric, "at_most": budget.at_most, "at_least": budget.at_least, "limit": budget.limit,
        "value": one.value, "interval": one.interval, "verdict": one.verdict, "use": use(budget, one.value),
        "source": one.source,
        "owner": budget.owner, "reason": budget.reason,
        "expires": budget.expires.isoformat() if budget.expires else None,
        "near": bool(budget.expires and today <= budget.expires <= today + NEAR),
    }  # fmt: skip


def use(budget: Budget, value: float | None) -> float | None:
    """How much of what the budget allows is used, above 1 where it is missed; None where nobody knows."""
    if value is None:
        return None
    if budget.at_most is not None:
        return value / budget.at_most if budget.at_most else None
    return budget.at_least / value if budget.at_least is not None and value else None


def _rank(one):
    return VERDICTS.index(one["verdict"]), -(one["use"] or 0), one["case"]

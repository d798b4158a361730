"""Our three pages, each a separate document: budgets, steps, roofline."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from prism_bench.analysis.bounds.roofline import plotted
from prism_bench.analysis.findings import metric_words, value_text
from prism_bench.analysis.gate.against_history import ENOUGH
from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.analysis.reading import Reading
from prism_bench.analysis.trend.shifts import Shift
from prism_bench.report.asv.newest import NewestReading
from prism_bench.report.asv.past import Past
from prism_bench.report.asv.step_chart import step_chart
from prism_bench.report.machine import machine_name
from prism_bench.report.roofline_chart import roofline_chart
from prism_bench.report.templating import environment
from prism_bench.report.terminal.case_table import VERDICTS

PAGES = {"budgets": "Budgets", "steps": "Steps", "roofline": "Roofline"}
_WIDE, _NARROW = (1120, 520), (400, 400)


@dataclass(frozen=True)
class Promise:
    """One budget on one case in words; `use` is how much of what it allows is used, above 1 where it is missed.

    `ratio` is the value over the limit, `why` is its file, its owner, its reason, and when it expires.
    """

    case: str
    label: str
    metric: str
    limit: str
    value: str
    verdict: str
    use: float | None
    ratio: float | None
    why: str


def document(name: str, machines: Sequence[NewestReading], past: Past) -> str:
    """Return the page called `name` as text."""
    template = environment().get_template(f"asv/{name}.html")
    return template.render(
        title=PAGES[name], machines=machines, promises=promises, counts=counts, rooflines=rooflines,
        machine_name=machine_name, plotted=lambda reading: plotted(reading.frame), past=past, enough=ENOUGH,
        chart=lambda shift: _chart(shift, past),
    )  # fmt: skip


def _chart(shift: Shift, past: Past) -> Markup:
    """Draw the shift's largest step on its series."""
    step = shift.largest
    number = past.trend.steps.index(step)
    place = past.place(step)
    earlier = [past.place(one) for one in past.trend.steps[:number] if one.key == step.key]
    return Markup(step_chart(past.series[step.key], step, place, max(earlier, default=0), f"step{number}"))


def promises(reading: Reading) -> list[Promise]:
    """Return every budget on every case, also on those that did not run; the missed ones first, worst ahead."""
    found = [_promise(verdict, reading) for verdict in reading.every_budget]
    return sorted(found, key=lambda one: (VERDICTS.index(one.verdict), -(one.use or 0)))


def _promise(verdict: BudgetVerdict, reading: Reading) -> Promise:
    budget, case = verdict.budget, reading.record.case(verdict.case)
    word = "at most" if budget.at_most is not None else "at least"
    return Promise(
        verdict.case, case.label if case else "", metric_words(budget.metric),
        f"{word} {value_text(budget.metric, budget.limit)}", value_text(budget.metric, verdict.value), verdict.verdict,
        verdict.use, verdict.ratio, _why(verdict),
    )  # fmt: skip


def _why(verdict: BudgetVerdict) -> str:
    budget = verdict.budget
    until = f"until {budget.expires}" if budget.expires else None
    return "; ".join(words for words in (budget.reason, budget.owner, until, verdict.source) if words)


def counts(reading: Reading) -> list[tuple[str, int]]:
    """Return how many budgets have each verdict; those without any are left out."""
    found = Counter(one.verdict for one in reading.every_budget)
    return [(verdict, found[verdict]) for verdict in VERDICTS if found[verdict]]


def rooflines(reading: Reading) -> list[Markup]:
    """Draw the chart, wide and narrow; empty where the record has nothing to draw."""
    charts = [roofline_chart(reading, width, height) for width, height in (_WIDE, _NARROW)]
    return [Markup(chart) for chart in charts if chart]

"""Verdicts on budgets: those of the specs, which hold anywhere, and those of a device."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import cast

from prism_bench.analysis.summary import SummaryRow, number
from prism_bench.catalogue import Catalogue
from prism_bench.spec.metric import Budget, BudgetWord


@dataclass(frozen=True)
class BudgetVerdict:
    """Verdict on one budget of one case, with the measured `value`.

    `source` is `spec`, or the file that promises it on this device. `interval` is that of the value, where the verdict
    takes its error into account.
    """

    case: str
    budget: Budget
    value: float | None
    verdict: BudgetWord
    source: str = "spec"
    interval: tuple[float, float] | None = None

    @property
    def ratio(self) -> float | None:
        """Return the value over what was promised, which every report prints; None if unknown."""
        return self.value / self.budget.limit if self.value is not None and self.budget.limit else None

    @property
    def use(self) -> float | None:
        """Return how much of what the budget allows is used, above 1 where it is missed; None if unknown."""
        if self.value is None:
            return None
        if self.budget.at_most is not None:
            return self.value / self.budget.at_most if self.budget.at_most else None
        return self.budget.at_least / self.value if self.budget.at_least is not None and self.value else None


def budget_verdicts(
    rows: Iterable[SummaryRow], catalogue: Catalogue, promised: Mapping[str, tuple[Budget, ...]] | None = None,
    source: str = "", today: date | None = None,
) -> list[BudgetVerdict]:  # fmt: skip
    """Return the verdict on every budget of every case of the summary: its spec's, and those `promised` by `source`.

    Budgets of cases that the summary does not have are left to `absent`, the values' errors to `uncertainty`.
    """
    today = today or datetime.now(UTC).date()
    found: list[BudgetVerdict] = []
    for row in rows:
        own = [(budget, "spec") for budget in _budgets(row, catalogue)]
        own += [(budget, source) for budget in (promised or {}).get(row["case"], ())]
        found += [_verdict(row, budget, origin, today) for budget, origin in own]
    return found


def absent(
    rows: Iterable[SummaryRow], promised: Mapping[str, tuple[Budget, ...]], source: str = ""
) -> list[BudgetVerdict]:
    """Return the promised budgets of cases that the summary does not have: unmeasured, every one."""
    there = {row["case"] for row in rows}
    missing = [(case, budget) for case, budgets in promised.items() if case not in there for budget in budgets]
    return [BudgetVerdict(case, budget, None, "unmeasured", source) for case, budget in missing]


def _verdict(row: SummaryRow, budget: Budget, source: str, today: date) -> BudgetVerdict:
    value = number(row.get(budget.metric))
    return BudgetVerdict(row["case"], budget, value, budget.verdict(value, today), source)


def _budgets(row: SummaryRow, catalogue: Catalogue) -> tuple[Budget, ...]:
    """Return the budgets of a row's spec; a variant has only those it names: a naive one need not be fast."""
    spec = catalogue.kernels.get(row["kernel"])
    if spec is None:
        return ()
    variant = spec.variants.get(row["variant"]) if row["variant"] else None
    budgets = spec.budgets
    if row["variant"]:
        budgets = cast("Sequence[Budget]", variant.changes.get("budgets", ())) if variant else ()
    return tuple(budget for budget in budgets if budget.label in (None, row["label"]))

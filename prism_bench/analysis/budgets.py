"""Budgets evaluated: those of the specs, which hold anywhere, and those of a device."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

import pandas

from prism_bench.analysis.summary import number
from prism_bench.budget import Budget
from prism_bench.catalogue import Catalogue


@dataclass(frozen=True)
class BudgetVerdict:
    """One budget on one case: the `value` it was held against and the `verdict`. `source` is `spec`, or the file that
    promises it on this device. `interval` is that of the value, where the verdict takes its error into account.
    """

    case: str
    budget: Budget
    value: float | None
    verdict: str
    source: str = "spec"
    interval: tuple[float, float] | None = None


def budget_verdicts(
    frame: pandas.DataFrame, catalogue: Catalogue, promised: Mapping[str, tuple[Budget, ...]] | None = None,
    source: str = "", today: date | None = None,
) -> list[BudgetVerdict]:  # fmt: skip
    """The verdict on every budget of every case of the summary: those of its spec, and those `promised` by `source`.

    Budgets of cases that the summary does not have are left to `absent`, the values' errors to `uncertainty`.
    """
    today = today or datetime.now(UTC).date()
    found = []
    for _, row in frame.iterrows():
        own = [(budget, "spec") for budget in _budgets(row, catalogue)]
        own += [(budget, source) for budget in (promised or {}).get(row["case"], ())]
        found += [_verdict(row, budget, origin, today) for budget, origin in own]
    return found


def absent(
    frame: pandas.DataFrame, promised: Mapping[str, tuple[Budget, ...]], source: str = ""
) -> list[BudgetVerdict]:
    """The promised budgets of cases that the summary does not have: unmeasured, every one."""
    there = set(frame["case"])
    missing = [(case, budget) for case, budgets in promised.items() if case not in there for budget in budgets]
    return [BudgetVerdict(case, budget, None, "unmeasured", source) for case, budget in missing]


def _verdict(row, budget, source, today):
    value = number(row.get(budget.metric))
    return BudgetVerdict(row["case"], budget, value, budget.verdict(value, today), source)


def _budgets(row, catalogue):
    """A variant is held to the budgets it names itself: a naive one is kept to be compared with, not to be fast."""
    spec = catalogue.kernels.get(row["kernel"])
    if spec is None:
        return ()
    variant = spec.variants.get(row["variant"]) if row["variant"] else None
    budgets = (variant.changes.get("budgets", ()) if variant else ()) if row["variant"] else spec.budgets
    return tuple(budget for budget in budgets if budget.label in (None, row["label"]))

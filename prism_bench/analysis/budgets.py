"""Budgets evaluated: those of the specs, and those the profiling guide published."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pandas

from prism_bench.analysis.summary import number
from prism_bench.budget import Budget
from prism_bench.catalogue import Catalogue


@dataclass(frozen=True)
class BudgetVerdict:
    """One of a spec's budgets on one case: the `value` it was held against and the `verdict`."""

    case: str
    budget: Budget
    value: float | None
    verdict: str


@dataclass(frozen=True)
class Published:
    """What the guide printed for one kernel, in seconds: the range of the mean and, where it states one, a budget."""

    kernel: str
    workload: str
    low: float
    high: float
    budget: float | None
    source: str
    clock: str


@dataclass(frozen=True)
class PublishedVerdict:
    """Our times of the published workload beside the published figures.

    `verdict` compares the end-to-end time, because the published figures include host copies; None where the guide
    states no budget.
    """

    case: str
    published: Published
    end_to_end: float | None
    cold: float | None
    verdict: str | None


def budget_verdicts(frame: pandas.DataFrame, catalogue: Catalogue) -> list[BudgetVerdict]:
    """The verdict on every budget of every case of the summary whose kernel the catalogue knows."""
    return [
        BudgetVerdict(
            row["case"], budget, number(row.get(budget.metric)), budget.verdict(number(row.get(budget.metric)))
        )
        for _, row in frame.iterrows()
        for budget in _budgets(row, catalogue)
    ]


def _budgets(row, catalogue):
    """A variant is held to the budgets it names itself: a naive one is kept to be compared with, not to be fast."""
    spec = catalogue.kernels.get(row["kernel"])
    if spec is None:
        return ()
    variant = spec.variants.get(row["variant"]) if row["variant"] else None
    budgets = (variant.changes.get("budgets", ()) if variant else ()) if row["variant"] else spec.budgets
    return tuple(budget for budget in budgets if budget.label in (None, row["label"]))


@cache
def published() -> dict[str, Published]:
    """The guide's figures by kernel."""
    data = tomllib.loads(files("prism_bench.analysis").joinpath("published.toml").read_text("utf-8"))
    return {entry["name"]: _published(entry, data["source"], data["clock"]) for entry in data["kernel"]}


def _published(entry, source, clock):
    low, high = (us * 1e-6 for us in entry["mean_us"])
    budget = entry["budget_us"] * 1e-6 if "budget_us" in entry else None
    return Published(entry["name"], entry["workload"], low, high, budget, source, clock)


def published_verdicts(frame: pandas.DataFrame) -> list[PublishedVerdict]:
    """One verdict per case of the summary that the guide published: its kernels, unvaried, at `S0`."""
    rows = frame[(frame["label"] == "S0") & frame["variant"].isna() & frame["kernel"].isin(list(published()))]
    return [_published_verdict(row, published()[row["kernel"]]) for _, row in rows.iterrows()]


def _published_verdict(row, entry):
    end_to_end, cold = number(row["end_to_end_time"]), number(row["cold_time"])
    budget = Budget("end_to_end_time", at_most=entry.budget) if entry.budget else None
    return PublishedVerdict(row["case"], entry, end_to_end, cold, budget.verdict(end_to_end) if budget else None)

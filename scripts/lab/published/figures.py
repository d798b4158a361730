"""Figures and budgets that the profiling guide prints for its nine kernels, compared with our times."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import NotRequired, TypedDict, cast

from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.analysis.run_analysis import Reading, within_errors
from prism_bench.analysis.summary import SummaryRow, number
from prism_bench.record.run_record import CaseResult
from prism_bench.spec.metric import Budget, BudgetWord

METRIC = "end_to_end_time"  # the guide times whole calls, host copies included


class QuotedKernel(TypedDict):
    """One `[[kernel]]` of `published.toml`, in microseconds as printed."""

    name: str
    workload: str
    mean_us: tuple[float, float]
    budget_us: NotRequired[float]
    calls_per_second: tuple[float, float]


class Quoted(TypedDict):
    """All of `published.toml`; `rules` are the guide's rules of thumb."""

    source: str
    clock: str
    rules: dict[str, float | str]
    kernel: list[QuotedKernel]


@dataclass(frozen=True)
class PublishedFigure:
    """What the guide prints for one kernel, in seconds.

    `low` to `high` is the range of the mean, `rate` that of the calls per second; without a stated budget `budget` is
    None.
    """

    kernel: str
    workload: str
    low: float
    high: float
    budget: float | None
    source: str
    clock: str
    rate: tuple[float, float]


@dataclass(frozen=True)
class FigureVerdict:
    """Our times of a published workload next to the published figure.

    `verdict` compares the end-to-end time with the budget; None where the guide states no budget.
    """

    case: str
    published: PublishedFigure
    end_to_end: float | None
    cold: float | None
    verdict: BudgetWord | None


@cache
def quoted() -> Quoted:
    """Read what the guide printed."""
    text = files("lab.published").joinpath("published.toml").read_text("utf-8")
    return cast(Quoted, tomllib.loads(text))


@cache
def published() -> Mapping[str, PublishedFigure]:
    """Return the guide's figures by kernel."""
    data = quoted()
    return {entry["name"]: _figure(entry, data["source"], data["clock"]) for entry in data["kernel"]}


def _figure(entry: QuotedKernel, source: str, clock: str) -> PublishedFigure:
    low, high = (us * 1e-6 for us in entry["mean_us"])
    rate = entry["calls_per_second"]
    budget = entry["budget_us"] * 1e-6 if "budget_us" in entry else None
    return PublishedFigure(entry["name"], entry["workload"], low, high, budget, source, clock, (rate[0], rate[1]))


def figure_verdicts(rows: Iterable[SummaryRow]) -> list[FigureVerdict]:
    """Return a verdict for each case of the summary that the guide published: its kernels, unvaried, at `S0`."""
    own = [row for row in rows if row["label"] == "S0" and row["variant"] is None and row["kernel"] in published()]
    return [_verdict(row, published()[row["kernel"]]) for row in own]


def _verdict(row: Mapping[str, object], entry: PublishedFigure) -> FigureVerdict:
    end_to_end, cold = number(row[METRIC]), number(row["cold_time"])
    verdict = _budget(entry).verdict(end_to_end) if entry.budget else None
    return FigureVerdict(str(row["case"]), entry, end_to_end, cold, verdict)


def _budget(entry: PublishedFigure) -> Budget:
    return Budget(METRIC, at_most=entry.budget or 0.0)


def within_intervals(found: Sequence[FigureVerdict], cases: Sequence[CaseResult]) -> list[FigureVerdict]:
    """Return the verdicts, undecided where the budget is within the 95 % interval of our time."""
    verdicts = [
        BudgetVerdict(
            one.case, _budget(one.published), one.end_to_end, one.verdict or "unmeasured", one.published.source
        )
        for one in found
    ]
    judged = within_errors(verdicts, cases)
    return [
        replace(one, verdict=other.verdict) if one.verdict else one for one, other in zip(found, judged, strict=True)
    ]


def figures_of(reading: Reading) -> list[FigureVerdict]:
    """Return the verdicts on the record that was read."""
    return within_intervals(figure_verdicts(reading.rows), reading.cases)

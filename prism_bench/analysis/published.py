"""What the profiling guide published: figures and budgets of its nine kernels, quoted, and held against our times."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pandas

from prism_bench.analysis.summary import number
from prism_bench.budget import Budget


@dataclass(frozen=True)
class Published:
    """What the guide printed for one kernel, in seconds: the range of the mean and, where it states one, a budget; and
    the range of its `rate`, calls per second.
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


@cache
def _quoted() -> dict:
    return tomllib.loads(files(__package__).joinpath("published.toml").read_text("utf-8"))


def published_rules() -> dict:
    """The guide's rules of thumb, with the keys that a file of budgets may set anew."""
    return _quoted()["rules"]


@cache
def published() -> dict[str, Published]:
    """The guide's figures by kernel."""
    data = _quoted()
    return {entry["name"]: _published(entry, data["source"], data["clock"]) for entry in data["kernel"]}


def _published(entry, source, clock):
    low, high = (us * 1e-6 for us in entry["mean_us"])
    budget = entry["budget_us"] * 1e-6 if "budget_us" in entry else None
    return Published(
        entry["name"], entry["workload"], low, high, budget, source, clock, tuple(entry["calls_per_second"])
    )


def published_verdicts(frame: pandas.DataFrame) -> list[PublishedVerdict]:
    """One verdict per case of the summary that the guide published: its kernels, unvaried, at `S0`."""
    rows = frame[(frame["label"] == "S0") & frame["variant"].isna() & frame["kernel"].isin(list(published()))]
    return [_published_verdict(row, published()[row["kernel"]]) for _, row in rows.iterrows()]


def _published_verdict(row, entry):
    end_to_end, cold = number(row["end_to_end_time"]), number(row["cold_time"])
    budget = Budget("end_to_end_time", at_most=entry.budget) if entry.budget else None
    return PublishedVerdict(row["case"], entry, end_to_end, cold, budget.verdict(end_to_end) if budget else None)

"""All that is published about a record, compared with its values and with the policies measured on its machine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict

from lab.published.choices import BatchChoice, batch_choices, costs_of, window_choices
from lab.published.figures import METRIC, FigureVerdict, figures_of, quoted
from lab.published.rules import RuleVerdict, remarks, rules_for, verdicts_by_case
from prism_bench.analysis.reading import Reading
from prism_bench.workflows.tuning.crossover import CrossoverCost
from prism_bench.workflows.tuning.measured import Measured, Window, path_for, read_measured


@dataclass(frozen=True)
class PublishedComparison:
    """Figures and rules of the documents next to the record that was read, and their choices next to `measured`."""

    reading: Reading
    figures: Sequence[FigureVerdict]
    rules: Mapping[str, Sequence[RuleVerdict]]
    measured: Measured | None

    @property
    def verdicts(self) -> list[RuleVerdict]:
        """Every rule on every case."""
        return [one for verdicts in self.rules.values() for one in verdicts]

    @property
    def costs(self) -> list[CrossoverCost]:
        """What the published rules for products cost."""
        return costs_of(self.measured) if self.measured else []

    @property
    def windows(self) -> list[Window]:
        """The guide's entropy windows, as measured."""
        return window_choices(self.measured) if self.measured else []

    @property
    def batches(self) -> list[BatchChoice]:
        """The guide's LSTM batches, as measured."""
        return batch_choices(self.measured.batches) if self.measured else []


def comparison_of(reading: Reading, tuning: Path) -> PublishedComparison:
    """Compare what is published with a record and with its machine's policies below `tuning`, where those are kept.

    A ResultsError where the policies or the rules of the device's file of budgets cannot be read.
    """
    rules = verdicts_by_case(reading, rules_for(reading.promises))
    measured = read_measured(path_for(str(reading.record.machine.get("id")), tuning))
    return PublishedComparison(reading, figures_of(reading), rules, measured)


class FigurePlain(TypedDict):
    """A published figure and our times, in seconds."""

    case: str
    kernel: str
    workload: str
    mean: tuple[float, float]
    rate: tuple[float, float]
    budget: float | None
    source: str
    clock: str
    end_to_end: float | None
    cold: float | None
    verdict: str | None


class Summary(TypedDict):
    """How many cases keep a rule, break it and have no time for it."""

    rule: str
    metric: str
    limit: float
    kept: int
    broken: int
    unmeasured: int


def figures_plain(figures: Sequence[FigureVerdict]) -> list[FigurePlain]:
    """Return the figures as plain values."""
    return [
        {
            "case": one.case, "kernel": one.published.kernel, "workload": one.published.workload,
            "mean": (one.published.low, one.published.high), "rate": one.published.rate,
            "budget": one.published.budget, "source": one.published.source, "clock": one.published.clock,
            "end_to_end": one.end_to_end, "cold": one.cold, "verdict": one.verdict,
        }
        for one in figures
    ]  # fmt: skip


def summaries(verdicts: Iterable[RuleVerdict]) -> list[Summary]:
    """Return the counts of each rule; the comparison with the baseline has one line for each metric."""
    found: dict[tuple[str, str], list[RuleVerdict]] = {}
    for one in verdicts:
        found.setdefault((one.rule, one.metric), []).append(one)
    return [
        {
            "rule": rule, "metric": metric, "limit": own[0].limit, "kept": sum(one.kept is True for one in own),
            "broken": sum(one.kept is False for one in own), "unmeasured": sum(one.kept is None for one in own),
        }
        for (rule, metric), own in found.items()
    ]  # fmt: skip


def published_json(compared: PublishedComparison) -> dict[str, object]:
    """Return all of it as plain values, in SI units.

    `cases` has for each case the quoted budget, judged by our end-to-end time, and the guide's rules of thumb (`kept`
    is null where unmeasured). `findings` are what the guide calls slow, unsteady or an outlier. `choices` are what
    the published rules cost by the measured policies.
    """
    record = compared.reading.record
    return {
        "machine": record.machine.get("id"), "created": record.created, "commit": record.commit,
        "backend": record.backend, "source": quoted()["source"], "clock": quoted()["clock"],
        "figures": figures_plain(compared.figures), "rules": summaries(compared.verdicts),
        "cases": [
            {"name": case.name, "budgets": _budgets(compared, case.name), "guide": _rules(compared, case.name)}
            for case in record.cases
        ],
        "findings": [vars(one) for one in remarks(compared.verdicts)],
        "choices": {
            "policies": [asdict(one) for one in compared.costs],
            "windows": [asdict(one) for one in compared.windows],
            "targets": [asdict(one) for one in compared.batches],
        },
    }  # fmt: skip


def _budgets(compared: PublishedComparison, case: str) -> list[dict[str, object]]:
    return [
        {"from": one.published.source, "metric": METRIC, "at_most": one.published.budget, "at_least": None,
         "value": one.end_to_end, "verdict": one.verdict}
        for one in compared.figures if one.case == case and one.verdict
    ]  # fmt: skip


def _rules(compared: PublishedComparison, case: str) -> list[dict[str, object]]:
    return [
        {key: value for key, value in vars(one).items() if key not in ("case", "words")}
        for one in compared.rules.get(case, ())
    ]

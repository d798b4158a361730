"""All that is published about a record, compared with its values and with the policies measured on its machine."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from lab.published.choices import BatchChoice, batch_choices, costs_of, window_choices
from lab.published.figures import FigureVerdict, figures_of
from lab.published.rules import RuleVerdict, rules_for, verdicts
from prism_bench.analysis.bounds.profiles import newest_counted
from prism_bench.analysis.run_analysis import Reading
from prism_bench.catalogue import Catalogue
from prism_bench.extensions.fusion.benefit import ComparedRow, Sources, chains_of, compared, ledgers
from prism_bench.record import store
from prism_bench.record.run_record import RunRecord
from prism_bench.spec.workload import LABELS
from prism_bench.workflows.tuning.crossover import CrossoverCost, Measured, Window, path_for, read_measured


@dataclass(frozen=True)
class PublishedComparison:
    """Figures and rules of the documents next to the record that was read, and their choices next to `measured`."""

    reading: Reading
    figures: Sequence[FigureVerdict]
    verdicts: Sequence[RuleVerdict]
    measured: Measured | None

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
    measured = read_measured(path_for(str(reading.record.machine.get("id")), tuning))
    return PublishedComparison(reading, figures_of(reading), verdicts(reading, rules_for(reading.promises)), measured)


def compared_chains(record: RunRecord, catalogue: Catalogue, profiles: Path) -> tuple[ComparedRow, ...]:
    """Compare the fusion plan's table with the chains of a record, and with its machine's counters in `profiles`."""
    counters = newest_counted(store.readable(profiles, str(record.machine.get("id"))))
    return compared(ledgers(chains_of(catalogue), LABELS, Sources(record, counters=counters)))


class Summary(TypedDict):
    """How many cases keep a rule, break it and have no time for it."""

    rule: str
    metric: str
    limit: float
    kept: int
    broken: int
    unmeasured: int


def summaries(verdicts: Iterable[RuleVerdict]) -> list[Summary]:
    """Return the counts of each rule; the comparison with the baseline has one line for each metric."""
    by_rule: dict[tuple[str, str], list[RuleVerdict]] = {}
    for verdict in verdicts:
        by_rule.setdefault((verdict.rule, verdict.metric), []).append(verdict)
    return [
        {
            "rule": rule,
            "metric": metric,
            "limit": cases[0].limit,
            "kept": sum(case.kept is True for case in cases),
            "broken": sum(case.kept is False for case in cases),
            "unmeasured": sum(case.kept is None for case in cases),
        }
        for (rule, metric), cases in by_rule.items()
    ]

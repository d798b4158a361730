"""Reading: the whole analysis of one record, made once for every kind of report."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING

from prism_bench.analysis.findings import Finding, findings
from prism_bench.analysis.gate.baselines import Slowdown, host_notes, slowdowns
from prism_bench.analysis.gate.budgets import BudgetVerdict, absent, budget_verdicts
from prism_bench.analysis.gate.promises import Promises, promises_for, promises_or_reason
from prism_bench.analysis.headline import HeadlineRow, headline_rows
from prism_bench.analysis.summary import SummaryRow, frame_of, limits_of, number, summary_rows
from prism_bench.analysis.uncertainty import within_errors
from prism_bench.catalogue import Catalogue
from prism_bench.measure.limits import Limits
from prism_bench.record.run_record import CaseResult, RunRecord

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Reading:
    """A record with its limits, the verdicts on its budgets and its findings.

    `cases` are the timed ones, `rows` is their summary, row by row; `edges` are the edge and golden cases, which are
    verified and never timed. `budgets` is empty without a catalogue: budgets are in the specs and next to the catalogue
    (`promises`), not in the record. `slowdowns` compare it with the baseline.
    """

    record: RunRecord
    limits: Limits
    cases: tuple[CaseResult, ...]
    edges: tuple[CaseResult, ...]
    rows: tuple[SummaryRow, ...]
    budgets: tuple[BudgetVerdict, ...]
    findings: tuple[Finding, ...]
    slowdowns: tuple[Slowdown, ...] = ()
    promises: Promises = field(default_factory=Promises)

    @property
    def trusted(self) -> int:
        """How many cases ended well and have no invalid measurement."""
        return sum(row["status"] == "ok" and row["invalid"] is None for row in self.rows)

    def values(self, column: str) -> list[float]:
        """Return the known values of a column of the summary, without machine kernels."""
        return [value for row in self.rows if row["ceiling"] is None and (value := number(row[column])) is not None]

    @cached_property
    def frame(self) -> "pandas.DataFrame":
        """The rows of the summary as a table of pandas."""
        return frame_of(self.rows)

    @cached_property
    def against_peers(self) -> list[HeadlineRow]:
        """The headline: the kernels against their peers, by label and by class of peer."""
        return headline_rows(self.cases)

    @property
    def every_budget(self) -> tuple[BudgetVerdict, ...]:
        """The verdicts on all that is promised, on cases that did not run too: those are unmeasured."""
        return (*self.budgets, *absent(self.rows, self.promises.budgets, self.promises.source))

    @property
    def busy_shares(self) -> list[float]:
        """How much of its limit each case reaches that memory or arithmetic binds, and not the launch.

        Without kernels that measure the machine and forms that are kept to compare with.
        """
        own = [row for row in self.rows if row["ceiling"] is None and row["before"] is None]
        rows = [row for row in own if row["bound"] in ("memory", "compute")]
        return [share for row in rows if (share := number(row["bound_share"])) is not None]


def read(record: RunRecord, catalogue: Catalogue | None = None, *, must_be_held: bool = True) -> Reading:
    """Return the reading of a record; with the catalogue, the budgets of its specs and of the device are judged too.

    A ResultsError where the device's file of budgets is not right. Without `must_be_held`, a file that is about another
    device, backend or protocol is a finding and no error.
    """
    edges = tuple(case for case in record.cases if case.is_edge)
    cases = tuple(case for case in record.cases if not case.is_edge)
    rows = tuple(summary_rows(replace(record, cases=cases)))
    promised = promises_for if must_be_held else promises_or_reason
    promises = promised(record, catalogue) if catalogue else Promises()
    judged = budget_verdicts(rows, catalogue, promises.budgets, promises.source) if catalogue else []
    budgets = tuple(within_errors(judged, cases))
    slow = tuple(slowdowns(record, promises.degraded, promises.baseline))
    return Reading(
        record=record, limits=limits_of(record), cases=cases, edges=edges, rows=rows, budgets=budgets,
        findings=(*findings(record, budgets, slow), *_not_held(promises),
                  *(Finding("note", "host", None, words) for words in host_notes(record, slow, promises.baseline))),
        slowdowns=slow, promises=promises,
    )  # fmt: skip


def _not_held(promises: Promises) -> list[Finding]:
    """Return a note where budgets and baseline are about other records."""
    message = f"nothing was compared with the device's budgets and baseline: {promises.not_held}"
    return [Finding("note", "promises", None, message)] if promises.not_held else []


def middle(values: list[float]) -> float | None:
    """Return the median; None where there are no values."""
    return median(values) if values else None

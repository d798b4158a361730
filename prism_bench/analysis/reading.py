"""A reading: everything that analysis has to say about one record, made once and handed to every kind of report."""

from dataclasses import dataclass, field, replace
from statistics import median

import pandas

from prism_bench.analysis.budgets import BudgetVerdict, absent, budget_verdicts
from prism_bench.analysis.degraded import Slowdown, slowdowns
from prism_bench.analysis.findings import Finding, findings
from prism_bench.analysis.promises import Promises, promises_for, promises_or_reason
from prism_bench.analysis.summary import limits_of, summary
from prism_bench.analysis.uncertainty import within_errors
from prism_bench.catalogue import Catalogue
from prism_bench.measure.limits import Limits
from prism_bench.run_record import CaseResult, RunRecord


@dataclass(frozen=True)
class Reading:
    """A record with its limits, the verdicts on its budgets and its findings.

    `cases` are those at a workload of their own, `frame` is their summary, row by row; `edges` are the edge and golden
    cases, which are verified and never timed. `budgets` is empty where no catalogue was at hand: budgets stand in the
    specs and beside the catalogue (`promises`), not in the record. `slowdowns` compare it with the baseline.
    """

    record: RunRecord
    limits: Limits
    cases: tuple[CaseResult, ...]
    edges: tuple[CaseResult, ...]
    frame: pandas.DataFrame
    budgets: tuple[BudgetVerdict, ...]
    findings: tuple[Finding, ...]
    slowdowns: tuple[Slowdown, ...] = ()
    promises: Promises = field(default_factory=Promises)

    @property
    def trusted(self) -> int:
        """How many cases ended well and have no invalid measurement."""
        return int(((self.frame["status"] == "ok") & self.frame["invalid"].isna()).sum())

    def values(self, column: str) -> list[float]:
        """The known values of a column of the summary, machine kernels left out."""
        return self.frame.loc[self.frame["ceiling"].isna(), column].dropna().tolist()

    @property
    def every_budget(self) -> tuple[BudgetVerdict, ...]:
        """The verdicts on all that is promised, on cases that did not run too: those are unmeasured."""
        return (*self.budgets, *absent(self.frame, self.promises.budgets, self.promises.source))

    @property
    def busy_shares(self) -> list[float]:
        """How much of its limit each case reaches that memory or arithmetic binds, and not the launch."""
        rows = self.frame[self.frame["ceiling"].isna() & self.frame["bound"].isin(["memory", "compute"])]
        return rows["bound_share"].dropna().tolist()


def read(record: RunRecord, catalogue: Catalogue | None = None, *, must_be_held: bool = True) -> Reading:
    """Return the reading of a record; with the catalogue, the budgets of its specs and of the device are judged too.

    A ResultsError where the device's file of budgets is not right. Without `must_be_held`, a file that is about another
    device, backend or protocol is a finding and no error.
    """
    edges = tuple(case for case in record.cases if case.is_edge)
    cases = tuple(case for case in record.cases if not case.is_edge)
    frame = summary(replace(record, cases=cases))
    promised = promises_for if must_be_held else promises_or_reason
    promises = promised(record, catalogue) if catalogue else Promises()
    judged = budget_verdicts(frame, catalogue, promises.budgets, promises.source) if catalogue else []
    budgets = tuple(within_errors(judged, cases))
    slow = tuple(slowdowns(record, promises.degraded, promises.baseline))
    return Reading(
        record=record, limits=limits_of(record), cases=cases, edges=edges, frame=frame, budgets=budgets,
        findings=(*findings(record, budgets, slow), *_not_held(promises)), slowdowns=slow, promises=promises,
    )  # fmt: skip


def _not_held(promises: Promises) -> list[Finding]:
    """Return a note where budgets and baseline are about other records."""
    message = f"nothing was held against the device's budgets and baseline: {promises.not_held}"
    return [Finding("note", "promises", None, message)] if promises.not_held else []


def middle(values: list[float]) -> float | None:
    """The median; None where there are no values."""
    return median(values) if values else None

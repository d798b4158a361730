"""Analysis of one record, made once for all reports: findings, uncertainty of values, and the reading as a whole."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import exp, isfinite, sqrt
from statistics import median
from typing import TYPE_CHECKING, Literal, get_args

from prism_bench.analysis.compare.estimate import medians, quantile
from prism_bench.analysis.gate.budgets import (
    BudgetVerdict,
    Promises,
    Slowdown,
    absent,
    budget_verdicts,
    host_notes,
    promises_for,
    promises_or_reason,
    slowdowns,
)
from prism_bench.analysis.peers import (
    COMPILED,
    HeadlineRow,
    clock_of,
    fastest_process,
    headline_rows,
    peers,
    range_text,
    unstable_stand_in,
)
from prism_bench.analysis.summary import SummaryRow, frame_of, limits_of, noted, number, summary_rows, with_cases
from prism_bench.catalogue import Catalogue
from prism_bench.measure.plausibility import Limits
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.metric import MEASURED, StandIn, value_text
from prism_bench.units import count_text

if TYPE_CHECKING:
    import pandas


# Findings of a run: errors, untrusted values, omissions and broken promises.

Gravity = Literal["bad", "untrusted", "note"]
GRAVITY = get_args(Gravity)


@dataclass(frozen=True)
class Finding:
    """Statement about a run or a case: its `gravity`, and its one-word `kind`; `case` is None if it is about the run.

    `ratio` is the new value of the `metric` over the old or the promised value. Findings of two runs are the same if
    kind, case and metric are equal.
    """

    gravity: Gravity
    kind: str
    case: str | None
    message: str
    metric: str | None = None
    ratio: float | None = None


def findings(record: RunRecord, verdicts: Sequence[BudgetVerdict] = (), slow: Sequence[Slowdown] = ()) -> list[Finding]:
    """Return all findings of the record, the gravest first, each kind in the record's order."""
    listed: list[Finding] = []
    if not record.complete:
        listed.append(Finding("note", "incomplete", None, "the run was cut short; what it had measured is kept"))
    for case in record.cases:
        listed += _of_case(case, record.stand_in)
    for note, count in noted(record).items():
        listed.append(Finding("note", "evidence", None, f"{note} ({count_text(count, 'measurement')})"))
    if record.tuning.get("unused"):
        listed.append(Finding("note", "untuned", None, record.tuning["unused"]))
    for case, reason in record.tuning.get("stale", {}).items():
        listed.append(Finding("note", "stale", case, f"launched by default, its choice is stale: {reason}"))
    for kind in ("missed", "undecided", "expired"):
        listed += [_of_budget(verdict) for verdict in verdicts if verdict.verdict == kind]
    for slowdown in slow:
        limit, shared = slowdown.limit, slowdown.shared
        if slowdown.ratio is not None and not slowdown.kept:
            rule = f"median over the baseline's {slowdown.ratio:.3g}, the rule is at most {limit * shared:.3g}"
            rule += f" ({limit:.3g} times {shared:.3g} that most cases have in common)" if shared > 1 else ""
            message = f"{metric_words(slowdown.metric)}: {rule}"
            listed.append(Finding("bad", "degraded", slowdown.case, message, slowdown.metric, slowdown.ratio))
    return sorted(listed, key=lambda finding: GRAVITY.index(finding.gravity))


def exit_code(findings: Sequence[Finding]) -> int:
    """Return the exit code of a command: 3 with an untrusted finding, else 1 with a bad finding, else 0."""
    gravities = {finding.gravity for finding in findings}
    return 3 if "untrusted" in gravities else 1 if "bad" in gravities else 0


def _of_case(case: CaseResult, stand_in: StandIn | None) -> list[Finding]:
    listed: list[Finding] = []
    if case.status != "ok":
        gravity = "note" if case.status == "skipped" else "bad"
        listed.append(Finding(gravity, case.status, case.name, case.reason or "the record gives no reason"))
    for measured in case.measurements:
        if not measured.valid:  # samples of a kernel without trust are grave, an empty cell is only a note
            gravity = "untrusted" if measured.samples and measured.distrusted else "note"
            whose = "" if measured.subject == "kernel" else f"{measured.subject.replace(':', ' ')}, "
            message = f"{whose}{metric_words(measured.metric)}: {measured.reason or 'the record gives no reason'}"
            kind = "invalid" if measured.samples else "empty"
            listed.append(Finding(gravity, kind, case.name, message, measured.metric))
    for peer in peers(case):
        if peer.kind == COMPILED and peer.unstable:  # it may have run in different forms in its processes
            message = f"peer {peer.name} is {peer.unstable_text} by process; its fastest process counts"
            listed.append(Finding("note", "unstable", case.name, message, clock_of(case)))
    throttled = sum(measured.throttled for measured in case.measurements)
    if throttled:
        samples = f"{count_text(throttled, 'sample')} {'was' if throttled == 1 else 'were'}"
        listed.append(Finding("note", "throttled", case.name, f"{samples} taken at a throttled clock and repeated"))
    if stand_in and (ends := unstable_stand_in(case)):
        message = f"the time of the {stand_in.name} is {range_text(*ends)} by process"
        listed.append(Finding("note", "unstable", case.name, message, "wall_time"))
    return listed


def _of_budget(verdict: BudgetVerdict) -> Finding:
    """Return the finding of a missed, undecided or expired budget."""
    budget, name = verdict.budget, metric_words(verdict.budget.metric)
    value, promise = (value_text(budget.metric, number) for number in (verdict.value, budget.limit))
    if verdict.verdict == "missed":
        limit = "at least" if budget.at_most is None else "at most"
        message = f"{name} is {value}; the budget is {limit} {promise}"
        return Finding("bad", "missed", verdict.case, message, budget.metric, verdict.ratio)
    if verdict.verdict == "undecided":
        low, high = (value_text(budget.metric, end) for end in verdict.interval or ())
        message = f"{name} is {value} ({low} to {high}); the budget of {promise} is within its error"
        return Finding("note", "undecided", verdict.case, message, budget.metric)
    message = f"the budget of {promise} for {name} expired on "
    message += f"{budget.expires}: {budget.owner or 'its owner'} renews it or takes it out"
    return Finding("note", "expired", verdict.case, message, budget.metric)


def metric_words(metric: str) -> str:
    """Return `cold time` for `cold_time`."""
    return metric.replace("_", " ")


# Uncertainty of a case's value: its 95 % interval, by which a budget is met, missed or undecided.
#
# A time's interval is that of its processes' medians (Student's t on their logarithms); with one process only the error
# of its samples is known. A rate or a share has the error of its cold time, a ratio that of both of its times; an
# unstable peer's time is that of its fastest process. The ceiling of a share counts as exact. Energy has the
# uncertainty of its counter. Counts are exact.

_CONFIDENCE = 0.95
_MANY = float("inf")  # degrees of freedom of a normal distribution
_WIDEST = 50.0  # in log time; its exponential is still a number
_OVER_COLD = ("bandwidth", "bandwidth_share", "flop_rate", "flop_share", "bound_share")
_RATIOS = {"peer_ratio": None, "cpu_ratio": "cold_time", "cpu_ratio_end_to_end": "end_to_end_time"}


def interval_of(case: CaseResult, metric: str, value: float) -> tuple[float, float]:
    """Return the 95 % interval of the metric's `value` in the case; (value, value) if it is exact or unknown."""
    if metric == "energy":
        energies = (measured.energy for measured in case.measurements)
        energy = next((energy for energy in energies if energy and energy.joules == value), None)
        error = energy.uncertainty or 0.0 if energy else 0.0
        return value - error, value + error
    half = min(sqrt(sum(_half(case, *term) ** 2 for term in _terms(case, metric))), _WIDEST)
    return (value * exp(-half), value * exp(half)) if half else (value, value)


def _terms(case: CaseResult, metric: str) -> list[tuple[str, str]]:
    """Return the measurements, by metric and subject, from which the metric's value is computed."""
    if metric in MEASURED:
        return [(metric, "kernel")]
    if metric in _OVER_COLD:
        return [("cold_time", "kernel")]
    if metric not in _RATIOS:
        return []
    clock = _RATIOS[metric] or clock_of(case)
    if metric != "peer_ratio":
        return [(clock, "kernel"), ("wall_time", "cpu")]
    best = next(iter(peers(case)), None)
    return [(clock, "kernel"), *([(clock, f"peer:{best.name}")] if best else [])]


def _half(case: CaseResult, metric: str, subject: str) -> float:
    """Return half of the interval of the measurement's median, in log time; 0 if it is unknown."""
    measured = case.measurement(metric, subject)
    if measured is None or not measured.median:
        return 0.0
    known = medians(fastest_process(measured.processes) if subject.startswith("peer:") else measured.processes)
    if not known.logs:
        return 0.0
    freedom = len(known.logs) - 1
    variance = known.variance if freedom else known.within
    return quantile((1 + _CONFIDENCE) / 2, freedom or _MANY) * sqrt(variance) if isfinite(variance) else 0.0


def within_errors(verdicts: Sequence[BudgetVerdict], cases: Sequence[CaseResult]) -> list[BudgetVerdict]:
    """Return the verdicts with the intervals of their values: undecided if the limit is in the interval."""
    by_name = {case.name: case for case in cases}
    judged: list[BudgetVerdict] = []
    for verdict in verdicts:
        case, value = by_name.get(verdict.case), verdict.value
        if case is not None and value is not None and verdict.verdict in ("met", "missed"):
            interval = interval_of(case, verdict.budget.metric, value)
            verdict = replace(verdict, interval=interval, verdict=verdict.budget.verdict(value, interval=interval))
        judged.append(verdict)
    return judged


# Reading: the whole analysis of one record.


@dataclass(frozen=True)
class Reading:
    """A record with its limits, the verdicts on its budgets and its findings.

    `cases` are the timed cases, `rows` is their summary; `edges` are the edge and golden cases, which are only
    verified. `budgets` is empty without a catalogue: budgets are in the specs and next to the catalogue (`promises`),
    not in the record. `slowdowns` compare the record with the baseline.
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
    def kernels(self) -> tuple[CaseResult, ...]:
        """The timed cases without kernels that measure the machine; these where there are no others."""
        return tuple(case for case in self.cases if case.ceiling is None) or self.cases

    @property
    def trusted(self) -> int:
        """Number of successful cases of kernels without an invalid measurement."""
        names = {case.name for case in self.kernels}
        rows = (row for row in self.rows if row["case"] in names)
        return sum(row["status"] == "ok" and row["invalid"] is None for row in rows)

    def of_cases(self, names: Sequence[str]) -> "Reading":
        """Return the reading of those cases alone that the names choose (`with_cases`), by the limits of the record."""
        record = with_cases(self.record, names)
        chosen = {case.name for case in record.cases}
        kept = (
            finding
            for finding in self.findings
            if finding.case in chosen or (finding.case is None and finding.gravity != "note")
        )
        return replace(
            self,
            record=record,
            cases=tuple(case for case in self.cases if case.name in chosen),
            edges=tuple(case for case in self.edges if case.name in chosen),
            rows=tuple(row for row in self.rows if row["case"] in chosen),
            budgets=tuple(budget for budget in self.budgets if budget.case in chosen),
            findings=tuple(kept),
            slowdowns=tuple(slowdown for slowdown in self.slowdowns if slowdown.case in chosen),
        )

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
        """The verdicts on all promised budgets; those of cases that did not run are unmeasured."""
        return (*self.budgets, *absent(self.rows, self.promises.budgets, self.promises.source))

    @property
    def busy_shares(self) -> list[float]:
        """The reached share of its limit for each case bound by memory or arithmetic, not by the launch.

        Without kernels that measure the machine, and without former versions.
        """
        rows = [row for row in self.rows if row["ceiling"] is None and row["before"] is None]
        shares = [number(row["bound_share"]) for row in rows if row["bound"] in ("memory", "compute")]
        return [share for share in shares if share is not None]


def read(record: RunRecord, catalogue: Catalogue | None = None, *, must_be_held: bool = True) -> Reading:
    """Return the reading of a record; with the catalogue, the budgets of its specs and of the device are judged too.

    Raise a ResultsError for an invalid file of budgets. Without `must_be_held`, a file for another device, backend or
    protocol is a finding, not an error.
    """
    edges = tuple(case for case in record.cases if case.is_edge)
    cases = tuple(case for case in record.cases if not case.is_edge)
    rows = tuple(summary_rows(replace(record, cases=cases)))
    promised = promises_for if must_be_held else promises_or_reason
    promises = promised(record, catalogue) if catalogue else Promises()
    judged = budget_verdicts(rows, catalogue, promises.budgets, promises.source) if catalogue else []
    budgets = tuple(within_errors(judged, cases))
    slow = tuple(slowdowns(record, promises.degraded, promises.baseline))
    listed = findings(record, budgets, slow)
    if promises.not_held:
        message = f"nothing was compared with the device's budgets and baseline: {promises.not_held}"
        listed.append(Finding("note", "promises", None, message))
    listed += [Finding("note", "host", None, note) for note in host_notes(record, slow, promises.baseline)]
    return Reading(
        record=record,
        limits=limits_of(record),
        cases=cases,
        edges=edges,
        rows=rows,
        budgets=budgets,
        findings=tuple(listed),
        slowdowns=slow,
        promises=promises,
    )


def middle(values: list[float]) -> float | None:
    """Return the median, or None without values."""
    return median(values) if values else None


def compared(reading: Reading) -> "pandas.DataFrame":
    """Return the rows of the summary with a kernel and a rival, without former versions; `cpu` is the CPU's wall time.

    Without a device these are the rows with only a CPU time.
    """
    frame, cpu = reading.frame, reading.frame["cpu_time"]
    only_cpu = reading.record.backend == "numpy_reference"  # elsewhere a kernel's wall time is no reference's
    frame = frame.assign(cpu=cpu.fillna(frame["wall_time"]) if only_cpu else cpu)
    has_rival = frame["cold_time"].notna() & (frame["best_peer_time"].notna() | frame["cpu"].notna())
    has_cpu = frame["cpu"].notna() & bool(frame["cold_time"].isna().all())
    return frame[(has_rival | has_cpu) & frame["ceiling"].isna() & frame["before"].isna()]

"""Analysis of one record, made once for every report: rows, checks, and everything that cannot be trusted."""

from collections.abc import Iterator, Mapping, Sequence
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
    Rival,
    clock_of,
    fastest_process,
    headline_rows,
    peers,
    range_text,
    unstable_stand_in,
)
from prism_bench.analysis.summary import SummaryRow, frame_of, limits_of, noted, number, summary_rows
from prism_bench.catalogue import Catalogue
from prism_bench.measure.plausibility import Limits
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.metric import DERIVED, ELSEWHERE, MEASURED, StandIn
from prism_bench.units import count_text, rate_text, time_text

if TYPE_CHECKING:
    import pandas


# Findings of a run: everything that is wrong, cannot be trusted, was left out or broke a promise.

Gravity = Literal["bad", "untrusted", "note"]
GRAVITY = get_args(Gravity)


@dataclass(frozen=True)
class Finding:
    """Statement about a run or a case: its `gravity`, a word for its `kind`; `case` is None where it is about the run.

    `metric` is what it is about, where it is about one; `ratio` is the new value over the old one or over the promise.
    Two runs found the same thing where kind, case and metric are equal.
    """

    gravity: Gravity
    kind: str
    case: str | None
    message: str
    metric: str | None = None
    ratio: float | None = None


def findings(record: RunRecord, verdicts: Sequence[BudgetVerdict] = (), slow: Sequence[Slowdown] = ()) -> list[Finding]:
    """Return all findings of the record, the gravest first, each kind in the record's order."""
    found = (
        []
        if record.complete
        else [Finding("note", "incomplete", None, "the run was cut short; what it had measured is kept")]
    )
    for case in record.cases:
        found += _of_case(case)
        found += _unstable_stand_in(case, record.stand_in) if record.stand_in else ()
    found += [*_watched(record), *_tuned(record)]
    found += [_missed(verdict) for verdict in verdicts if verdict.verdict == "missed"]
    found += [_undecided(verdict) for verdict in verdicts if verdict.verdict == "undecided"]
    found += [_expired(verdict) for verdict in verdicts if verdict.verdict == "expired"]
    found += [_degraded(one) for one in slow if one.ratio is not None and not one.kept]
    return sorted(found, key=lambda finding: GRAVITY.index(finding.gravity))


def exit_code(found: Sequence[Finding]) -> int:
    """Return the exit code of a command: 3 where something cannot be trusted, 1 where something is bad, 0 otherwise."""
    gravities = {finding.gravity for finding in found}
    return 3 if "untrusted" in gravities else 1 if "bad" in gravities else 0


def _of_case(case: CaseResult) -> list[Finding]:
    found: list[Finding] = []
    if case.status != "ok":
        gravity = "note" if case.status == "skipped" else "bad"
        found.append(Finding(gravity, case.status, case.name, case.reason or "the record gives no reason"))
    for one in case.measurements:
        if not one.valid:
            gravity, kind = _gravity(one)
            found.append(Finding(gravity, kind, case.name, _doubt(one), one.metric))
    found += [_unstable(case, one) for one in peers(case) if one.kind == COMPILED and one.unstable]
    throttled = sum(one.throttled for one in case.measurements)
    if throttled:
        words = f"{count_text(throttled, 'sample')} {'was' if throttled == 1 else 'were'}"
        found.append(Finding("note", "throttled", case.name, f"{words} taken at a throttled clock and repeated"))
    return found


def _unstable(case: CaseResult, peer: Rival) -> Finding:
    """Report a compiled peer whose processes differ: it may not have run in the same form in each of them."""
    message = f"peer {peer.name} is {peer.unstable_text} by process; its fastest process counts"
    return Finding("note", "unstable", case.name, message, clock_of(case))


def _unstable_stand_in(case: CaseResult, stand_in: StandIn) -> Iterator[Finding]:
    """Report what was timed in place of a kernel where its processes differ, by the rule for peers."""
    if ends := unstable_stand_in(case):
        message = f"the time of the {stand_in.name} is {range_text(*ends)} by process"
        yield Finding("note", "unstable", case.name, message, "wall_time")


def _watched(record: RunRecord) -> Iterator[Finding]:
    """Yield one finding for each note of measurements, however many measurements have it."""
    for note, count in noted(record).items():
        words = count_text(count, "measurement")
        yield Finding("note", "evidence", None, f"{note} ({words})")


def _tuned(record: RunRecord) -> Iterator[Finding]:
    """Yield which choices did not count: all of another device's, or some that are stale."""
    if record.tuning.get("unused"):
        yield Finding("note", "untuned", None, record.tuning["unused"])
    for case, reason in record.tuning.get("stale", {}).items():
        yield Finding("note", "stale", case, f"launched by default, its choice is stale: {reason}")


def _gravity(one: Measurement) -> tuple[Gravity, str]:
    """Return gravity and kind: a kernel's samples that cannot be trusted are grave; an empty cell is a note."""
    if not one.samples:
        return "note", "empty"
    return ("untrusted" if one.distrusted else "note"), "invalid"


def _doubt(one: Measurement) -> str:
    whose = "" if one.subject == "kernel" else f"{one.subject.replace(':', ' ')}, "
    return f"{whose}{metric_words(one.metric)}: {one.reason or 'the record gives no reason'}"


def _missed(verdict: BudgetVerdict) -> Finding:
    budget = verdict.budget
    limit, word = budget.limit, "at least" if budget.at_most is None else "at most"
    value, promise = value_text(budget.metric, verdict.value), value_text(budget.metric, limit)
    message = f"{metric_words(budget.metric)} is {value}; the budget is {word} {promise}"
    return Finding("bad", "missed", verdict.case, message, budget.metric, verdict.ratio)


def _undecided(verdict: BudgetVerdict) -> Finding:
    budget = verdict.budget
    low, high = (value_text(budget.metric, end) for end in verdict.interval or ())
    value, promise = (value_text(budget.metric, one) for one in (verdict.value, budget.limit))
    message = f"{metric_words(budget.metric)} is {value} ({low} to {high}); the budget of {promise} is within its error"
    return Finding("note", "undecided", verdict.case, message, budget.metric)


def _expired(verdict: BudgetVerdict) -> Finding:
    budget = verdict.budget
    message = f"the budget of {value_text(budget.metric, budget.limit)} for {metric_words(budget.metric)} expired on "
    message += f"{budget.expires}: {budget.owner or 'its owner'} renews it or takes it out"
    return Finding("note", "expired", verdict.case, message, budget.metric)


def _degraded(one: Slowdown) -> Finding:
    """Report a case that takes longer than the baseline by more than the factor."""
    rule = f"median over the baseline's {one.ratio:.3g}, the rule is at most {one.limit * one.shared:.3g}"
    rule += f" ({one.limit:.3g} times {one.shared:.3g} that most cases have in common)" if one.shared > 1 else ""
    message = f"{metric_words(one.metric)}: {rule}"
    return Finding("bad", "degraded", one.case, message, one.metric, one.ratio)


def metric_words(metric: str) -> str:
    """Return `cold time` for `cold_time`."""
    return metric.replace("_", " ")


def value_text(metric: str, value: float | None) -> str:
    """Return a value of a metric in words for people; a plain number where the metric is unknown."""
    known = {**MEASURED, **ELSEWHERE, **DERIVED}.get(metric)
    unit = known.unit if known else None
    if value is None:
        return "-"
    if unit == "s":
        return time_text(value)
    if unit == "1":
        return f"{value * 100:.3g} %" if metric.endswith("share") else f"{value:.3g}x"
    return rate_text(value, unit) if unit else f"{value:g}"


# Uncertainty of a case's value: its 95 % interval, by which a budget is met, missed or undecided.
#
# A time's interval is that of its processes' medians (Student's t on their logarithms); with one process only its
# samples' own error is known. A rate or a share follows the cold time it is made of, a ratio follows both of its times;
# an unstable peer's time is that of its fastest process. The ceiling of a share is taken as it was measured. Energy has
# the uncertainty of its counter. Counts are exact.

_CONFIDENCE = 0.95
_MANY = float("inf")  # degrees of freedom of a normal distribution
_WIDEST = 50.0  # in log time; its exponential is still a number
_OVER_COLD = ("bandwidth", "bandwidth_share", "flop_rate", "flop_share", "bound_share")
_RATIOS = {"peer_ratio": None, "cpu_ratio": "cold_time", "cpu_ratio_end_to_end": "end_to_end_time"}

Interval = tuple[float, float]


def interval_of(case: CaseResult, metric: str, value: float) -> Interval:
    """Return the 95 % interval of the metric's `value` in the case; the value alone where it is exact or unknown."""
    if metric == "energy":
        spent = next((one.energy for one in case.measurements if one.energy and one.energy.joules == value), None)
        error = spent.uncertainty or 0.0 if spent else 0.0
        return value - error, value + error
    half = min(sqrt(sum(_half(case, *term) ** 2 for term in _terms(case, metric))), _WIDEST)
    return (value * exp(-half), value * exp(half)) if half else (value, value)


def _terms(case: CaseResult, metric: str) -> list[tuple[str, str]]:
    """Return the measurements, by metric and subject, that the metric's value is made of."""
    if metric in MEASURED:
        return [(metric, "kernel")]
    if metric in _OVER_COLD:
        return [("cold_time", "kernel")]
    if metric not in _RATIOS:
        return []
    own = (_RATIOS[metric] or clock_of(case), "kernel")
    if metric != "peer_ratio":
        return [own, ("wall_time", "cpu")]
    best = next(iter(peers(case)), None)
    return [own, (own[0], f"peer:{best.name}")] if best else [own]


def _half(case: CaseResult, metric: str, subject: str) -> float:
    """Return half of the interval of the measurement's median, in log time; 0 where nothing of it is known."""
    found = case.measurement(metric, subject)
    processes = found.processes if found else ()
    chosen = fastest_process(processes) if subject.startswith("peer:") else processes
    known = medians(chosen) if found and found.median else None
    if known is None or not known.logs:
        return 0.0
    freedom = len(known.logs) - 1
    variance = known.variance if freedom else known.within
    return quantile((1 + _CONFIDENCE) / 2, freedom or _MANY) * sqrt(variance) if isfinite(variance) else 0.0


def within_errors(verdicts: Sequence[BudgetVerdict], cases: Sequence[CaseResult]) -> list[BudgetVerdict]:
    """Return the verdicts with the intervals of their values: undecided where the limit is in the interval."""
    known = {case.name: case for case in cases}
    return [_judged(verdict, known) for verdict in verdicts]


def _judged(verdict: BudgetVerdict, cases: Mapping[str, CaseResult]) -> BudgetVerdict:
    case = cases.get(verdict.case)
    if case is None or verdict.value is None or verdict.verdict not in ("met", "missed"):
        return verdict
    interval = interval_of(case, verdict.budget.metric, verdict.value)
    return replace(verdict, interval=interval, verdict=verdict.budget.verdict(verdict.value, interval=interval))


# Reading: the whole analysis of one record, made once for every kind of report.


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
        record=record,
        limits=limits_of(record),
        cases=cases,
        edges=edges,
        rows=rows,
        budgets=budgets,
        findings=(
            *findings(record, budgets, slow),
            *_not_held(promises),
            *(Finding("note", "host", None, words) for words in host_notes(record, slow, promises.baseline)),
        ),
        slowdowns=slow,
        promises=promises,
    )


def _not_held(promises: Promises) -> list[Finding]:
    """Return a note where budgets and baseline are about other records."""
    message = f"nothing was compared with the device's budgets and baseline: {promises.not_held}"
    return [Finding("note", "promises", None, message)] if promises.not_held else []


def middle(values: list[float]) -> float | None:
    """Return the median; None where there are no values."""
    return median(values) if values else None


# The kernels of a run that are compared with the CPU and with libraries.


def compared(reading: Reading) -> "pandas.DataFrame":
    """Return the rows of the summary with a kernel and a rival to it, without forms that are kept to compare with.

    Where there was no device these are the rows with the CPU alone.
    `cpu` is the CPU's wall time, with or without a device.
    """
    frame, cpu = reading.frame, reading.frame["cpu_time"]
    alone_on_cpu = reading.record.backend == "numpy_reference"  # elsewhere a kernel's wall time is no reference's
    frame = frame.assign(cpu=cpu.fillna(frame["wall_time"]) if alone_on_cpu else cpu)
    beside = frame["cold_time"].notna() & (frame["best_peer_time"].notna() | frame["cpu"].notna())
    alone = frame["cpu"].notna() & bool(frame["cold_time"].isna().all())
    return frame[(beside | alone) & frame["ceiling"].isna() & frame["before"].isna()]

"""Findings of a run: everything that is wrong, cannot be trusted, was left out or broke a promise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from prism_bench.analysis.conditions import noted
from prism_bench.analysis.gate.baselines import Slowdown
from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.analysis.rivals import COMPILED, Rival, clock_of, peers, range_text, unstable_stand_in
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.metric import DERIVED, ELSEWHERE, MEASURED, StandIn
from prism_bench.units import count_text, rate_text, time_text

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

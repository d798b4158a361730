"""The profiling guide's rules of thumb: what it calls slow, unsteady, an outlier or degraded, and what it aims at.

Its figures are in `published.toml`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev

from lab.published.figures import quoted
from prism_bench.analysis.gate.budgets import FACTOR, Promises, TomlTable
from prism_bench.analysis.run_analysis import Finding, Reading, metric_words
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.metric import MEASURED
from prism_bench.spec.workload import LABELS
from prism_bench.units import time_text


@dataclass(frozen=True)
class PublishedRules:
    """The rules in SI units, applied to `metric` at `label`, since the guide timed whole calls of small workloads.

    `degraded` is the one that the core also has: the gate checks it for every metric of the baseline.
    """

    metric: str
    label: str
    slow: float
    high_variance: float
    outlier: float
    degraded: float
    target_mean: float
    target_cv: float
    target_rate: float


@dataclass(frozen=True)
class RuleVerdict:
    """One rule on one case: what it is about (`words`), the `value`, its `limit`, and `kept`, None where unmeasured."""

    case: str
    metric: str
    rule: str
    words: str
    value: float | None
    limit: float
    kept: bool | None


@dataclass(frozen=True)
class _SampleRule:
    name: str
    words: str
    value: Callable[[Sequence[float]], float]
    limit: Callable[[PublishedRules], float]
    at_least: bool = False


def _variation(samples: Sequence[float]) -> float:
    return stdev(samples) / fmean(samples) if len(samples) > 1 else 0.0


def _farthest(samples: Sequence[float]) -> float:
    return max(samples) / fmean(samples)


def _rate(samples: Sequence[float]) -> float:
    return 1 / fmean(samples)


_RULES = (
    _SampleRule("slow", "mean in seconds", fmean, lambda rules: rules.slow),
    _SampleRule("high variance", "standard deviation over mean", _variation, lambda rules: rules.high_variance),
    _SampleRule("outlier", "longest over mean", _farthest, lambda rules: rules.outlier),
    _SampleRule("target mean", "mean in seconds", fmean, lambda rules: rules.target_mean),
    _SampleRule("target variance", "standard deviation over mean", _variation, lambda rules: rules.target_cv),
    _SampleRule("target rate", "calls per second", _rate, lambda rules: rules.target_rate, True),
)
REMARKED = ("slow", "high variance", "outlier")  # what misses an aim alone is no remark


@cache
def published_rules() -> PublishedRules:
    """Return the rules as the guide printed them."""
    table = quoted()["rules"]
    return rules_from(TomlTable({**table}, "published.toml: rules"))


def rules_for(promises: Promises) -> PublishedRules:
    """Return the rules with the factor that the device's file of budgets sets."""
    own = {**quoted()["rules"], "degraded_over_baseline": promises.degraded}
    return rules_from(TomlTable(own, "published.toml: rules"))


def rules_from(table: TomlTable) -> PublishedRules:
    """Return the rules that the table gives in the guide's units."""
    found = PublishedRules(
        metric=table.known_word("metric", MEASURED),
        label=table.known_word("label", LABELS),
        slow=table.number("slow_mean_us") * 1e-6,
        high_variance=table.number("high_variance_cv"),
        outlier=table.number("outlier_max_over_mean"),
        degraded=table.number("degraded_over_baseline", FACTOR),
        target_mean=table.number("target_mean_us") * 1e-6,
        target_cv=table.number("target_cv"),
        target_rate=table.number("target_calls_per_second"),
    )
    table.finish()
    return found


def rule_verdicts(record: RunRecord, rules: PublishedRules) -> list[RuleVerdict]:
    """Return the verdict of every rule about samples on every case at the rules' label."""
    cases = [case for case in record.cases if case.label == rules.label and not case.is_edge and not case.ceiling]
    return [_verdict(case, rule, rules) for case in cases for rule in _RULES]


def _verdict(case: CaseResult, rule: _SampleRule, rules: PublishedRules) -> RuleVerdict:
    samples, limit = _samples(case.measurement(rules.metric)), rule.limit(rules)
    value = rule.value(samples) if samples else None
    kept = None if value is None else value >= limit if rule.at_least else value <= limit
    return RuleVerdict(case.name, rules.metric, rule.name, rule.words, value, limit, kept)


def _samples(measurement: Measurement | None) -> Sequence[float]:
    return list(measurement.samples) if measurement and measurement.valid else []


def verdicts(reading: Reading, rules: PublishedRules) -> list[RuleVerdict]:
    """Return every rule on every case, the comparison with the baseline after those about samples."""
    against_baseline = [
        RuleVerdict(
            slow.case,
            slow.metric,
            "degraded",
            "median over the baseline's",
            slow.ratio,
            slow.limit * slow.shared,
            slow.kept,
        )
        for slow in reading.slowdowns
    ]
    return rule_verdicts(reading.record, rules) + against_baseline


def remarks(verdicts: Sequence[RuleVerdict]) -> list[Finding]:
    """Return a note for each case that the guide calls slow, unsteady or an outlier."""
    return [_remark(one) for one in verdicts if one.kept is False and one.rule in REMARKED]


def _remark(one: RuleVerdict) -> Finding:
    value, limit = (_text(one, number) for number in (one.value, one.limit))
    message = f"{metric_words(one.metric)}: {one.words} {value}, the rule is at most {limit}"
    ratio = one.value / one.limit if one.value is not None and one.limit else None
    return Finding("note", one.rule, one.case, message, one.metric, ratio)


def _text(one: RuleVerdict, value: float | None) -> str:
    """Return a value of the rule in words."""
    if value is None:
        return "-"
    return time_text(value) if "seconds" in one.words else f"{value:.3g}"

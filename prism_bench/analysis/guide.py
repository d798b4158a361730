"""The profiling guide's rules of thumb: what it calls slow, unsteady, an outlier or degraded, and what it aims at.

Its figures stand in `published.toml`; a device's file of budgets may set others (`[rules]`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev

from prism_bench.analysis.baselines import Baseline
from prism_bench.analysis.published import published_rules
from prism_bench.analysis.rivals import clock_of
from prism_bench.analysis.toml_table import TomlTable
from prism_bench.measurement import Measurement
from prism_bench.metric import MEASURED
from prism_bench.run_record import CaseResult, RunRecord
from prism_bench.workload import LABELS


@dataclass(frozen=True)
class GuideRules:
    """The rules in SI units. All but `degraded` are asked of `metric` at `label`, since the guide timed whole calls of
    small workloads; what got slower than the baseline times `degraded` is told of every metric that the baseline has.
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
class GuideVerdict:
    """One rule on one case: what was asked (`words`), the `value`, its `limit`, and `kept`: None where unmeasured."""

    case: str
    metric: str
    rule: str
    words: str
    value: float | None
    limit: float
    kept: bool | None


@dataclass(frozen=True)
class _Rule:
    name: str
    words: str
    value: Callable[[list[float]], float]
    limit: Callable[[GuideRules], float]
    at_least: bool = False


def _variation(samples):
    return stdev(samples) / fmean(samples) if len(samples) > 1 else 0.0


_RULES = (
    _Rule("slow", "mean in seconds", fmean, lambda rules: rules.slow),
    _Rule("high variance", "standard deviation over mean", _variation, lambda rules: rules.high_variance),
    _Rule("outlier", "longest over mean", lambda samples: max(samples) / fmean(samples), lambda rules: rules.outlier),
    _Rule("target mean", "mean in seconds", fmean, lambda rules: rules.target_mean),
    _Rule("target variance", "standard deviation over mean", _variation, lambda rules: rules.target_cv),
    _Rule("target rate", "calls per second", lambda samples: 1 / fmean(samples), lambda rules: rules.target_rate, True),
)
DETECTED = ("slow", "high variance", "outlier", "degraded")


@cache
def guide_rules() -> GuideRules:
    """The rules as the guide printed them."""
    return rules_from(TomlTable(dict(published_rules()), "published.toml: rules"), None)


def rules_from(table: TomlTable, base: GuideRules | None) -> GuideRules:
    """The rules that the table gives, those of `base` for what it leaves out."""
    take = lambda key, scale, name: table.number(key, *_default(base, name, scale)) * scale  # noqa: E731
    found = GuideRules(
        metric=table.known_word("metric", MEASURED, *_default(base, "metric")),
        label=table.known_word("label", LABELS, *_default(base, "label")),
        slow=take("slow_mean_us", 1e-6, "slow"),
        high_variance=take("high_variance_cv", 1, "high_variance"),
        outlier=take("outlier_max_over_mean", 1, "outlier"),
        degraded=take("degraded_over_baseline", 1, "degraded"),
        target_mean=take("target_mean_us", 1e-6, "target_mean"),
        target_cv=take("target_cv", 1, "target_cv"),
        target_rate=take("target_calls_per_second", 1, "target_rate"),
    )
    table.finish()
    return found


def _default(base, name, scale=None):
    if base is None:
        return ()
    value = getattr(base, name)
    return (value / scale,) if scale else (value,)


def guide_verdicts(record: RunRecord, rules: GuideRules, baseline: Baseline | None = None) -> list[GuideVerdict]:
    """Every rule on every case that it is asked of; what has no baseline is not known to be as fast as before."""
    before: dict[str, dict[str, float]] = {}
    for (name, metric), seconds in (baseline.seconds if baseline else {}).items():
        before.setdefault(name, {})[metric] = seconds
    found = []
    for case in (case for case in record.cases if not case.is_edge):
        if case.label == rules.label and not case.ceiling:
            samples = _samples(case.measurement(rules.metric))
            found += [_verdict(case, rules.metric, rule, samples, rules) for rule in _RULES]
        found += _degraded(case, rules, before.get(case.name) or {clock_of(case): 0.0})
    return found


def _samples(measurement: Measurement | None):
    return list(measurement.samples) if measurement and measurement.valid else []


def _verdict(case: CaseResult, metric, rule, samples, rules):
    value, limit = rule.value(samples) if samples else None, rule.limit(rules)
    kept = None if value is None else value >= limit if rule.at_least else value <= limit
    return GuideVerdict(case.name, metric, rule.name, rule.words, value, limit, kept)


def _degraded(case: CaseResult, rules, before: Mapping[str, float]):
    """The case's medians over the baseline's, by metric; unmeasured where this record or the baseline has none."""
    for metric, seconds in before.items():
        one = case.measurement(metric)
        value = one.median / seconds if seconds and one and one.valid and one.samples else None
        kept = None if value is None else value <= rules.degraded
        yield GuideVerdict(case.name, metric, "degraded", "median over the baseline's", value, rules.degraded, kept)

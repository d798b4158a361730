"""Uncertainty of a case's value: its 95 % interval, by which a budget is met, missed or undecided.

A time's interval is that of its processes' medians (Student's t on their logarithms); with one process only its
samples' own error is known. A rate or a share follows the cold time it is made of, a ratio follows both of its times;
an unstable peer's time is that of its fastest process. The ceiling of a share is taken as it was measured. Energy has
the uncertainty of its counter. Counts are exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, isfinite, sqrt

from prism_bench.analysis import rivals
from prism_bench.analysis.compare.estimate import quantile
from prism_bench.analysis.compare.medians import medians
from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.record.run_record import CaseResult
from prism_bench.spec.metric import MEASURED

CONFIDENCE = 0.95
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
    own = (_RATIOS[metric] or rivals.clock_of(case), "kernel")
    if metric != "peer_ratio":
        return [own, ("wall_time", "cpu")]
    best = next(iter(rivals.peers(case)), None)
    return [own, (own[0], f"peer:{best.name}")] if best else [own]


def _half(case: CaseResult, metric: str, subject: str) -> float:
    """Return half of the interval of the measurement's median, in log time; 0 where nothing of it is known."""
    found = case.measurement(metric, subject)
    processes = found.processes if found else ()
    chosen = rivals.fastest_process(processes) if subject.startswith("peer:") else processes
    known = medians(chosen) if found and found.median else None
    if known is None or not known.logs:
        return 0.0
    freedom = len(known.logs) - 1
    variance = known.variance if freedom else known.within
    return quantile((1 + CONFIDENCE) / 2, freedom or _MANY) * sqrt(variance) if isfinite(variance) else 0.0


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

"""Kernels that take much longer than before: a rule of thumb that needs neither error bars nor a second process."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prism_bench.analysis.gate.baselines import Baseline
from prism_bench.analysis.rivals import clock_of
from prism_bench.run_record import CaseResult, RunRecord

FACTOR = 1.5  # half as long again: no noise, control or number of processes makes that a matter of chance


@dataclass(frozen=True)
class Slowdown:
    """A case's median over the baseline's: `ratio`, None where one of them is missing, and the `limit` of the rule."""

    case: str
    metric: str
    ratio: float | None
    limit: float

    @property
    def kept(self) -> bool | None:
        """Whether the rule is kept; None where the ratio is unknown."""
        return None if self.ratio is None else self.ratio <= self.limit


def slowdowns(record: RunRecord, factor: float = FACTOR, baseline: Baseline | None = None) -> list[Slowdown]:
    """Compare every case with the baseline, metric by metric; a case without a baseline has one unknown ratio."""
    before: dict[str, dict[str, float]] = {}
    for (name, metric), seconds in baseline.seconds.items() if baseline else ():
        before.setdefault(name, {})[metric] = seconds
    return [
        slowdown
        for case in record.cases
        if not case.is_edge
        for slowdown in _of_case(case, before.get(case.name) or {clock_of(case): 0.0}, factor)
    ]


def _of_case(case: CaseResult, before: Mapping[str, float], factor: float) -> Iterator[Slowdown]:
    """Yield the ratio of the case's median to each of the baseline's."""
    for metric, seconds in before.items():
        one = case.measurement(metric)
        median = one.median if one and one.valid and one.samples else None
        yield Slowdown(case.name, metric, median / seconds if seconds and median is not None else None, factor)

"""Decision of a tuning session: which configuration is adopted, by the same verdict as any comparison of times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

from prism_bench.analysis.compare.estimate import Spread
from prism_bench.analysis.compare.medians import medians
from prism_bench.analysis.compare.verdict import RULES, Judgement, Pair, VerdictRules, judged, pair_of
from prism_bench.record.measurement import Measurement
from prism_bench.spec.case import Case
from prism_bench.units import share_text


@dataclass(frozen=True)
class Searched:
    """One case after the search: how many configurations were launched, and why some were refused (by task).

    `best` are the best few, best first; none where nothing was quicker than the default. `seconds` has the search's
    median of every configuration that is right, by task.
    """

    default: Case
    tried: int
    refused: Mapping[str, str]
    seconds: Mapping[str, float]
    best: tuple[Case, ...] = ()
    space: int = 0


@dataclass(frozen=True)
class Decided:
    """Configuration launched from now on: `chosen`, the default where nothing beat it beyond the noise, and why.

    `seconds` are the medians of default and chosen; `speedup` is the first over the second. `judged` is False where
    candidates were left without new times, or with those of too few processes.
    """

    searched: Searched
    chosen: Case
    reason: str
    seconds: tuple[float, float]
    speedup: float = 1.0
    interval: tuple[float, float] = (1.0, 1.0)
    judged: bool = True

    @property
    def settled(self) -> bool:
        """Whether the search has a result: the default has a time, and what was quicker in the search has a new one."""
        return self.judged and self.seconds[0] == self.seconds[0]

    @property
    def adopted(self) -> bool:
        """Whether the default is left."""
        return bool(self.chosen.choice)


def decided(
    searched: Sequence[Searched], again: Mapping[str, Measurement], known: Mapping[str, Spread] | None = None,
    rules: VerdictRules = RULES,
) -> list[Decided]:  # fmt: skip
    """Return for each case the quickest candidate whose new times have the verdict `faster` against the default's.

    `again` has the times of fresh processes by task, `known` the noise of cases by name. All candidates of all cases
    are judged as one suite, so that trying many does not make one win by chance.
    """
    spreads, pairs = known or {}, dict[str, Pair]()
    for one in searched:
        for case in one.best:
            default, candidate = again.get(one.default.task), again.get(case.task)
            if default and candidate:
                pairs[case.task] = pair_of(default, candidate, spreads.get(one.default.name))
    judgements = dict(zip(pairs, judged(list(pairs.values()), rules), strict=True))
    return [_decided(one, judgements, again) for one in searched]


def _decided(one: Searched, judgements: Mapping[str, Judgement], again: Mapping[str, Measurement]) -> Decided:
    faster = [case for case in one.best if case.task in judgements and judgements[case.task].verdict == "faster"]
    usual = _paired(again.get(one.default.task), one.seconds.get(one.default.task))
    if not faster:
        judged_one = not one.best or any(judgements[c.task].estimate.freedom for c in one.best if c.task in judgements)
        return Decided(one, one.default, _why_not(one, judgements), (usual, usual), judged=judged_one)
    chosen = min(faster, key=lambda case: judgements[case.task].estimate.ratio)
    found = judgements[chosen.task].estimate
    low, high = found.interval()
    reason = f"{share_text(1 / found.ratio - 1)} faster, noise floor {share_text(judgements[chosen.task].floor)}"
    seconds = usual, _paired(again.get(chosen.task))
    return Decided(one, chosen, reason, seconds, 1 / found.ratio, (1 / high, 1 / low))


def _paired(measured: Measurement | None, otherwise: float | None = None) -> float:
    """Return the median of new times as the speedup is made of it, the search's without new times (NaN without any)."""
    found = medians(measured.processes).typical if measured else otherwise
    return float("nan") if found is None else found


def _why_not(one: Searched, judgements: Mapping[str, Judgement]) -> str:
    if one.default.task in one.refused:
        return f"the default itself has no time: {one.refused[one.default.task]}"
    if not one.best:
        return "no configuration was quicker than the default in the search"
    judged_ones = [judgements[case.task] for case in one.best if case.task in judgements]
    if not judged_ones:
        return "the candidates were not timed again"
    best = min(judged_ones, key=lambda judgement: judgement.estimate.ratio)
    reason = best.reason or f"the best candidate is {best.verdict}"
    return f"the default is kept: {reason}"


def mean_speedup(decisions: Sequence[Decided]) -> float | None:
    """Return the geometric mean over all of these cases, those that keep their default among them; None without any."""
    logs = [log(one.speedup) for one in decisions]
    return exp(sum(logs) / len(logs)) if logs else None

"""The verdict on many pairs at once: slower, faster, same, or inconclusive with the reason.

A change is called only where it (1) survives Benjamini and Hochberg's control of false discoveries over the whole suite
(J. R. Stat. Soc. B 57 (1995) 289), (2) is larger than the floor, which is what these processes could tell from nothing,
and (3) shows in cycles of the SM clock too, where samples carry it, so that a clock which ran slower is no regression.
Everything else is the same where the whole interval lies within the floor, and inconclusive where it does not; a floor
that hides a lot makes nothing the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, log1p

import numpy as np

from prism_bench.analysis.estimate import Estimate, Spread, estimate, pooled, smallest_change
from prism_bench.analysis.medians import Medians
from prism_bench.units import share_text

CHANGED = ("slower", "faster")
VERDICTS = (*CHANGED, "same", "inconclusive")
TICKS = 1.5  # a difference of one tick of the clock may come from any difference at all


@dataclass(frozen=True)
class Rules:
    """How strict a verdict is: the `confidence` of intervals, the share of false `discoveries` among the changes
    called, the `least` relative change worth a word, the `most` that may hide under the word "same", and whether cases
    of identical code are a `control`.
    """

    confidence: float = 0.95
    discoveries: float = 0.05
    least: float = 0.01
    most: float = 0.05
    control: bool = True


RULES = Rules()


@dataclass(frozen=True)
class Pair:
    """The two sides of one case in seconds, in cycles where known, and the spread `known` from A/A measurement."""

    a: Medians
    b: Medians
    cycles: tuple[Medians, Medians] | None = None
    known: Spread | None = None


@dataclass(frozen=True)
class Judgement:
    """The `verdict` with its `reason` (inconclusive only), the ratio B over A in time and in cycles, the `floor`."""

    verdict: str
    reason: str | None
    estimate: Estimate
    in_cycles: Estimate | None
    floor: float


def judged(pairs: Sequence[Pair], rules: Rules = RULES, widening: float = 1.0) -> list[Judgement]:
    """One judgement per pair; `widening` multiplies every error, where a control showed that they are too small."""
    estimates = [estimate(pair.a, pair.b, pair.known).widened(widening) for pair in pairs]
    chances = adjusted([one.p for one in estimates])
    return [
        _judgement(pair, one, chance <= rules.discoveries, rules, widening)
        for pair, one, chance in zip(pairs, estimates, chances, strict=True)
    ]


def adjusted(chances: Sequence[float]) -> np.ndarray:
    """The p-values of many tests, each as Benjamini and Hochberg's procedure holds it against the share of false ones.

    As `scipy.stats.false_discovery_control` has them, whose module takes a second to import.
    """
    order = np.argsort(chances)[::-1]
    scaled = np.asarray(chances)[order] * len(chances) / np.arange(len(chances), 0, -1)
    found = np.empty(len(chances))
    found[order] = np.minimum.accumulate(np.minimum(scaled, 1.0))
    return found


def _judgement(pair, found, significant, rules, widening):
    in_cycles = estimate(*pair.cycles, pair.known).widened(widening) if pair.cycles else None
    floor = _floor(pair, rules, widening)
    verdict, reason = _verdict(found, in_cycles, floor, significant, rules)
    return Judgement(verdict, reason, found, in_cycles, floor)


def _floor(pair, rules, widening):
    spread = pair.known or pooled(pair.a, pair.b)
    seen = smallest_change(spread, len(pair.a.logs), len(pair.b.logs))
    return max(rules.least, expm1(log1p(seen) * widening), TICKS * max(pair.a.resolution, pair.b.resolution))


def _verdict(found, in_cycles, floor, significant, rules):
    if not found.freedom:
        return "inconclusive", "one process a side says nothing of the spread between processes"
    word = "slower" if found.log > 0 else "faster"
    low, high = found.interval(rules.confidence)
    if significant and abs(found.log) > log1p(floor):
        if in_cycles is not None and not _confirms(in_cycles, found.log, rules):
            return "inconclusive", f"{word} in time and not in cycles: the SM clock differed"
        return word, None
    if max(high, 1 / max(low, 1e-9)) < 1 + min(floor, rules.most):
        return "same", None
    size = share_text(abs(found.ratio - 1))
    if significant:
        return "inconclusive", f"withheld: {size} {word} is below the floor of {share_text(floor)}"
    return "inconclusive", f"{share_text(low - 1)} to {share_text(high - 1)} is neither nothing nor a change"


def _confirms(in_cycles, log, rules):
    low, high = in_cycles.interval(rules.confidence)
    return low > 1 if log > 0 else high < 1

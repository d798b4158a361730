"""The verdict on many pairs at once: slower, faster, same, or inconclusive with the reason.

A change is called only where all of this holds, in time and, where samples carry the SM clock, in cycles too:

1. it survives Benjamini and Hochberg's control of false discoveries over the whole suite (J. R. Stat. Soc. B 57 (1995)
   289). A pair's p is the larger of both: neither a clock that moved nor a memory that did not follow it counts.
2. it is larger than the noise floor, the smallest change that these processes could find.
3. it is larger than what processes of one side differ by somewhere in the suite, unless a noise floor is known or
   there are processes enough to exclude that they were placed unequally (`placements`).

`same` needs the whole interval within `most`, some of it within `least`, and states within how much. All else is
inconclusive.

Undecided cases get more processes, in a sequential design. Each look judges every case at its number of processes, and
all p-values are multiplied by the number of looks that there may be (Bonferroni over the looks). At whichever look a
case was stopped, its product is at least the smallest of all of them, which is a p-value; so the control of false
discoveries over the suite holds for the whole procedure. The interval behind "same" is as sure over all looks as a
single one's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, expm1, hypot, log1p
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from prism_bench.analysis.compare.estimate import Estimate, Spread, estimate, pooled, reach, smallest_change
from prism_bench.analysis.compare.medians import Medians, cycles, medians
from prism_bench.analysis.compare.placements import NEEDED, WITNESSES, level_floor, stale_floor, supported
from prism_bench.measurement import Measurement
from prism_bench.units import share_text

Verdict = Literal["slower", "faster", "same", "inconclusive"]
VERDICTS = get_args(Verdict)
CHANGED: tuple[Verdict, ...] = ("slower", "faster")
TICKS = 1.5  # a difference of one tick of the clock may come from any difference at all


@dataclass(frozen=True)
class VerdictRules:
    """Strictness of verdicts: the `confidence` of intervals and the share of false `discoveries` among called changes.

    `least` is the smallest relative change worth a report, `most` the largest that may be called "same"; `control` is
    whether cases of identical code are a control. `looks` is how often the processes are judged while more are
    measured.
    """

    confidence: float = 0.95
    discoveries: float = 0.002
    least: float = 0.01
    most: float = 0.05
    control: bool = True
    looks: int = 1

    @property
    def repeated(self) -> float:
        """The confidence of one of several looks, which together are as sure as `confidence`."""
        return 1 - (1 - self.confidence) / self.looks


RULES = VerdictRules()


@dataclass(frozen=True)
class Pair:
    """The two sides of one case in seconds, in cycles where known, and the spread `known` from A/A measurement."""

    a: Medians
    b: Medians
    cycles: tuple[Medians, Medians] | None = None
    known: Spread | None = None


def pair_of(a: Measurement, b: Measurement, known: Spread | None = None) -> Pair:
    """Return the two measurements as a pair, with the spread `known` from A/A measurement."""
    clocked = cycles(a), cycles(b)
    in_cycles = (clocked[0], clocked[1]) if clocked[0] and clocked[1] else None
    return Pair(medians(a.processes), medians(b.processes), in_cycles, known)


@dataclass(frozen=True)
class MachineShift:
    """Change of the machine between the sides of a pair, by a control: the `log` of its factor, known with `error`."""

    log: float = 0.0
    error: float = 0.0

    @property
    def ratio(self) -> float:
        """By how much the machine took longer in B."""
        return exp(self.log)


@dataclass(frozen=True)
class Judgement:
    """The `verdict` with its `reason`, the ratio B over A in time and in cycles, and the noise `floor`.

    Both ratios are divided by the control's `shift`. `within` is the largest change that the interval leaves open where
    the verdict is "same".
    """

    verdict: Verdict
    reason: str | None
    estimate: Estimate
    in_cycles: Estimate | None
    floor: float
    within: float | None = None
    shift: MachineShift = MachineShift()


@dataclass(frozen=True)
class _Evidence:
    """Estimates and noise floors of one pair (time, cycles), and the level that its processes may be placed on."""

    estimates: tuple[Estimate, ...]
    floors: tuple[float, ...]
    levels: float
    processes: tuple[int, int]


def judged(
    pairs: Sequence[Pair],
    rules: VerdictRules = RULES,
    widening: float = 1.0,
    shifts: Sequence[MachineShift] | None = None,
) -> list[Judgement]:
    """Return one judgement per pair.

    `widening` multiplies every error, where a control showed that they are too small; `shifts`, one per pair, are
    divided out.
    """
    shifts = shifts if shifts is not None else [MachineShift()] * len(pairs)
    levels = level_floor(_witnesses(pairs)), stale_floor(_known(pairs))
    seen = [_evidence(pair, shift, rules, widening, levels=levels) for pair, shift in zip(pairs, shifts, strict=True)]
    in_time = adjusted([rules.looks * one.estimates[0].p for one in seen])
    in_all = adjusted([rules.looks * max(found.p for found in one.estimates) for one in seen])
    return [
        _judgement(one, shift, (chance <= rules.discoveries, both <= rules.discoveries), rules)
        for one, shift, chance, both in zip(seen, shifts, in_time, in_all, strict=True)
    ]


def _witnesses(pairs: Sequence[Pair]) -> list[tuple[Medians, Medians]]:
    """Return the sides that show the levels of processes: those of unknown noise, or all where these are few."""
    unknown = [(pair.a, pair.b) for pair in pairs if pair.known is None]
    return unknown if len(unknown) >= WITNESSES else [(pair.a, pair.b) for pair in pairs]


def _known(pairs: Sequence[Pair]) -> list[tuple[Medians, Medians, float]]:
    """Return the sides of known noise, with by how many times their own variance exceeds it."""
    owned = [(pair, pair.known, pooled(pair.a, pair.b)) for pair in pairs if pair.known is not None]
    return [(pair.a, pair.b, own.variance / known.variance if own.freedom and known.variance else 1.0)
            for pair, known, own in owned]  # fmt: skip


def adjusted(chances: Sequence[float]) -> NDArray[np.float64]:
    """Return the p-values of many tests, adjusted by Benjamini and Hochberg's procedure.

    As `scipy.stats.false_discovery_control` has them, whose module takes a second to import.
    """
    order = np.argsort(chances)[::-1]
    scaled = np.asarray(chances)[order] * len(chances) / np.arange(len(chances), 0, -1)
    found = np.empty(len(chances))
    found[order] = np.minimum.accumulate(np.minimum(scaled, 1.0))
    return found


def _evidence(
    pair: Pair, shift: MachineShift, rules: VerdictRules, widening: float, *, levels: tuple[float, float]
) -> _Evidence:
    sides = [(pair.a, pair.b), *([pair.cycles] if pair.cycles else [])]
    found = tuple(estimate(*both, pair.known).widened(widening).without(shift.log, shift.error) for both in sides)
    least = max(rules.least, TICKS * max(pair.a.resolution, pair.b.resolution))
    floors = tuple(max(least, _seen(both, pair.known, widening, shift.error)) for both in sides)
    processes = len(pair.a.logs), len(pair.b.logs)
    unproved = 0.0 if supported(*processes) else levels[pair.known is not None]
    return _Evidence(found, floors, unproved, processes)


def _seen(sides: tuple[Medians, Medians], known: Spread | None, widening: float, error: float) -> float:
    """Return the smallest change that these processes can find, with a shift that is known with that error."""
    spread = known or pooled(*sides)
    seen = log1p(smallest_change(spread, *(len(side.logs) for side in sides))) * widening
    return expm1(hypot(seen, reach(spread.freedom) * error) if error else seen)


def _judgement(one: _Evidence, shift: MachineShift, significant: tuple[bool, bool], rules: VerdictRules) -> Judgement:
    verdict, reason, within = _verdict(one, significant, rules)
    found, *in_cycles = one.estimates
    return Judgement(verdict, reason, found, next(iter(in_cycles), None), one.floors[0], within, shift)


def _verdict(
    one: _Evidence, significant: tuple[bool, bool], rules: VerdictRules
) -> tuple[Verdict, str | None, float | None]:
    found, floor = one.estimates[0], one.floors[0]
    if not found.freedom:
        return "inconclusive", "one process a side does not show the spread between processes", None
    word: Verdict = "slower" if found.log > 0 else "faster"
    size = share_text(abs(found.ratio - 1))
    if significant[0] and abs(found.log) > log1p(floor):
        reason = _withheld(one, significant[1], word, size)
        return ("inconclusive", reason, None) if reason else (word, None, None)
    low, high = found.interval(rules.repeated)
    within = max(high, 1 / max(low, 1e-9)) - 1
    beyond = max(low, 1 / high) > 1 + rules.least
    if within < rules.most and not beyond:
        return "same", f"within {share_text(max(1, ceil(round(within * 1e3, 6))) / 1e3)}", within
    if significant[0]:
        return "inconclusive", f"withheld: {size} {word} is below the noise floor of {share_text(floor)}", None
    reason = f"{share_text(low - 1)} to {share_text(high - 1)}: the interval neither shows nor excludes a change"
    return "inconclusive", reason, None


def _withheld(one: _Evidence, confirmed: bool, word: str, size: str) -> str | None:
    """Return why a change that the times alone show is not called; None where it is."""
    for found, floor in zip(one.estimates[1:], one.floors[1:], strict=True):
        if not confirmed or found.log * one.estimates[0].log <= 0 or abs(found.log) <= log1p(floor):
            return f"{word} in time and not in cycles: the SM clock differed"
    if abs(one.estimates[0].log) <= one.levels:
        few, level = min(one.processes), share_text(expm1(one.levels))
        why = f"processes of one side differ by {level} here, and {few} a side do not exclude that"
        return f"{size} {word}, but {why}: {NEEDED} do, or a noise floor"
    return None


START, MOST = 3, 15  # pairs of processes


def looks_of(start: int, most: int) -> tuple[int, ...]:
    """Return after how many pairs of processes the cases are judged: each time half as many again, at least two."""
    looks = [start]
    while looks[-1] < most:
        looks.append(min(most, looks[-1] + max(2, looks[-1] // 2)))
    return tuple(looks)


def following(judgement: Judgement) -> bool:
    """Return whether more processes may decide the case."""
    return judgement.verdict == "inconclusive"

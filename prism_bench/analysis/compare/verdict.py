"""Verdict on many pairs at once: slower, faster, same, or inconclusive with the deciding reason.

A change is called only if all of this holds:

1. it survives Benjamini and Hochberg's control of false discoveries over the whole suite (J. R. Stat. Soc. B 57 (1995)
   289).
2. it is larger than the noise floor, the smallest change that these processes could find.
3. it is larger than the largest difference between processes of one side in the suite, unless a noise floor is known or
   enough processes exclude an unequal placement (see `estimate`).

The time decides. The SM clock is considered in two cases (`_clock_change`, `_evidence`):

- The clocks of the sides differ in the direction that would explain the change: cycles must show the change as surely
  as time, or the part must that the clock does not explain, since no time changes by more than the clock does. Cycles
  of a memory-bound kernel carry the noise of a clock that its time does not follow, so they are no evidence if the
  clocks are equal.
- The clocks are equal, and the machine's A/A measurement shows that cycles are quieter than times: cycles decide. Such
  a kernel follows the clock, and its times vary with it. The quieter measure is known before the pair is measured, so
  the choice adds no chance of a false change.

`same` needs the whole interval within `most` and some of it within `least`, and states its bound. All other cases are
inconclusive.

Undecided cases get more processes, in a sequential design. Each look judges every case at its number of processes, and
all p-values are multiplied by the largest number of looks (Bonferroni over the looks). At whichever look a case was
stopped, its product is at least the smallest of all products, which is a p-value; so the control of false discoveries
over the suite holds for the whole procedure. The interval behind "same" is as sure over all looks as that of one look.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, copysign, exp, expm1, hypot, inf, log1p, sqrt
from operator import sub
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from prism_bench.analysis.compare.estimate import (
    NEEDED,
    WITNESSES,
    Estimate,
    Medians,
    Spread,
    cycles,
    estimate,
    level_floor,
    medians,
    pooled,
    quantile,
    reach,
    smallest_change,
    stale_floor,
    supported,
)
from prism_bench.record.measurement import Measurement
from prism_bench.units import change_range_text, change_text, count_text, share_text

Verdict = Literal["slower", "faster", "same", "inconclusive"]
VERDICTS = get_args(Verdict)
CHANGED: tuple[Verdict, ...] = ("slower", "faster")
LEAST_CLOCK, CLOCK_LEVEL = 0.001, 0.05  # log and p-value of a difference between the sides' clocks
NAMED = (4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30)  # processes a side that a reason may ask for
TICKS = 1.5  # a difference of one tick of the clock may come from any smaller difference


@dataclass(frozen=True)
class VerdictRules:
    """Strictness of verdicts: the `confidence` of intervals and the share of false `discoveries` among called changes.

    `least` is the smallest relative change worth a report, `most` the largest that may be called "same"; `control` is
    whether cases of identical code are a control. `looks` counts the judgements while more processes are measured.
    """

    confidence: float = 0.95
    discoveries: float = 0.002
    least: float = 0.01
    most: float = 0.05
    control: bool = True
    looks: int = 1

    @property
    def repeated(self) -> float:
        """The confidence of a single look, so that all looks together are as sure as `confidence`."""
        return 1 - (1 - self.confidence) / self.looks


RULES = VerdictRules()


@dataclass(frozen=True)
class Pair:
    """The two sides of one case in seconds, in cycles where known, and their spreads `known` from A/A measurement."""

    a: Medians
    b: Medians
    cycles: tuple[Medians, Medians] | None = None
    known: Spread | None = None
    known_cycles: Spread | None = None

    @property
    def is_quieter_in_cycles(self) -> bool:
        """Whether A/A measurement showed that cycles vary less than times."""
        return bool(self.known and self.known_cycles and self.known_cycles.variance < self.known.variance)


def pair_of(a: Measurement, b: Measurement, known: Spread | None = None, known_cycles: Spread | None = None) -> Pair:
    """Return the two measurements as a pair, with the spreads known from A/A measurement, in time and in cycles."""
    clocked = cycles(a), cycles(b)
    in_cycles = (clocked[0], clocked[1]) if clocked[0] and clocked[1] else None
    return Pair(medians(a.processes), medians(b.processes), in_cycles, known, known_cycles if in_cycles else None)


@dataclass(frozen=True)
class MachineShift:
    """Change of the machine between the sides of a pair, from a control: the `log` of its factor, and its `error`."""

    log: float = 0.0
    error: float = 0.0

    @property
    def ratio(self) -> float:
        """Factor by which the machine was slower in B."""
        return exp(self.log)


@dataclass(frozen=True)
class Judgement:
    """The `verdict` with its `reason`, the ratio B over A in time and in cycles, and the noise `floor`.

    Both ratios are divided by the control's `shift`. `within` is the largest change that the interval leaves open if
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
class _Measure:
    """One measure of a pair, time or cycles: its `estimate`, its noise `floor`, and the `spread` behind both."""

    estimate: Estimate
    floor: float
    spread: Spread
    known: bool


@dataclass(frozen=True)
class _Evidence:
    """What one pair shows in `time` and in `cycles`, and which of them is `deciding`.

    `clock` is the log ratio of B's SM clock to A's if it would explain the change in time, or None. `beyond` is the
    p-value of a change that this clock does not explain, 0 without it. `levels` is the log difference that the
    placement of these processes may make.
    """

    time: _Measure
    cycles: _Measure | None
    deciding: _Measure
    clock: float | None
    beyond: float
    processes: tuple[int, int]
    levels: float
    least: float
    shift_error: float
    widening: float

    @property
    def confirmed_p(self) -> float:
        """The p-value of a change of the kernel: the larger of the deciding measure's and `beyond`."""
        return max(self.deciding.estimate.p, self.beyond)


def judged(
    pairs: Sequence[Pair],
    rules: VerdictRules = RULES,
    widening: float = 1.0,
    shifts: Sequence[MachineShift] | None = None,
) -> list[Judgement]:
    """Return one judgement per pair.

    `widening` multiplies every error, if a control showed that errors are too small; `shifts`, one per pair, are
    divided out.
    """
    shifts = shifts if shifts is not None else [MachineShift()] * len(pairs)
    levels = _levels(pairs)
    evidence = [_evidence(pair, shift, rules, widening, levels) for pair, shift in zip(pairs, shifts, strict=True)]
    shown = _adjusted([rules.looks * pair.deciding.estimate.p for pair in evidence]) <= rules.discoveries
    confirmed = _adjusted([rules.looks * pair.confirmed_p for pair in evidence]) <= rules.discoveries
    suite = len(pairs), int(confirmed.sum())
    judgements: list[Judgement] = []
    for pair, shift, is_shown, is_confirmed in zip(evidence, shifts, shown, confirmed, strict=True):
        verdict, reason, within = _verdict(pair, bool(is_shown), bool(is_confirmed), suite, rules)
        in_cycles = pair.cycles.estimate if pair.cycles else None
        if in_cycles and pair.deciding is pair.cycles and verdict != "inconclusive":
            interval = change_range_text(*in_cycles.interval(rules.repeated))
            sentence = f"in cycles {change_text(in_cycles.ratio)} ({interval}) at equal SM clocks"
            reason = f"{reason} {sentence}" if reason else sentence
        judgements.append(Judgement(verdict, reason, pair.time.estimate, in_cycles, pair.deciding.floor, within, shift))
    return judgements


def _levels(pairs: Sequence[Pair]) -> tuple[float, float]:
    """Return the log difference that placement may make: for pairs of unknown noise, and for pairs of known noise.

    Pairs of unknown noise show it, or all pairs if these are few. Pairs of known noise count in their quieter measure.
    """
    unknown = [(pair.a, pair.b) for pair in pairs if pair.known is None]
    witnesses = unknown if len(unknown) >= WITNESSES else [(pair.a, pair.b) for pair in pairs]
    known: list[tuple[Medians, Medians, float]] = []
    for pair in pairs:
        if pair.cycles and pair.is_quieter_in_cycles:
            a, b, stored = *pair.cycles, pair.known_cycles
        else:
            a, b, stored = pair.a, pair.b, pair.known
        if stored is not None:
            spread = pooled(a, b)
            known.append((a, b, spread.variance / stored.variance if spread.freedom and stored.variance else 1.0))
    return level_floor(witnesses), stale_floor(known)


def _adjusted(chances: Sequence[float]) -> NDArray[np.float64]:
    """Return the p-values of many tests, adjusted by Benjamini and Hochberg's procedure.

    Equal to `scipy.stats.false_discovery_control`, whose module takes a second to import.
    """
    order = np.argsort(chances)[::-1]
    scaled = np.asarray(chances)[order] * len(chances) / np.arange(len(chances), 0, -1)
    ranked = np.empty(len(chances))
    ranked[order] = np.minimum.accumulate(np.minimum(scaled, 1.0))
    return ranked


def _evidence(
    pair: Pair, shift: MachineShift, rules: VerdictRules, widening: float, levels: tuple[float, float]
) -> _Evidence:
    processes = len(pair.a.logs), len(pair.b.logs)
    least = max(rules.least, TICKS * max(pair.a.resolution, pair.b.resolution))
    level = 0.0 if supported(*processes) else levels[pair.known is not None]

    def measure(sides: tuple[Medians, Medians], known: Spread | None) -> _Measure:
        spread = known or pooled(*sides)
        ratio = estimate(*sides, known).widened(widening).without(shift.log, shift.error)
        floor = max(least, _seen(spread, processes, widening, shift.error))
        return _Measure(ratio, floor, spread, known is not None)

    time = measure((pair.a, pair.b), pair.known)
    if pair.cycles is None:
        return _Evidence(time, None, time, None, 0.0, processes, level, least, shift.error, widening)
    in_cycles = measure(pair.cycles, pair.known_cycles or pair.known)
    clocks = _clock_change((pair.a, pair.b), pair.cycles)
    explained = _explained(clocks, time.estimate.log) if clocks else 0.0
    beyond = _beyond(time, in_cycles, explained) if explained else 0.0
    alike = clocks is None and in_cycles.estimate.log * time.estimate.log > 0
    # Cycles that now vary by much more than A/A measurement knew have no more of its degrees of freedom.
    is_quiet = pair.is_quieter_in_cycles and in_cycles.estimate.freedom > sum(processes) - 2
    deciding = in_cycles if is_quiet and alike else time
    clock = clocks.log if clocks and explained else None
    return _Evidence(time, in_cycles, deciding, clock, beyond, processes, level, least, shift.error, widening)


def _clock_change(seconds: tuple[Medians, Medians], in_cycles: tuple[Medians, Medians]) -> Estimate | None:
    """Return the ratio of B's SM clock to A's, or None if the clocks are equal.

    A change that the clock caused shows in the clock at least as surely as in time, so a level of 5 % misses no change.
    """
    a, b = (
        Medians(tuple(map(sub, cycle.logs, time.logs)), (0.0,) * len(time.logs))
        for time, cycle in zip(seconds, in_cycles, strict=True)
    )
    clocks = estimate(a, b)
    if abs(clocks.log) < LEAST_CLOCK or clocks.freedom and clocks.p > CLOCK_LEVEL:
        return None
    return clocks


def _explained(clocks: Estimate, change: float) -> float:
    """Return the largest part of the log `change` in time that the clock explains; 0 if the clock opposes it."""
    if clocks.log * change >= 0:
        return 0.0
    if not clocks.freedom:
        return inf
    return abs(clocks.log) + quantile(1 - CLOCK_LEVEL / 2, clocks.freedom) * clocks.error


def _beyond(time: _Measure, in_cycles: _Measure, explained: float) -> float:
    """Return the p-value of a change that the clock does not explain, by cycles or by the rest of the time.

    Each counts if it exceeds its noise floor; the smaller p-value is doubled, since either may show the change.
    """
    change = time.estimate.log
    rest = time.estimate.without(copysign(explained, change), 0.0)
    shown = [
        measured.p
        for measured, floor in ((in_cycles.estimate, in_cycles.floor), (rest, time.floor))
        if measured.log * change > 0 and abs(measured.log) > log1p(floor)
    ]
    return min(1.0, 2 * min(shown, default=1.0))


def _seen(spread: Spread, processes: tuple[int, int], widening: float, error: float) -> float:
    """Return the smallest change that these processes can find, with a shift known with that error."""
    seen = log1p(smallest_change(spread, *processes)) * widening
    return expm1(hypot(seen, reach(spread.freedom) * error) if error else seen)


def _verdict(
    pair: _Evidence, is_shown: bool, is_confirmed: bool, suite: tuple[int, int], rules: VerdictRules
) -> tuple[Verdict, str | None, float | None]:
    """Return the verdict, the reason of "same" or "inconclusive", and the largest change that "same" allows.

    The change is shown by the deciding measure; it is confirmed if cycles show it too where the clock would explain it.
    `suite` is the number of cases, and of significant cases.
    """
    ratio, floor = pair.deciding.estimate, pair.deciding.floor
    if not ratio.freedom:
        return "inconclusive", "one process a side does not show the spread between processes", None
    direction: Verdict = "slower" if ratio.log > 0 else "faster"
    size = share_text(abs(ratio.ratio - 1))
    if is_shown and abs(ratio.log) > log1p(floor):
        reason = _withheld(pair, is_confirmed, direction, size)
        return ("inconclusive", reason, None) if reason else (direction, None, None)
    low, high = ratio.interval(rules.repeated)
    within = max(high, 1 / max(low, 1e-9)) - 1
    beyond = max(low, 1 / high) > 1 + rules.least
    if within < rules.most and not beyond:
        return "same", f"within {share_text(max(1, ceil(round(within * 1e3, 6))) / 1e3)}", within
    needed = _needed(pair, suite, rules)
    ends = f"{share_text(low - 1)} to {share_text(high - 1)}"
    if low <= 1 <= high:
        return "inconclusive", f"{ends}: the interval neither shows nor excludes a change; {needed}", None
    if abs(ratio.log) <= log1p(floor):
        reason = f"withheld: {size} {direction} is below the noise floor of {share_text(floor)}; {needed}"
        return "inconclusive", reason, None
    among = f" among {count_text(suite[0], 'case')}" if suite[0] > 1 else ""
    few = count_text(min(pair.processes), "process", "processes") + ("" if pair.deciding.spread.earlier else " a side")
    return "inconclusive", f"{size} {direction} ({ends}), not proven{among} by {few}; {needed}", None


def _needed(pair: _Evidence, suite: tuple[int, int], rules: VerdictRules) -> str:
    """Return how many processes a side would decide the case if they differed as these do.

    Earlier runs get no more processes: against them only those of the newest run count.
    """
    ratio, spread, known = pair.deciding.estimate, pair.deciding.spread, pair.deciding.known
    earlier = bool(spread.earlier)
    fixed = hypot(pair.shift_error, sqrt(spread.lasting) * pair.widening)
    variance = max(ratio.error**2 - fixed**2, 0.0) / sum(1 / count for count in pair.processes)
    stored = ratio.freedom - (pair.processes[1] - 1 if earlier else sum(count - 1 for count in pair.processes))
    chance = rules.discoveries * (suite[1] + 1) / max(suite[0], 1) / rules.looks

    def decides(count: int) -> bool:
        count_a = pair.processes[0] if earlier else count
        error = hypot(sqrt(variance * (1 / count_a + 1 / count)), fixed)
        later = Estimate(ratio.log, error, stored + count - 1 + (0 if earlier else count - 1))
        freedom = spread.freedom if known else 2 * count - 2
        seen = _seen(replace(spread, freedom=freedom), (count_a, count), pair.widening, pair.shift_error)
        low, high = later.interval(rules.repeated)
        is_same = max(high, 1 / max(low, 1e-9)) < 1 + rules.most and max(low, 1 / high) <= 1 + rules.least
        return is_same or (later.p <= chance and abs(ratio.log) > log1p(max(pair.least, seen)))

    most = pair.processes[1] if earlier else max(pair.processes)
    of = "" if earlier else " a side"
    count = next((count for count in NAMED if count > most and decides(count)), None)
    if count is None:
        return f"more than {max(NAMED[-1], most)} processes{of} are needed"
    return f"about {count_text(count, 'process', 'processes')}{of} would decide"


def _withheld(pair: _Evidence, is_confirmed: bool, direction: str, size: str) -> str | None:
    """Return why a significant change above the noise floor is not called, or None."""
    ratio = pair.deciding.estimate
    if pair.clock is not None and pair.cycles and not is_confirmed:
        moved = f"{share_text(abs(expm1(pair.clock)))} {'lower' if pair.clock < 0 else 'higher'}"
        in_cycles = change_text(pair.cycles.estimate.ratio)
        return f"{size} {direction} in time and {in_cycles} in cycles: the SM clock was {moved}"
    if abs(ratio.log) <= pair.levels:
        few, level = min(pair.processes), share_text(expm1(pair.levels))
        why = f"processes of one side differ by {level} here, and {few} a side do not exclude that"
        return f"{size} {direction}, but {why}: {NEEDED} do, or a noise floor"
    return None


# Sequential design: after how many processes the cases are judged.

_NIGHTLY_ROUNDS, NIGHTLY_MOST = 3, 30


def looks_of(start: int, most: int) -> tuple[int, ...]:
    """Return after how many pairs of processes the cases are judged: each look adds half as many, at least two."""
    looks = [start]
    while looks[-1] < most:
        looks.append(min(most, looks[-1] + max(2, looks[-1] // 2)))
    return tuple(looks)


def nightly_looks(start: int, most: int = NIGHTLY_MOST) -> tuple[int, ...]:
    """Return after how many processes the cases of a nightly run are judged: each look doubles them and adds one.

    A round costs the start of a run, so there are fewer rounds than in `looks_of`.
    """
    looks = [start]
    while len(looks) <= _NIGHTLY_ROUNDS and looks[-1] < most:
        looks.append(min(most, 2 * looks[-1] + 1))
    return tuple(looks)

"""The verdict on many pairs at once: slower, faster, same, or inconclusive with the reason that decided.

A change is called only where all of this holds:

1. it survives Benjamini and Hochberg's control of false discoveries over the whole suite (J. R. Stat. Soc. B 57 (1995)
   289).
2. it is larger than the noise floor, the smallest change that these processes could find.
3. it is larger than what processes of one side differ by somewhere in the suite, unless a noise floor is known or
   there are processes enough to exclude that they were placed unequally (`placements`).

The time decides. The SM clock has a say in two cases (`_clock_change`, `_evidence`):

- The clocks of the sides differ in the direction that would explain the change: cycles must show it as surely as time,
  or what the clock does not explain of it must, since no time changes by more than the clock does. Cycles of a
  memory-bound kernel carry the noise of a clock that its time does not follow, so they are no witness where the clocks
  do not differ.
- The clocks do not differ, and the machine's A/A measurement shows that cycles are quieter than times: cycles decide.
  Such a kernel follows the clock, and its times vary with it. Which of both is quieter is known before the pair is
  measured, so the choice adds no chance of a false change.

`same` needs the whole interval within `most`, some of it within `least`, and states within how much. All else is
inconclusive.

Undecided cases get more processes, in a sequential design. Each look judges every case at its number of processes, and
all p-values are multiplied by the number of looks that there may be (Bonferroni over the looks). At whichever look a
case was stopped, its product is at least the smallest of all of them, which is a p-value; so the control of false
discoveries over the suite holds for the whole procedure. The interval behind "same" is as sure over all looks as a
single one's.
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
from prism_bench.units import count_text, share_text

Verdict = Literal["slower", "faster", "same", "inconclusive"]
VERDICTS = get_args(Verdict)
CHANGED: tuple[Verdict, ...] = ("slower", "faster")
LEAST_CLOCK, CLOCK_LEVEL = 0.001, 0.05  # of a difference between the sides' clocks: its log, and its p-value
NAMED = (4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30)  # processes a side that a reason may ask for
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
class _Measure:
    """One measure of a pair, time or cycles: its `estimate`, its noise `floor`, and the `spread` behind both."""

    estimate: Estimate
    floor: float
    spread: Spread
    known: bool


@dataclass(frozen=True)
class _Evidence:
    """What one pair shows in `time` and in `cycles`, and which of them is `deciding`.

    `clock` is the log ratio of B's SM clock to A's where it would explain the change in time; None elsewhere. Then
    `beyond` is the p-value of a change that the clock does not explain, 0 otherwise. `levels` is the log difference
    that these processes' placement may make.
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
        """The p-value of a change of the kernel: the larger one of the deciding measure's and `beyond`."""
        return max(self.deciding.estimate.p, self.beyond)


@dataclass(frozen=True)
class _Suite:
    """Suite of a pair: the number of its `cases`, and how many of them are significant (`shown`)."""

    cases: int
    shown: int


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
    levels = level_floor(_witnesses(pairs)), stale_floor(_known([_quieter(pair) for pair in pairs]))
    evidence = [_evidence(pair, shift, rules, widening, levels) for pair, shift in zip(pairs, shifts, strict=True)]
    alone = _adjusted([rules.looks * pair.deciding.estimate.p for pair in evidence]) <= rules.discoveries
    confirmed = _adjusted([rules.looks * pair.confirmed_p for pair in evidence]) <= rules.discoveries
    suite = _Suite(len(pairs), int(confirmed.sum()))
    return [
        _judgement(pair, shift, (bool(is_shown), bool(is_confirmed)), suite, rules)
        for pair, shift, is_shown, is_confirmed in zip(evidence, shifts, alone, confirmed, strict=True)
    ]


def _quieter(pair: Pair) -> Pair:
    """Return the pair in the measure that A/A measurement showed to be quieter."""
    if not pair.cycles or not pair.is_quieter_in_cycles:
        return pair
    return Pair(*pair.cycles, known=pair.known_cycles)


def _witnesses(pairs: Sequence[Pair]) -> list[tuple[Medians, Medians]]:
    """Return the sides that show the levels of processes: those of unknown noise, or all where these are few."""
    unknown = [(pair.a, pair.b) for pair in pairs if pair.known is None]
    return unknown if len(unknown) >= WITNESSES else [(pair.a, pair.b) for pair in pairs]


def _known(pairs: Sequence[Pair]) -> list[tuple[Medians, Medians, float]]:
    """Return the sides of known noise, with by how many times their own variance exceeds it."""
    owned = [(pair, pair.known, pooled(pair.a, pair.b)) for pair in pairs if pair.known is not None]
    return [
        (pair.a, pair.b, own.variance / known.variance if own.freedom and known.variance else 1.0)
        for pair, known, own in owned
    ]


def _adjusted(chances: Sequence[float]) -> NDArray[np.float64]:
    """Return the p-values of many tests, adjusted by Benjamini and Hochberg's procedure.

    As `scipy.stats.false_discovery_control` has them, whose module takes a second to import.
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
    """Return the ratio of B's SM clock to A's; None where the sides do not differ in it.

    A change that the clock caused shows in the clock at least as surely as in time, so a level of 5 % overlooks none.
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
    """Return how much of the log `change` in time a change of the clock explains at most; 0 if it works against it."""
    if clocks.log * change >= 0:
        return 0.0
    if not clocks.freedom:
        return inf
    return abs(clocks.log) + quantile(1 - CLOCK_LEVEL / 2, clocks.freedom) * clocks.error


def _beyond(time: _Measure, in_cycles: _Measure, explained: float) -> float:
    """Return the p-value of a change that the clock does not explain, by cycles or by the rest of the time.

    Each counts where it exceeds its noise floor; twice the smaller p-value, as either of the two may show it.
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
    """Return the smallest change that these processes can find, with a shift that is known with that error."""
    seen = log1p(smallest_change(spread, *processes)) * widening
    return expm1(hypot(seen, reach(spread.freedom) * error) if error else seen)


def _judgement(
    pair: _Evidence, shift: MachineShift, significant: tuple[bool, bool], suite: _Suite, rules: VerdictRules
) -> Judgement:
    verdict, reason, within = _verdict(pair, significant, suite, rules)
    if pair.deciding is pair.cycles and pair.cycles and verdict != "inconclusive":
        low, high = pair.cycles.estimate.interval(rules.repeated)
        words = f"in cycles {pair.cycles.estimate.ratio:.3f}x ({low:.3f} to {high:.3f}) at equal SM clocks"
        reason = f"{reason} {words}" if reason else words
    in_cycles = pair.cycles.estimate if pair.cycles else None
    return Judgement(verdict, reason, pair.time.estimate, in_cycles, pair.deciding.floor, within, shift)


def _verdict(
    pair: _Evidence, significant: tuple[bool, bool], suite: _Suite, rules: VerdictRules
) -> tuple[Verdict, str | None, float | None]:
    """Return the verdict, the reason where it is "same" or "inconclusive", and the largest change that "same" allows.

    `significant` is whether the change is: by the deciding measure alone, and by cycles too where the clock would
    explain it.
    """
    ratio, floor = pair.deciding.estimate, pair.deciding.floor
    if not ratio.freedom:
        return "inconclusive", "one process a side does not show the spread between processes", None
    word: Verdict = "slower" if ratio.log > 0 else "faster"
    size = share_text(abs(ratio.ratio - 1))
    if significant[0] and abs(ratio.log) > log1p(floor):
        reason = _withheld(pair, significant[1], word, size)
        return ("inconclusive", reason, None) if reason else (word, None, None)
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
        reason = f"withheld: {size} {word} is below the noise floor of {share_text(floor)}; {needed}"
        return "inconclusive", reason, None
    among = f" among {count_text(suite.cases, 'case')}" if suite.cases > 1 else ""
    few = count_text(min(pair.processes), "process", "processes") + ("" if pair.deciding.spread.earlier else " a side")
    return "inconclusive", f"{size} {word} ({ends}), not proven{among} by {few}; {needed}", None


def _needed(pair: _Evidence, suite: _Suite, rules: VerdictRules) -> str:
    """Return how many processes a side would decide the case if they differed as these do.

    Earlier runs get no more processes: there it is how many of the newest run.
    """
    ratio, spread, known = pair.deciding.estimate, pair.deciding.spread, pair.deciding.known
    earlier = bool(spread.earlier)
    fixed = hypot(pair.shift_error, sqrt(spread.lasting) * pair.widening)
    variance = max(ratio.error**2 - fixed**2, 0.0) / sum(1 / count for count in pair.processes)
    stored = ratio.freedom - (pair.processes[1] - 1 if earlier else sum(count - 1 for count in pair.processes))
    chance = rules.discoveries * (suite.shown + 1) / max(suite.cases, 1) / rules.looks

    def decides(count: int) -> bool:
        first = pair.processes[0] if earlier else count
        error = hypot(sqrt(variance * (1 / first + 1 / count)), fixed)
        later = Estimate(ratio.log, error, stored + count - 1 + (0 if earlier else count - 1))
        freedom = spread.freedom if known else 2 * count - 2
        seen = _seen(replace(spread, freedom=freedom), (first, count), pair.widening, pair.shift_error)
        low, high = later.interval(rules.repeated)
        is_same = max(high, 1 / max(low, 1e-9)) < 1 + rules.most and max(low, 1 / high) <= 1 + rules.least
        return is_same or (later.p <= chance and abs(ratio.log) > log1p(max(pair.least, seen)))

    most = pair.processes[1] if earlier else max(pair.processes)
    of = "" if earlier else " a side"
    count = next((count for count in NAMED if count > most and decides(count)), None)
    if count is None:
        return f"more than {max(NAMED[-1], most)} processes{of} are needed"
    return f"about {count_text(count, 'process', 'processes')}{of} would decide"


def _withheld(pair: _Evidence, confirmed: bool, word: str, size: str) -> str | None:
    """Return why a significant change above the noise floor is not called; None where it is."""
    ratio = pair.deciding.estimate
    if pair.clock is not None and pair.cycles and not confirmed:
        moved = f"{share_text(abs(expm1(pair.clock)))} {'lower' if pair.clock < 0 else 'higher'}"
        return f"{size} {word} in time and {pair.cycles.estimate.ratio:.3f}x in cycles: the SM clock was {moved}"
    if abs(ratio.log) <= pair.levels:
        few, level = min(pair.processes), share_text(expm1(pair.levels))
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


_NIGHTLY_ROUNDS, NIGHTLY_MOST = 3, 30


def nightly_looks(start: int, most: int = NIGHTLY_MOST) -> tuple[int, ...]:
    """Return after how many processes the cases of a nightly run are judged: each time twice as many and one more.

    A round costs the start of a run, so that there are fewer rounds than `looks_of` has.
    """
    looks = [start]
    while len(looks) <= _NIGHTLY_ROUNDS and looks[-1] < most:
        looks.append(min(most, 2 * looks[-1] + 1))
    return tuple(looks)


def following(judgement: Judgement) -> bool:
    """Return whether more processes may decide the case."""
    return judgement.verdict == "inconclusive"

"""Which cases of two builds are measured, and which configuration a tuning session adopts."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from statistics import median
from typing import Literal

from prism_bench.analysis.compare.estimate import Spread, cycles, medians
from prism_bench.analysis.compare.verdict import RULES, Judgement, Pair, VerdictRules, judged, pair_of
from prism_bench.compilation.listing import EntryDifference
from prism_bench.record.measurement import Measurement
from prism_bench.spec.case import Case
from prism_bench.units import share_text

# Cases of two builds: the changed cases are measured, and a sample of the others as the control.
#
# The control is stable from run to run: for each bottleneck, the unchanged cases whose names have the smallest hashes,
# each of another kernel as far as possible. Another change then alters the sample only by the cases that it changes.

CodeIdentity = Literal["machine code", "source text", "reference"]
CaseRole = Literal["measured", "control", "same machine code", "does not build"]
ChangeReason = Literal["code", "launch", "inputs", "compiler", "reference"]
RUN_BY_REFERENCE: tuple[ChangeReason, ...] = ("reference", "inputs")  # changes that the reference's time may show
Bottleneck = Literal["memory", "compute", "latency"]
BOTTLENECKS: tuple[Bottleneck, ...] = ("memory", "compute", "latency")

EACH = 3  # cases of the control with each bottleneck: 9 in total, one more than a control needs
_CLOCK = 0.03  # of the SM clock's median in the control; a boosted clock stays within it, a capped clock does not
# Declared work decides, since no case is measured yet: a device with 0.6 to 8 TB/s and 20 to 80 Tflop/s has its ridge
# between 10 and 40 operations a byte, and takes as long for 4 MB as for a launch.
_SMALL_BYTES, _SMALL_FLOPS = 4e6, 1e8
_LEAST_BYTES, _LEAST_FLOPS = 3e7, 1e9
_FEW_PER_BYTE, _MANY_PER_BYTE = 10.0, 40.0
_MOST_BYTES, _MOST_FLOPS = 6e8, 3e11  # a control is soon measured


@dataclass(frozen=True)
class CaseWork:
    """Declared work of a case: the name of its kernel, its compulsory bytes and its floating-point operations."""

    kernel: str
    bytes: int
    flops: int

    @property
    def bottleneck(self) -> Bottleneck | None:
        """Bottleneck by declared work; None if it is not clear, or the case takes long to measure."""
        per_byte = self.flops / max(self.bytes, 1)
        if self.bytes > _MOST_BYTES or self.flops > _MOST_FLOPS:
            return None
        if self.bytes <= _SMALL_BYTES and self.flops <= _SMALL_FLOPS:
            return "latency"
        if self.flops >= _LEAST_FLOPS and per_byte >= _MANY_PER_BYTE:
            return "compute"
        return "memory" if self.bytes >= _LEAST_BYTES and per_byte <= _FEW_PER_BYTE else None


@dataclass(frozen=True)
class SelectedCase:
    """One case of both builds: its role, the reasons to measure it, or its build `problem` on the side `broken`.

    `differences` are those of its machine code; `note` is the reason if they do not show instructions.
    """

    case: str
    role: CaseRole
    reasons: tuple[ChangeReason, ...] = ()
    problem: str | None = None
    broken: Literal["a", "b"] | None = None
    differences: tuple[EntryDifference, ...] = ()
    note: str | None = None


@dataclass(frozen=True)
class Selection:
    """The role of every case of two builds.

    `by` is the identity of code. `everything` is the reason to measure all cases, or None. `seconds` is the duration of
    each part of the comparison.
    """

    by: CodeIdentity
    cases: tuple[SelectedCase, ...]
    everything: str | None = None
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of the cases that differ."""
        return tuple(case.case for case in self.cases if case.reasons)

    def names(self, *roles: CaseRole) -> tuple[str, ...]:
        """Return the names of the cases with these roles."""
        return tuple(case.case for case in self.cases if case.role in roles)


def control_sample(unchanged: Mapping[str, CaseWork]) -> tuple[str, ...]:
    """Return the names of the control among the unchanged cases: `EACH` of each bottleneck, then others, at most 9."""
    chosen: list[str] = []
    for bottleneck in BOTTLENECKS:
        alike = {name: work for name, work in unchanged.items() if work.bottleneck == bottleneck}
        chosen += _spread(alike, EACH)
    rest = {name: work for name, work in unchanged.items() if name not in chosen}
    clear = {name: work for name, work in rest.items() if work.bottleneck}
    for others in (clear, {name: work for name, work in rest.items() if name not in clear}):
        chosen += _spread(others, EACH * len(BOTTLENECKS) - len(chosen))
    return tuple(chosen)


def _spread(cases: Mapping[str, CaseWork], count: int) -> list[str]:
    """Return `count` names in the order of their hashes, the first case of every kernel before all others."""
    ordered = sorted(cases, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    leading = {cases[name].kernel: name for name in reversed(ordered)}
    return sorted(ordered, key=lambda name: leading[cases[name].kernel] != name)[: max(0, count)]


def clock_shift(pairs: Iterable[tuple[Measurement, Measurement]]) -> float | None:
    """Return the relative change of the SM clock in B, the median over pairs of measurements; None if unknown."""
    ratios: list[float] = []
    for pair in pairs:
        times, counts = [medians(side.processes) for side in pair], [cycles(side) for side in pair]
        if counts[0] and counts[1] and all(side.logs for side in times):
            ratios.append(exp(counts[1].centre - times[1].centre - counts[0].centre + times[0].centre))
    return median(ratios) - 1 if ratios else None


def shortcut_doubts(clock: float | None, around: Sequence[str]) -> list[str]:
    """Return reasons why unmeasured cases may still take another time.

    `clock` is the relative change of the SM clock, `around` names other differences between the sides.
    """
    doubts = [f"{difference} between the sides" for difference in around]
    if clock is not None and abs(clock) > _CLOCK:
        doubts.append(f"the SM clock differs by {clock:+.1%} between the sides".replace("%", " %"))
    return doubts


# Decision of a tuning session: the adopted configuration, by the same verdict as any comparison of times.


Least = Literal["time", "energy"]  # what a tuning session makes as small as it can


@dataclass(frozen=True)
class Searched:
    """One case after the search: the number of launched configurations, and the reasons for refusals (by task).

    `best` are the best candidates in what is `least`, best first; empty if none was better than the default. `seconds`
    has the search's median of every correct configuration, by task; `joules` the energy of its launch, where it counts.
    It is `skipped` where this machine cannot launch its default, as without the compiler of its language.
    """

    default: Case
    tried: int
    refused: Mapping[str, str]
    seconds: Mapping[str, float]
    best: tuple[Case, ...] = ()
    space: int = 0
    least: Least = "time"
    joules: Mapping[str, float] = field(default_factory=dict[str, float])
    skipped: bool = False

    @property
    def values(self) -> Mapping[str, float]:
        """What the session makes as small as it can, by task."""
        return self.joules if self.least == "energy" else self.seconds

    @property
    def front(self) -> list[tuple[str, float, float]]:
        """The Pareto front of time and energy, the quickest first: (task, seconds, joules).

        No configuration takes less of one without more of the other.
        """
        front: list[tuple[str, float, float]] = []
        known = ((self.seconds[task], joules, task) for task, joules in self.joules.items() if task in self.seconds)
        for seconds, joules, task in sorted(known):
            if not front or joules < front[-1][2]:
                front.append((task, seconds, joules))
        return front


@dataclass(frozen=True)
class Decided:
    """Configuration launched from now on: `chosen`, the default unless a candidate beat it beyond the noise, and why.

    `values` are the medians of default and chosen, in seconds or joules; `gain` is their ratio. `judged` is False if
    the candidates have no new values, or those of too few processes.
    """

    searched: Searched
    chosen: Case
    reason: str
    values: tuple[float, float]
    gain: float = 1.0
    interval: tuple[float, float] = (1.0, 1.0)
    judged: bool = True

    @property
    def settled(self) -> bool:
        """Whether the search has a result: the default has a value, and better candidates have new values."""
        return self.judged and self.values[0] == self.values[0]

    @property
    def adopted(self) -> bool:
        """Whether the default is replaced."""
        return bool(self.chosen.choice)


def decided(
    searched: Sequence[Searched],
    again: Mapping[str, Measurement],
    known: Mapping[str, Spread] | None = None,
    rules: VerdictRules = RULES,
) -> list[Decided]:
    """Return for each case the quickest candidate whose new times have the verdict `faster` against the default's.

    `again` has the times of fresh processes by task, `known` the noise of cases by name. All candidates of all cases
    are judged as one suite, so that none of many candidates wins by chance.
    """
    spreads, pairs = known or {}, dict[str, Pair]()
    for search in searched:
        for case in search.best:
            default, candidate = again.get(search.default.task), again.get(case.task)
            if default and candidate:
                pairs[case.task] = pair_of(default, candidate, spreads.get(search.default.name))
    judgements = dict(zip(pairs, judged(list(pairs.values()), rules), strict=True))
    return [_decided(search, judgements, again) for search in searched]


def _decided(search: Searched, judgements: Mapping[str, Judgement], again: Mapping[str, Measurement]) -> Decided:
    candidates = {case.task: judgements[case.task] for case in search.best if case.task in judgements}
    faster = [case for case in search.best if case.task in candidates and candidates[case.task].verdict == "faster"]
    usual = _typical(again.get(search.default.task), search.values.get(search.default.task))
    if not faster:
        is_judged = not search.best or any(judgement.estimate.freedom for judgement in candidates.values())
        reason = _why_not(search, list(candidates.values()))
        return Decided(search, search.default, reason, (usual, usual), judged=is_judged)
    chosen = min(faster, key=lambda case: candidates[case.task].estimate.ratio)
    judgement = candidates[chosen.task]
    ratio = judgement.estimate.ratio
    low, high = judgement.estimate.interval()
    gain = f"{share_text(1 / ratio - 1)} faster" if search.least == "time" else f"{share_text(1 - ratio)} less energy"
    reason = f"{gain}, noise floor {share_text(judgement.floor)}"
    values = usual, _typical(again.get(chosen.task))
    return Decided(search, chosen, reason, values, 1 / ratio, (1 / high, 1 / low))


def _typical(measured: Measurement | None, otherwise: float | None = None) -> float:
    """Return the median of the new times, else that of the search, else NaN."""
    seconds = medians(measured.processes).typical if measured else otherwise
    return float("nan") if seconds is None else seconds


def _why_not(search: Searched, judgements: Sequence[Judgement]) -> str:
    if search.default.task in search.refused:
        return f"the default itself has no {search.least}: {search.refused[search.default.task]}"
    if not search.best:
        better = "was quicker" if search.least == "time" else "took less energy"
        return f"no configuration {better} than the default in the search"
    if not judgements:
        return "the candidates were not timed again"
    best = min(judgements, key=lambda judgement: judgement.estimate.ratio)
    reason = best.reason or f"the best candidate is {best.verdict}"
    return f"the default is kept: {reason}"


def mean_speedup(decisions: Sequence[Decided]) -> float | None:
    """Return the geometric mean of the gains, with 1 for kept defaults; None without cases that were launched."""
    logs = [log(decision.gain) for decision in decisions if not decision.searched.skipped]
    return exp(sum(logs) / len(logs)) if logs else None

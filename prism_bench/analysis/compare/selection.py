"""Which cases of two builds are measured, and which configuration a tuning session adopts."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

# Which cases of two builds are measured: those that changed, and a sample of the others as the control.
#
# The control is the same from run to run: in each class of bottleneck the unchanged cases with the smallest hashes of
# their names, one of a kernel while there are kernels. So another change leaves the sample as it is, but for the cases
# that it changes.

CodeIdentity = Literal["machine code", "source text", "reference"]
CaseRole = Literal["measured", "control", "same machine code", "does not build"]
ChangeReason = Literal["code", "launch", "inputs", "compiler", "reference"]
RUN_BY_REFERENCE: tuple[ChangeReason, ...] = ("reference", "inputs")  # changes that the reference's time may show
Bottleneck = Literal["memory", "compute", "latency"]
BOTTLENECKS: tuple[Bottleneck, ...] = ("memory", "compute", "latency")

EACH = 3  # cases of the control with each bottleneck: 9 in all, one more than a control needs
_CLOCK = 0.03  # of the SM clock's median in the control; a boosted clock stays within it, a capped one does not
# Declared work decides, since nothing is measured before: a device with 0.6 to 8 TB/s and 20 to 80 Tflop/s has its
# ridge between 10 and 40 operations a byte, and takes as long for 4 MB as for a launch.
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
        """What limits the case by its declared work; None where that is not clear, or it takes long to measure."""
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
    """One case of both builds: its role, why it is measured, or why it does not build on the side `broken`.

    `differences` are those of its machine code, and `note` is why they do not show instructions.
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

    `by` is what identifies code. `everything` is why all cases are measured, None where they are not. `seconds` is how
    long each part of the comparison took.
    """

    by: CodeIdentity
    cases: tuple[SelectedCase, ...]
    everything: str | None = None
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def changed(self) -> tuple[str, ...]:
        """The cases of which anything differs."""
        return tuple(one.case for one in self.cases if one.reasons)

    def names(self, *roles: CaseRole) -> tuple[str, ...]:
        """Return the cases of these roles."""
        return tuple(one.case for one in self.cases if one.role in roles)


def control_sample(unchanged: Mapping[str, CaseWork]) -> tuple[str, ...]:
    """Return the names of the control among the unchanged cases: `EACH` of each bottleneck, else any, at most 9."""
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
    """Return that many names in the order of their hashes, the first case of every kernel before all others."""
    ordered = sorted(cases, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    firsts = {cases[name].kernel: name for name in reversed(ordered)}
    return sorted(ordered, key=lambda name: firsts[cases[name].kernel] != name)[: max(0, count)]


def clock_shift(pairs: Iterable[tuple[Measurement, Measurement]]) -> float | None:
    """Return by how much the SM clock of B was higher, as the median over pairs of measurements; None if unknown."""
    known = list(_clock_ratios(pairs))
    return median(known) - 1 if known else None


def _clock_ratios(pairs: Iterable[tuple[Measurement, Measurement]]) -> Iterator[float]:
    for pair in pairs:
        times, counts = [medians(one.processes) for one in pair], [cycles(one) for one in pair]
        if counts[0] and counts[1] and all(one.logs for one in times):
            yield exp(counts[1].centre - times[1].centre - counts[0].centre + times[0].centre)


def shortcut_doubts(clock: float | None, around: Sequence[str]) -> list[str]:
    """Return why cases that were not measured may take another time all the same.

    `clock` is the shift of the SM clock, and `around` what else differs between the sides, in words.
    """
    doubts = [f"{words} between the sides" for words in around]
    if clock is not None and abs(clock) > _CLOCK:
        doubts.append(f"the SM clock differs by {clock:+.1%} between the sides".replace("%", " %"))
    return doubts


# Decision of a tuning session: which configuration is adopted, by the same verdict as any comparison of times.


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
    searched: Sequence[Searched],
    again: Mapping[str, Measurement],
    known: Mapping[str, Spread] | None = None,
    rules: VerdictRules = RULES,
) -> list[Decided]:
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

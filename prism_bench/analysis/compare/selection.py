"""Which cases of two builds are measured: those that changed, and a sample of the others as the control.

The control is the same from run to run: in each class of bottleneck the unchanged cases with the smallest hashes of
their names, one of a kernel while there are kernels. So another change leaves the sample as it is, but for the cases
that it changes.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from statistics import median
from typing import Literal

from prism_bench.analysis.compare.medians import cycles, medians
from prism_bench.compilation.code_difference import EntryDifference
from prism_bench.record.measurement import Measurement

CodeIdentity = Literal["machine code", "source text", "reference"]
CaseRole = Literal["measured", "control", "same machine code", "does not build"]
ChangeReason = Literal["code", "launch", "inputs", "compiler", "reference"]
RUN_BY_REFERENCE: tuple[ChangeReason, ...] = ("reference", "inputs")  # changes that the reference's time may show
Bottleneck = Literal["memory", "compute", "latency"]
BOTTLENECKS: tuple[Bottleneck, ...] = ("memory", "compute", "latency")

EACH = 3  # cases of the control with each bottleneck: 9 in all, one more than a control needs
CLOCK = 0.03  # of the SM clock's median in the control; a boosted clock stays within it, a capped one does not
# Declared work decides, since nothing is measured before: a device with 0.6 to 8 TB/s and 20 to 80 Tflop/s has its
# ridge between 10 and 40 operations a byte, and takes as long for 4 MB as for a launch.
SMALL_BYTES, SMALL_FLOPS = 4e6, 1e8
LEAST_BYTES, LEAST_FLOPS = 3e7, 1e9
FEW_PER_BYTE, MANY_PER_BYTE = 10.0, 40.0
MOST_BYTES, MOST_FLOPS = 6e8, 3e11  # a control is soon measured


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
        if self.bytes > MOST_BYTES or self.flops > MOST_FLOPS:
            return None
        if self.bytes <= SMALL_BYTES and self.flops <= SMALL_FLOPS:
            return "latency"
        if self.flops >= LEAST_FLOPS and per_byte >= MANY_PER_BYTE:
            return "compute"
        return "memory" if self.bytes >= LEAST_BYTES and per_byte <= FEW_PER_BYTE else None


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
    if clock is not None and abs(clock) > CLOCK:
        doubts.append(f"the SM clock differs by {clock:+.1%} between the sides".replace("%", " %"))
    return doubts

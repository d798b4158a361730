"""Rivals of a case in its own record: its peers, each with its class and how it was timed, and the CPU.

A peer is unstable where the medians of its processes differ by more than `UNSTABLE`. Its fastest process counts then,
in the peer's favour. Records of before peers had facts name no class: only a compiled peer can be known by its name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal, get_args

from prism_bench.measure.limits import valid, valid_median
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult
from prism_bench.spec.peer import PeerFacts, PeerKind
from prism_bench.units import time_text

UNSTABLE = 0.05  # how far the medians of a peer's processes may be apart: the largest over the smallest, less 1
UNSTABLE_MARK = "~"  # next to the figures of an unstable peer
PeerClass = PeerKind | Literal["not recorded"]
COMPILED: PeerKind = "compiled"
NOT_RECORDED: PeerClass = "not recorded"
CLASSES: tuple[PeerClass, ...] = (*get_args(PeerKind), NOT_RECORDED)
_SUBJECT = "peer:"


@dataclass(frozen=True)
class Rival:
    """A peer's `name` and the `seconds` that count for it, on the same clock as the kernel's.

    `fastest` and `slowest` are the medians of its fastest and its slowest process, in seconds. `facts` is what the
    record knows of how the peer was called; empty in records of before.
    """

    name: str
    seconds: float
    fastest: float
    slowest: float
    facts: PeerFacts = field(default_factory=PeerFacts)

    @property
    def kind(self) -> PeerClass:
        """The class of the peer, one of `CLASSES`."""
        return kind_of(self.name, self.facts)

    @property
    def unstable(self) -> bool:
        """Whether its processes differ by more than `UNSTABLE`."""
        return differ(self.fastest, self.slowest)

    @property
    def poor(self) -> str | None:
        """Why this is known to be a poor way to compute the result; None where it is not."""
        return self.facts.get("poor") or None

    @property
    def unstable_text(self) -> str | None:
        """`unstable: 9.90 us to 93.2 us`; None where it is stable."""
        return range_text(self.fastest, self.slowest) if self.unstable else None


def kind_of(name: str, facts: PeerFacts) -> PeerClass:
    """Return the class of a peer, one of `CLASSES`: the recorded one, else what its name makes certain."""
    recorded = facts.get("kind")
    if recorded in CLASSES:
        return recorded
    return COMPILED if name.endswith("_compiled") else NOT_RECORDED


def differ(fastest: float, slowest: float) -> bool:
    """Return whether medians of processes that lie this far apart make a peer unstable."""
    return slowest > fastest * (1 + UNSTABLE)


def clock_of(case: CaseResult) -> str:
    """Return the metric in which the case is compared: its main one."""
    return case.main_metric


def peers(case: CaseResult) -> list[Rival]:
    """Return every validly measured peer of the case, the fastest first."""
    metric = clock_of(case)
    subjects = [one.subject for one in case.measurements if one.metric == metric and one.subject.startswith(_SUBJECT)]
    timed = [rival for subject in subjects if (rival := _rival(case, valid(case, metric, subject)))]
    return sorted(timed, key=lambda rival: rival.seconds)


def counted(found: Sequence[Rival]) -> list[Rival]:
    """Return the rivals that may enter a mean: a poor one only where no peer that is not poor is faster."""
    better = min((one.seconds for one in found if not one.poor), default=None)
    return [one for one in found if not one.poor or better is None or one.seconds <= better]


def range_text(fastest: float, slowest: float) -> str:
    """Return `unstable: 9.90 us to 93.2 us`."""
    return f"unstable: {time_text(fastest)} to {time_text(slowest)}"


def _rival(case: CaseResult, found: Measurement | None) -> Rival | None:
    """Return the rival of a measurement; None where it has no median."""
    if found is None or not found.median:
        return None
    name, medians = found.subject.removeprefix(_SUBJECT), [median(process) for process in found.processes if process]
    fastest, slowest = min(medians), max(medians)
    seconds = fastest if differ(fastest, slowest) else found.median
    return Rival(name, seconds, fastest, slowest, case.peers.get(name, PeerFacts()))


def fastest_process(processes: Sequence[Sequence[float]]) -> Sequence[Sequence[float]]:
    """Return the fastest process alone where the processes make a peer unstable, else all of them."""
    filled = sorted((process for process in processes if process), key=median)
    return filled[:1] if filled and differ(median(filled[0]), median(filled[-1])) else processes


def unstable_stand_in(case: CaseResult) -> tuple[float, float] | None:
    """Return the medians of the fastest and the slowest process of what a CPU timed in place of the kernel, in seconds.

    None where they differ by no more than `UNSTABLE`, as for a peer.
    """
    timed = valid(case, "wall_time")
    medians = [median(process) for process in timed.processes if process] if timed else []
    return (min(medians), max(medians)) if medians and differ(min(medians), max(medians)) else None


def cpu_seconds(case: CaseResult) -> float | None:
    """Return what the reference took on the CPU, in seconds; None where it was not timed."""
    return valid_median(case, "wall_time", "cpu")

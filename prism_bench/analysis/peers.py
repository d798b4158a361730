"""Peers of a record's kernels: classes, ratios, and the headline over all cases."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import geometric_mean, median
from typing import Literal, TypedDict, get_args

from prism_bench.measure.plausibility import valid, valid_median
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult
from prism_bench.spec.peer import Form, PeerFacts, PeerKind
from prism_bench.units import time_text

# Rivals of a case in its own record: its peers, each with its class and how it was timed, and the CPU.
#
# A peer is unstable where the medians of its processes differ by more than `UNSTABLE`. Its fastest process counts then,
# in the peer's favour. Records of before peers had facts name no class: only a compiled peer can be known by its name.

UNSTABLE = 0.05  # how far the medians of a peer's processes may be apart: the largest over the smallest, less 1
UNSTABLE_MARK = "~"  # next to the figures of an unstable peer
PeerClass = PeerKind | Literal["not recorded"]
COMPILED: PeerKind = "compiled"
NOT_RECORDED: PeerClass = "not recorded"
_CLASSES: tuple[PeerClass, ...] = (*get_args(PeerKind), NOT_RECORDED)
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
        return _kind_of(self.name, self.facts)

    @property
    def unstable(self) -> bool:
        """Whether its processes differ by more than `UNSTABLE`."""
        return _differ(self.fastest, self.slowest)

    @property
    def poor(self) -> str | None:
        """Why this is known to be a poor way to compute the result; None where it is not."""
        return self.facts.get("poor") or None

    @property
    def unstable_text(self) -> str | None:
        """`unstable: 9.90 us to 93.2 us`; None where it is stable."""
        return range_text(self.fastest, self.slowest) if self.unstable else None


def _kind_of(name: str, facts: PeerFacts) -> PeerClass:
    """Return the class of a peer, one of `CLASSES`: the recorded one, else what its name makes certain."""
    recorded = facts.get("kind")
    if recorded in _CLASSES:
        return recorded
    return COMPILED if name.endswith("_compiled") else NOT_RECORDED


def _differ(fastest: float, slowest: float) -> bool:
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


def rivals_counted(found: Sequence[Rival]) -> list[Rival]:
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
    seconds = fastest if _differ(fastest, slowest) else found.median
    return Rival(name, seconds, fastest, slowest, case.peers.get(name, PeerFacts()))


def fastest_process(processes: Sequence[Sequence[float]]) -> Sequence[Sequence[float]]:
    """Return the fastest process alone where the processes make a peer unstable, else all of them."""
    filled = sorted((process for process in processes if process), key=median)
    return filled[:1] if filled and _differ(median(filled[0]), median(filled[-1])) else processes


def unstable_stand_in(case: CaseResult) -> tuple[float, float] | None:
    """Return the medians of the fastest and the slowest process of what a CPU timed in place of the kernel, in seconds.

    None where they differ by no more than `UNSTABLE`, as for a peer.
    """
    timed = valid(case, "wall_time")
    medians = [median(process) for process in timed.processes if process] if timed else []
    return (min(medians), max(medians)) if medians and _differ(min(medians), max(medians)) else None


def cpu_seconds(case: CaseResult) -> float | None:
    """Return what the reference took on the CPU, in seconds; None where it was not timed."""
    return valid_median(case, "wall_time", "cpu")


# Peers of a case, one row each: its time, its ratio, how it was called, or why it has no time.


class PeerRow(TypedDict):
    """A peer of a case on the clock that the case is compared by.

    `seconds` and `ratio` (peer over kernel) are None where there is no valid time; `reason` is why. `unstable` holds
    the medians of the fastest and the slowest process, in seconds, where they differ by more than 5 %. `counts` is
    whether the peer may enter a mean. The rest is what the record knows of the call; None where it is not recorded.
    """

    peer: str
    kind: PeerClass
    seconds: float | None
    ratio: float | None
    unstable: tuple[float, float] | None
    counts: bool
    reason: str | None
    notes: list[str]
    library: str | None
    version: str | None
    form: Form | None
    calls: int | None
    launches: int | None
    breaks: int | None
    enqueued: str | None
    poor: str | None
    work: str | None
    precision: str | None


def peer_rows(case: CaseResult) -> list[PeerRow]:
    """Return a row for each peer of the case: those with a time first, the fastest first, then those without."""
    timed = {one.name: one for one in peers(case)}
    counted = {one.name for one in rivals_counted(list(timed.values()))}
    return [_row(case, name, timed.get(name), name in counted) for name in [*timed, *_untimed(case, timed)]]


def _untimed(case: CaseResult, timed: Mapping[str, Rival]) -> list[str]:
    subjects = (one.subject for one in case.measurements if one.subject.startswith("peer:"))
    names = dict.fromkeys([*(subject.removeprefix("peer:") for subject in subjects), *case.peers])
    return [name for name in names if name not in timed]


def _row(case: CaseResult, name: str, rival: Rival | None, counts: bool) -> PeerRow:
    metric = clock_of(case)
    own, found = valid_median(case, metric), case.measurement(metric, f"peer:{name}")
    facts = case.peers.get(name, PeerFacts())
    return {
        "peer": name,
        "kind": _kind_of(name, facts),
        "seconds": rival.seconds if rival else None,
        "ratio": rival.seconds / own if rival and own else None,
        "unstable": (rival.fastest, rival.slowest) if rival and rival.unstable else None,
        "counts": counts,
        "reason": None if rival else (found.reason if found else None) or "the record gives no reason",
        "notes": list(found.notes) if found else [],
        "library": facts.get("library"),
        "version": facts.get("version"),
        "form": facts.get("form"),
        "calls": facts.get("calls"),
        "launches": facts.get("launches"),
        "breaks": facts.get("breaks"),
        "enqueued": facts.get("enqueued"),
        "poor": facts.get("poor"),
        "work": facts.get("work"),
        "precision": facts.get("precision"),
    }


# Headline of a record: how its kernels compare with their peers, by class of peer and by label.
#
# There is no mean over all classes: a library's own kernel and a chain of eager calls are not the same opponent. S0 is
# apart from S1 and S2, because launch overhead is compared there. A ratio is the time of the best peer of the class
# over the kernel's time, on the kernel's clock (cold on a device): above 1 the kernel is faster.

GROUPS = (("S1", "S2"), ("S1",), ("S2",), ("S0",))
BEST = "best of all"  # the class of a row that takes the best peer of each case, whatever its class
LARGE = 20.0  # a ratio above it is listed by name


class RacedCase(TypedDict):
    """A kernel against a peer in one case: the `ratio` of the peer's time over the kernel's.

    `unstable` is the text of the peer's range where its processes differ; `poor` why the peer is a poor way.
    """

    case: str
    implementation: str
    label: str
    peer: str
    kind: PeerClass
    ratio: float
    unstable: str | None
    poor: str | None


class HeadlineRow(TypedDict):
    """The cases of one group of labels against one class of peers.

    `mean` is the geometric mean of the ratios. It is None where the peers are of several classes, or of one that the
    record does not name. `below` counts ratios below 1.00, `worst` is the smallest ratio, `large` are those above
    `LARGE`, the largest first; they are counted in the mean.
    """

    labels: list[str]
    peers: str
    cases: int
    mean: float | None
    below: int
    worst: RacedCase
    large: list[RacedCase]


def headline_rows(cases: Iterable[CaseResult]) -> list[HeadlineRow]:
    """Return the rows of every group of labels: one for each class of peers that was timed, then the best of all.

    Kernels that measure the machine and forms that are kept to compare with are left out, and a group without a peer
    has no rows. A poor peer does not count in a case where another peer, which is not poor, is faster.
    """
    raced = [(case, found) for case in cases if not (case.ceiling or case.before) and (found := _races(case))]
    return [row for labels in GROUPS for row in _group(labels, [one for case, one in raced if case.label in labels])]


def _races(case: CaseResult) -> list[RacedCase]:
    """Return the best counted peer of each class against the kernel, the best of all first."""
    own = valid_median(case, clock_of(case))
    found = rivals_counted(peers(case)) if own else []
    best = {one.kind: one for one in reversed(found)}
    return [_race(case, one, own) for one in found if own and best[one.kind] is one]


def _race(case: CaseResult, peer: Rival, own: float) -> RacedCase:
    return {
        "case": case.name,
        "implementation": case.name.partition("[")[0],
        "label": case.label,
        "peer": peer.name,
        "kind": peer.kind,
        "ratio": peer.seconds / own,
        "unstable": peer.unstable_text,
        "poor": peer.poor,
    }


def _group(labels: Sequence[str], raced: Sequence[Sequence[RacedCase]]) -> list[HeadlineRow]:
    """Return a row for each class and one for the best of all; nothing where no case has a peer."""
    by_class = {kind: [one for races in raced for one in races if one["kind"] == kind] for kind in _CLASSES}
    rows = [_headline_row(labels, kind, found) for kind, found in by_class.items() if found]
    return [*rows, _headline_row(labels, BEST, [races[0] for races in raced])] if raced else []


def _headline_row(labels: Sequence[str], kind: str, found: Sequence[RacedCase]) -> HeadlineRow:
    ratios = [one["ratio"] for one in found]
    large = sorted((one for one in found if one["ratio"] > LARGE), key=lambda one: -one["ratio"])
    return {
        "labels": list(labels),
        "peers": kind,
        "cases": len(found),
        "mean": None if kind in (BEST, NOT_RECORDED) else geometric_mean(ratios),
        "below": sum(ratio < 1 for ratio in ratios),
        "worst": min(found, key=lambda one: one["ratio"]),
        "large": large,
    }

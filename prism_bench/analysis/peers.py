"""Peers of a record's kernels: classes, ratios, and the headline over all cases."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import geometric_mean, median
from typing import Literal, TypedDict, get_args

from prism_bench.measure.plausibility import valid, valid_median
from prism_bench.record.run_record import CaseResult
from prism_bench.spec.peer import Form, PeerFacts, PeerKind
from prism_bench.units import time_text

# Rivals of a case in its record: its peers with their classes and times, and the CPU.
#
# A peer is unstable if the medians of its processes differ by more than `UNSTABLE`. Its fastest process then counts, in
# the peer's favour. Old records name no class of peers: only a compiled peer is recognized by its name.

UNSTABLE = 0.05  # largest stable difference of a peer's processes: the largest median over the smallest, less 1
UNSTABLE_MARK = "~"  # next to the figures of an unstable peer
PeerClass = PeerKind | Literal["not recorded"]
COMPILED: PeerKind = "compiled"
NOT_RECORDED: PeerClass = "not recorded"
_CLASSES: tuple[PeerClass, ...] = (*get_args(PeerKind), NOT_RECORDED)
_SUBJECT = "peer:"


@dataclass(frozen=True)
class Rival:
    """A peer's `name` and the `seconds` that count for it, on the same clock as the kernel's.

    `fastest` and `slowest` are the medians of its fastest and its slowest process, in seconds. `facts` describes the
    call of the peer; it is empty in old records.
    """

    name: str
    seconds: float
    fastest: float
    slowest: float
    facts: PeerFacts = field(default_factory=PeerFacts)

    @property
    def kind(self) -> PeerClass:
        """The class of the peer."""
        return _kind_of(self.name, self.facts)

    @property
    def unstable(self) -> bool:
        """Whether its processes differ by more than `UNSTABLE`."""
        return _differ(self.fastest, self.slowest)

    @property
    def poor(self) -> str | None:
        """Why the peer is a poor way to compute the result, or None."""
        return self.facts.get("poor") or None

    @property
    def unstable_text(self) -> str | None:
        """`unstable: 9.90 us to 93.2 us`, or None if the peer is stable."""
        return range_text(self.fastest, self.slowest) if self.unstable else None


def _kind_of(name: str, facts: PeerFacts) -> PeerClass:
    """Return the class of a peer: the recorded class, else that of its name."""
    recorded = facts.get("kind")
    if recorded in _CLASSES:
        return recorded
    return COMPILED if name.endswith("_compiled") else NOT_RECORDED


def _differ(fastest: float, slowest: float) -> bool:
    """Return whether the medians of processes are so different that a peer is unstable."""
    return slowest > fastest * (1 + UNSTABLE)


def clock_of(case: CaseResult) -> str:
    """Return the metric in which the case is compared: its main one."""
    return case.main_metric


def peers(case: CaseResult) -> list[Rival]:
    """Return every validly measured peer of the case, the fastest first."""
    metric = clock_of(case)
    rivals: list[Rival] = []
    for measurement in case.measurements:
        if measurement.metric != metric or not measurement.subject.startswith(_SUBJECT):
            continue
        measured = valid(case, metric, measurement.subject)
        if measured is None or not measured.median:
            continue
        name = measured.subject.removeprefix(_SUBJECT)
        medians = [median(process) for process in measured.processes if process]
        fastest, slowest = min(medians), max(medians)
        seconds = fastest if _differ(fastest, slowest) else measured.median
        rivals.append(Rival(name, seconds, fastest, slowest, case.peers.get(name, PeerFacts())))
    return sorted(rivals, key=lambda rival: rival.seconds)


def rivals_counted(rivals: Sequence[Rival]) -> list[Rival]:
    """Return the rivals that may enter a mean: poor peers only if no other peer is faster."""
    better = min((rival.seconds for rival in rivals if not rival.poor), default=None)
    return [rival for rival in rivals if not rival.poor or better is None or rival.seconds <= better]


def range_text(fastest: float, slowest: float) -> str:
    """Return `unstable: 9.90 us to 93.2 us`."""
    return f"unstable: {time_text(fastest)} to {time_text(slowest)}"


def fastest_process(processes: Sequence[Sequence[float]]) -> Sequence[Sequence[float]]:
    """Return only the fastest process of an unstable peer, else all processes."""
    filled = sorted((process for process in processes if process), key=median)
    return filled[:1] if filled and _differ(median(filled[0]), median(filled[-1])) else processes


def unstable_stand_in(case: CaseResult) -> tuple[float, float] | None:
    """Return the medians, in seconds, of the fastest and the slowest process of an unstable replacement of the kernel.

    None if they differ by at most `UNSTABLE`, as for a peer.
    """
    timed = valid(case, "wall_time")
    medians = [median(process) for process in timed.processes if process] if timed else []
    return (min(medians), max(medians)) if medians and _differ(min(medians), max(medians)) else None


def cpu_seconds(case: CaseResult) -> float | None:
    """Return the time of the reference on the CPU, in seconds, or None."""
    return valid_median(case, "wall_time", "cpu")


# Rows of a case's peers.


class PeerRow(TypedDict):
    """A peer of a case on the clock of the comparison.

    `seconds` and `ratio` (peer over kernel) are None without a valid time; `reason` is why. `unstable` holds the
    medians of the fastest and the slowest process, in seconds, if they differ by more than 5 %. `counts` is whether the
    peer may enter a mean. The other fields describe the call; None if not recorded.
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
    """Return a row for each peer of the case: first those with a time, the fastest first, then those without."""
    timed = {rival.name: rival for rival in peers(case)}
    counted = {rival.name for rival in rivals_counted(list(timed.values()))}
    subjects = [measured.subject for measured in case.measurements if measured.subject.startswith(_SUBJECT)]
    names = dict.fromkeys([*timed, *(subject.removeprefix(_SUBJECT) for subject in subjects), *case.peers])
    return [_row(case, name, timed.get(name), name in counted) for name in names]


def _row(case: CaseResult, name: str, rival: Rival | None, counts: bool) -> PeerRow:
    metric = clock_of(case)
    kernel, measured = valid_median(case, metric), case.measurement(metric, f"{_SUBJECT}{name}")
    facts = case.peers.get(name, PeerFacts())
    return {
        "peer": name,
        "kind": _kind_of(name, facts),
        "seconds": rival.seconds if rival else None,
        "ratio": rival.seconds / kernel if rival and kernel else None,
        "unstable": (rival.fastest, rival.slowest) if rival and rival.unstable else None,
        "counts": counts,
        "reason": None if rival else (measured.reason if measured else None) or "the record gives no reason",
        "notes": list(measured.notes) if measured else [],
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


# Headline of a record: its kernels against their peers, by class of peer and by label.
#
# No mean covers all classes: a library's kernel and a chain of eager calls are different opponents. S0 is separate from
# S1 and S2, because it compares launch overhead. A ratio is the time of the best peer of the class over the kernel's
# time, on the kernel's clock (cold on a device): above 1 the kernel is faster.

GROUPS = (("S1", "S2"), ("S1",), ("S2",), ("S0",))
BEST = "best of all"  # the class of a row with the best peer of each case
LARGE = 20.0  # larger ratios are listed by name


class RacedCase(TypedDict):
    """A kernel against a peer in one case: the `ratio` of the peer's time over the kernel's.

    `unstable` is the text of an unstable peer's range; `poor` is why the peer is a poor way to compute the result.
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

    `mean` is the geometric mean of the ratios. It is None if the peers are of several classes, or of an unnamed class.
    `below` counts ratios below 1.00, `worst` is the smallest ratio, `large` are those above `LARGE`, the largest first;
    the mean includes them.
    """

    labels: list[str]
    peers: str
    cases: int
    mean: float | None
    below: int
    worst: RacedCase
    large: list[RacedCase]


def headline_rows(cases: Iterable[CaseResult]) -> list[HeadlineRow]:
    """Return the rows of every group of labels: one for each class of timed peers, then the best of all.

    Kernels that measure the machine and former versions are left out, and a group without a peer has no rows. A poor
    peer does not count in a case where another peer, which is not poor, is faster.
    """
    by_case = [_races(case) for case in cases if not (case.ceiling or case.before)]
    rows: list[HeadlineRow] = []
    for labels in GROUPS:
        group = [races for races in by_case if races and races[0]["label"] in labels]
        for kind in _CLASSES:
            if races := [race for races in group for race in races if race["kind"] == kind]:
                rows.append(_headline_row(labels, kind, races))
        if group:
            rows.append(_headline_row(labels, BEST, [races[0] for races in group]))
    return rows


def _races(case: CaseResult) -> list[RacedCase]:
    """Return the best counted peer of each class against the kernel, the best of all first."""
    kernel = valid_median(case, clock_of(case))
    if not kernel:
        return []
    best: dict[PeerClass, Rival] = {}
    for rival in rivals_counted(peers(case)):
        best.setdefault(rival.kind, rival)
    return [
        {
            "case": case.name,
            "implementation": case.name.partition("[")[0],
            "label": case.label,
            "peer": peer.name,
            "kind": peer.kind,
            "ratio": peer.seconds / kernel,
            "unstable": peer.unstable_text,
            "poor": peer.poor,
        }
        for peer in best.values()
    ]


def _headline_row(labels: Sequence[str], kind: str, races: Sequence[RacedCase]) -> HeadlineRow:
    ratios = [race["ratio"] for race in races]
    return {
        "labels": list(labels),
        "peers": kind,
        "cases": len(races),
        "mean": None if kind in (BEST, NOT_RECORDED) else geometric_mean(ratios),
        "below": sum(ratio < 1 for ratio in ratios),
        "worst": min(races, key=lambda race: race["ratio"]),
        "large": sorted((race for race in races if race["ratio"] > LARGE), key=lambda race: -race["ratio"]),
    }

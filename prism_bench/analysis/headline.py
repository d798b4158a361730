"""Headline of a record: how its kernels compare with their peers, by class of peer and by label.

There is no mean over all classes: a library's own kernel and a chain of eager calls are not the same opponent. S0 is
apart from S1 and S2, because launch overhead is compared there. A ratio is the time of the best peer of the class over
the kernel's time, on the kernel's clock (cold on a device): above 1 the kernel is faster.
"""

from collections.abc import Iterable, Sequence
from statistics import geometric_mean
from typing import TypedDict

from prism_bench.analysis import rivals
from prism_bench.analysis.rivals import CLASSES, NOT_RECORDED, PeerClass, Rival
from prism_bench.measure.limits import valid_median
from prism_bench.record.run_record import CaseResult

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
    own = valid_median(case, rivals.clock_of(case))
    found = rivals.counted(rivals.peers(case)) if own else []
    best = {one.kind: one for one in reversed(found)}
    return [_race(case, one, own) for one in found if own and best[one.kind] is one]


def _race(case: CaseResult, peer: Rival, own: float) -> RacedCase:
    return {
        "case": case.name, "implementation": case.name.partition("[")[0], "label": case.label, "peer": peer.name,
        "kind": peer.kind, "ratio": peer.seconds / own, "unstable": peer.unstable_text, "poor": peer.poor,
    }  # fmt: skip


def _group(labels: Sequence[str], raced: Sequence[Sequence[RacedCase]]) -> list[HeadlineRow]:
    """Return a row for each class and one for the best of all; nothing where no case has a peer."""
    by_class = {kind: [one for races in raced for one in races if one["kind"] == kind] for kind in CLASSES}
    rows = [_row(labels, kind, found) for kind, found in by_class.items() if found]
    return [*rows, _row(labels, BEST, [races[0] for races in raced])] if raced else []


def _row(labels: Sequence[str], kind: str, found: Sequence[RacedCase]) -> HeadlineRow:
    ratios = [one["ratio"] for one in found]
    large = sorted((one for one in found if one["ratio"] > LARGE), key=lambda one: -one["ratio"])
    return {
        "labels": list(labels), "peers": kind, "cases": len(found),
        "mean": None if kind in (BEST, NOT_RECORDED) else geometric_mean(ratios),
        "below": sum(ratio < 1 for ratio in ratios),
        "worst": min(found, key=lambda one: one["ratio"]), "large": large,
    }  # fmt: skip

"""Peers of a case, one row each: its time, its ratio, how it was called, or why it has no time."""

from collections.abc import Mapping
from typing import TypedDict

from prism_bench.analysis import rivals
from prism_bench.measure.limits import valid_median
from prism_bench.record.run_record import CaseResult
from prism_bench.spec.peer import Form, PeerFacts


class PeerRow(TypedDict):
    """A peer of a case on the clock that the case is compared by.

    `seconds` and `ratio` (peer over kernel) are None where there is no valid time; `reason` is why. `unstable` holds
    the medians of the fastest and the slowest process, in seconds, where they differ by more than 5 %. `counts` is
    whether the peer may enter a mean. The rest is what the record knows of the call; None where it is not recorded.
    """

    peer: str
    kind: rivals.PeerClass
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
    timed = {one.name: one for one in rivals.peers(case)}
    counted = {one.name for one in rivals.counted(list(timed.values()))}
    return [_row(case, name, timed.get(name), name in counted) for name in [*timed, *_untimed(case, timed)]]


def _untimed(case: CaseResult, timed: Mapping[str, rivals.Rival]) -> list[str]:
    subjects = (one.subject for one in case.measurements if one.subject.startswith("peer:"))
    names = dict.fromkeys([*(subject.removeprefix("peer:") for subject in subjects), *case.peers])
    return [name for name in names if name not in timed]


def _row(case: CaseResult, name: str, rival: rivals.Rival | None, counts: bool) -> PeerRow:
    metric = rivals.clock_of(case)
    own, found = valid_median(case, metric), case.measurement(metric, f"peer:{name}")
    facts = case.peers.get(name, PeerFacts())
    return {
        "peer": name, "kind": rivals.kind_of(name, facts),
        "seconds": rival.seconds if rival else None,
        "ratio": rival.seconds / own if rival and own else None,
        "unstable": (rival.fastest, rival.slowest) if rival and rival.unstable else None,
        "counts": counts,
        "reason": None if rival else (found.reason if found else None) or "the record gives no reason",
        "notes": list(found.notes) if found else [],
        "library": facts.get("library"), "version": facts.get("version"), "form": facts.get("form"),
        "calls": facts.get("calls"), "launches": facts.get("launches"), "breaks": facts.get("breaks"),
        "enqueued": facts.get("enqueued"),
        "poor": facts.get("poor"), "work": facts.get("work"), "precision": facts.get("precision"),
    }  # fmt: skip

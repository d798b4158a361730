"""The account of why a case takes its time as plain values, for pages and JSON."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, TypedDict

from prism_bench.analysis.bounds.code_against import CodeAgainst
from prism_bench.analysis.bounds.why import CountedNear, Why, WhyCounter
from prism_bench.report.code_difference import EntryDifferenceJson, code_difference_json


class CodeAgainstJson(TypedDict):
    """Machine code next to that of an earlier run; `facts` are numbers before and after, null where not known."""

    before: str
    state: str
    facts: dict[str, list[int | None]]
    relaunched: bool
    entries: list[EntryDifferenceJson]
    note: str | None


class CountedNearJson(TypedDict):
    """Counters and source lines of another workload of the same implementation, where the case itself has none."""

    case: str
    label: str
    verdict: str
    counters: list[dict[str, Any]]
    lines: list[dict[str, Any]]


class WhyJson(TypedDict):
    """Bottleneck, counters, distance to the roof, fixes, source lines, code against an earlier run, and notes.

    Times are seconds, shares are of 1.
    """

    case: str
    bottleneck: str | None
    verdict: str
    basis: str
    counted_in: str | None
    counters: list[dict[str, Any]]
    seconds: float | None
    roof: dict[str, Any] | None
    fixes: list[dict[str, Any]]
    lines: list[dict[str, Any]]
    code: CodeAgainstJson | None
    near: CountedNearJson | None
    notes: list[str]


def why_json(found: Why) -> WhyJson:
    """Return the account as plain JSON values."""
    return {
        "case": found.case, "bottleneck": found.bottleneck, "verdict": found.verdict, "basis": found.basis,
        "counted_in": found.counted_in,
        "counters": _counters(found.counters),
        "seconds": found.seconds,
        "roof": {**asdict(found.roof), "share": found.roof.share} if found.roof else None,
        "fixes": [asdict(one) for one in found.fixes],
        "lines": [asdict(one) for one in found.lines],
        "code": _code(found.code) if found.code else None,
        "near": _near(found.near) if found.near else None,
        "notes": list(found.notes),
    }  # fmt: skip


def _counters(counters: Iterable[WhyCounter]) -> list[dict[str, Any]]:
    return [{**asdict(one), "text": one.text} for one in counters]


def _near(one: CountedNear) -> CountedNearJson:
    return {"case": one.case, "label": one.label, "verdict": one.verdict, "counters": _counters(one.counters),
            "lines": [asdict(line) for line in one.lines]}  # fmt: skip


def _code(one: CodeAgainst) -> CodeAgainstJson:
    facts = {name: list(pair) for name, pair in one.facts.items()}
    return {"before": one.before, "state": one.state, "facts": facts, "relaunched": one.relaunched,
            "entries": code_difference_json(one.entries), "note": one.note}  # fmt: skip

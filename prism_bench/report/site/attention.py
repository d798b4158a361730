"""What needs attention in the newest run: concerns of the gate as rows with a small chart, and what became better."""

from collections.abc import Iterable, Mapping
from typing import TypedDict

from prism_bench.analysis.gate.against_last import NAME as LAST
from prism_bench.analysis.gate.alerts import command
from prism_bench.analysis.gate.checks import WELL, GateCheck
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import kernel_page
from prism_bench.report.site.sparkline import recent, sparkline

_RECENT = 30  # runs for which a step stays on the first page
_RUNS = 60  # of a chart


class CaseLink(TypedDict):
    """A case and the page that shows it, from the first folder; None where there is none."""

    case: str
    link: str | None


class RecentLine(TypedDict):
    """The chart of a metric over the last runs on one GPU: the path of an SVG, and the range that it is scaled to."""

    path: str
    metric: str
    runs: int
    low: float
    high: float


class AttentionRow(TypedDict):
    """A concern, an improvement or a note: `line` is its chart over the last runs, where this GPU measured two.

    `ratio` is the new value over the old one, or over the promise.
    """

    kind: str
    gravity: str
    metric: str | None
    ratio: float | None
    message: str
    cases: list[CaseLink]
    reproduce: str | None
    line: RecentLine | None


def concerns(context: SiteContext) -> list[AttentionRow]:
    """Return a row for each concern of the gate, the gravest first, each with the command that shows it again."""
    return [_row(context, check, command(context.record, check)) for check in context.gate.concerns]


def notes(context: SiteContext) -> list[AttentionRow]:
    """Return a row for each note of the gate that has words."""
    checks = (check for part in context.gate.parts for check in part.checks)
    return [_row(context, check) for check in checks if check.gravity == "note" and check.message]


def _row(context: SiteContext, check: GateCheck, reproduce: str | None = None) -> AttentionRow:
    named = check.cases or tuple(filter(None, [check.case]))
    return {
        "kind": check.answer, "gravity": "good" if check.gravity == WELL else check.gravity,
        "metric": check.metric, "ratio": check.ratio,
        "message": check.message, "cases": _links(context, named), "reproduce": reproduce,
        "line": _line(context, named, check.metric),
    }  # fmt: skip


def better(context: SiteContext) -> list[AttentionRow]:
    """Return what became better lately: steps that still hold, and cases that are faster than when last measured.

    The largest change comes first. Where a comparison cannot be trusted, its verdicts are withheld.
    """
    steps = [one for one in context.shifts if not one.first.worse and min(s.age for s in one.steps) <= _RECENT]
    found = [_improved(context, "step", one.cases, one.first.key.metric, (one.ratio, one.message)) for one in steps]
    checks = [check for part in context.gate.parts if part.name == LAST for check in part.checks]
    spoiled = {check.against for check in checks if check.gravity == "untrusted" and not check.case}
    faster = [check for check in checks if check.answer == "faster" and check.against not in spoiled]
    return found + [_row(context, check) for check in sorted(faster, key=lambda check: check.order)]


def _improved(
    context: SiteContext, kind: str, cases: Iterable[str], metric: str, found: tuple[float, str]
) -> AttentionRow:
    named = tuple(cases)
    return {"kind": kind, "gravity": "good", "metric": metric, "ratio": found[0], "message": found[1],
            "cases": _links(context, named), "reproduce": None, "line": _line(context, named, metric)}  # fmt: skip


def _line(context: SiteContext, cases: tuple[str, ...], metric: str | None) -> RecentLine | None:
    """Return the chart of the first case: the kernel's own metric, or its cold time where that has no series."""
    own = [one for one in context.past.newest(cases[0]) if one.key.subject == "kernel"] if cases else []
    for name in (metric, "cold_time"):
        of = next((one for one in own if one.key.metric == name), None)
        values = recent(of, _RUNS) if of else []
        path = sparkline(values)
        if of and path:
            return {"path": path, "metric": of.key.metric, "runs": len(values), "low": min(values), "high": max(values)}
    return None


def _links(context: SiteContext, names: Iterable[str]) -> list[CaseLink]:
    return [{"case": name, "link": case_link(context, name)} for name in names]


def case_link(context: SiteContext, case: str | None) -> str | None:
    """Return the page that shows a case, from the first folder; None where there is none."""
    shown = context.cases.get(case) if case else None
    found = shown.case if shown else context.record.case(case) if case else None
    return f"{kernel_page(found.kernel)}.html" if found else None


def anchors(rows: Iterable[Mapping[str, object]]) -> dict[str, int]:
    """Return the place of the first row of each kind, counted over all rows: what a pill of that kind links to."""
    found: dict[str, int] = {}
    for place, row in enumerate(rows):
        found.setdefault(str(row["kind"]), place)
    return found

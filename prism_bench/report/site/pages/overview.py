"""The overview: one sentence, what needs attention, the comparison with peers, what was checked and measured."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from prism_bench.analysis.gate.checks import Gate
from prism_bench.analysis.peers import HeadlineRow
from prism_bench.report.gate import answers, is_undecided, title
from prism_bench.report.gate import headline as gate_headline
from prism_bench.report.headline import chips, headline, headline_text, tiles
from prism_bench.report.plain import backend_name, backend_text, machine_name
from prism_bench.report.site.answers import AttentionRow, anchors, better, case_link, concerns, coverage, notes
from prism_bench.report.site.cases import ImplementationTable
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.report.site.pages.operation import operation_lines
from prism_bench.report.templating import span
from prism_bench.units import count_text

MOST = 10  # rows that are shown at once; the others are folded


def page(
    context: SiteContext,
    others: Sequence[Mapping[str, str | None]],
    languages: Mapping[str, Sequence[ImplementationTable]],
) -> Page:
    """Return the first page, which names the `others` among the machines and the `languages` of each operation."""
    rows = {"attention": concerns(context), "better": better(context), "notes": notes(context)}
    view = {
        "headline": gate_headline(context.gate),
        "verdict": context.gate.exit_code,
        "measured": headline(context.reading),
        "night": _night(context),
        "tiles": [asdict(tile) for tile in tiles(context.reading, context.reading.every_budget)],
        "against_peers": context.reading.against_peers,
        "parts": [{"part": title(part), "answers": answers(part)} for part in context.gate.parts],
        **rows,
        "languages": operation_lines(context, languages),
        "coverage": coverage(context),
        "others": list(others),
        "left_out": list(context.passed_by),
    }
    against_peers = headline_text(context.reading.against_peers, brief=True)
    shown = {
        "tone": _tone(context.gate),
        "pills": _pills(context, rows),
        "lede": lede(context),
        "peers": against_peers,
        "peer_links": peer_links(context, against_peers.rows),
        "most": MOST,
    }
    return Page("index", "Overview", view, shown)


def _tone(gate: Gate) -> str:
    """Return the colour of the first sentence: red only where a kernel is worse, wrong or misses a budget.

    A gate that passes is good news only where something was decided.
    """
    if gate.exit_code == 2 or is_undecided(gate):
        return "muted"
    if gate.exit_code == 0:
        return "good"
    return "bad" if any(check.gravity == "bad" and (check.case or check.cases) for check in gate.checks) else "warn"


def _pills(context: SiteContext, rows: Mapping[str, Sequence[AttentionRow]]) -> list[tuple[str, str, str | None]]:
    """Return words, tone and target of each count: the first row of its kind, None where no row has it."""
    targets = {
        kind: f"{section}-{place}"
        for section in ("notes", "attention")
        for kind, place in anchors(rows[section]).items()
    }
    return [(text, tone, targets.get(kind)) for text, tone, kind in chips(context.reading)]


def _night(context: SiteContext) -> dict[str, Any]:
    record = context.record
    return {
        "machine": machine_name(record),
        "backend": backend_name(record),
        "created": record.created,
        "commit": record.commit,
        "dirty": record.dirty,
        "complete": record.complete,
        "record": context.path.name,
        "records": len(context.own),
        "seconds": record.duration,
    }


def lede(context: SiteContext) -> list[str]:
    """Return what was measured, where, how long, from which sources."""
    record = context.record
    changed = " with uncommitted changes" if record.dirty else ""
    parts = [machine_name(record), backend_text(backend_name(record))]
    parts += [span(record.duration)] if record.duration else []
    parts.append(f"commit {record.commit[:8]}{changed}" if record.commit else "no commit")
    parts += [f"catalogue {record.catalogue}"] if record.catalogue != "built-in" else []
    return [*parts, count_text(len(context.own), "record")]


def peer_links(context: SiteContext, rows: Iterable[HeadlineRow]) -> dict[str, str | None]:
    """Return the page of each case that the rows of the headline name as their worst."""
    return {row["worst"]["case"]: case_link(context, row["worst"]["case"]) for row in rows}

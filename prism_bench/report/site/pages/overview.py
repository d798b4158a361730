"""The overview: the verdict of the newest run, what got worse, what got better, what cannot be trusted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from prism_bench.analysis.findings import metric_words
from prism_bench.analysis.gate.alerts import command
from prism_bench.analysis.gate.checks import GateCheck
from prism_bench.analysis.headline import HeadlineRow
from prism_bench.report.gate.words import answers, title
from prism_bench.report.gate.words import headline as gate_headline
from prism_bench.report.headline import chips, headline, tiles
from prism_bench.report.machine import machine_name
from prism_bench.report.peers import headline_text
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page, kernel_page
from prism_bench.report.templating import span

_TONES = {0: "good", 1: "bad", 2: "muted", 3: "bad"}
_RECENT = 30  # runs for which a step stays on the first page


def page(context: SiteContext, others: Sequence[Mapping[str, str]]) -> Page:
    """Return the first page, with links to the pages of the `others` among the machines."""
    concerns = [_concern(context, check) for check in context.gate.concerns]
    view = {
        "headline": gate_headline(context.gate),
        "verdict": context.gate.exit_code,
        "measured": headline(context.reading),
        "night": _night(context),
        "tiles": [asdict(tile) for tile in tiles(context.reading, context.reading.every_budget)],
        "against_peers": context.reading.against_peers,
        "parts": [{"part": title(part), "answers": answers(part)} for part in context.gate.parts],
        "worse": [one for one in concerns if one["gravity"] == "bad"],
        "untrusted": [one for one in concerns if one["gravity"] == "untrusted"],
        "better": better(context),
        "notes": [_note(context, check) for part in context.gate.parts for check in part.checks if _is_note(check)],
        "others": list(others),
        "left_out": list(context.passed_by),
    }
    told = headline_text(context.reading.against_peers, brief=True)
    shown = {"tone": _TONES[context.gate.exit_code], "chips": chips(context.reading), "lede": lede(context),
             "peers": told, "peer_links": peer_links(context, told.rows)}  # fmt: skip
    return Page("index", "Overview", view, shown)


def _night(context: SiteContext) -> dict[str, Any]:
    record = context.record
    return {"machine": machine_name(record), "backend": record.backend, "created": record.created,
            "commit": record.commit, "dirty": record.dirty, "complete": record.complete, "record": context.path.name,
            "records": len(context.own), "seconds": record.duration}  # fmt: skip


def lede(context: SiteContext) -> list[str]:
    """Return what was measured, where, how long, from which sources."""
    record = context.record
    changed = " with uncommitted changes" if record.dirty else ""
    parts = [machine_name(record), f"{record.backend} backend"]
    parts += [span(record.duration)] if record.duration else []
    parts.append(f"commit {record.commit[:8]}{changed}" if record.commit else "no commit")
    parts += [f"catalogue {record.catalogue}"] if record.catalogue != "built-in" else []
    count = len(context.own)
    return [*parts, f"{count} record{'s' if count != 1 else ''}"]


def _concern(context: SiteContext, check: GateCheck) -> dict[str, Any]:
    return {**_note(context, check), "reproduce": command(context.record, check)}


def _note(context: SiteContext, check: GateCheck) -> dict[str, Any]:
    return {
        "kind": check.answer, "gravity": check.gravity, "metric": check.metric, "ratio": check.ratio,
        "message": check.message, "cases": _cases(context, check.cases or filter(None, [check.case])),
        "reproduce": None,
    }  # fmt: skip


def _cases(context: SiteContext, names: Iterable[str]) -> list[dict[str, str | None]]:
    return [{"case": name, "link": case_link(context, name)} for name in names]


def _is_note(check: GateCheck) -> bool:
    return check.gravity == "note" and bool(check.message)


def case_link(context: SiteContext, case: str | None) -> str | None:
    """Return the page that shows a case, from the first folder; None where there is none."""
    told = context.cases.get(case) if case else None
    found = told.case if told else context.record.case(case) if case else None
    return f"{kernel_page(found.kernel)}.html" if found else None


def peer_links(context: SiteContext, rows: Iterable[HeadlineRow]) -> dict[str, str | None]:
    """Return the page of each case that the rows of the headline name as their worst."""
    return {row["worst"]["case"]: case_link(context, row["worst"]["case"]) for row in rows}


def better(context: SiteContext) -> list[dict[str, Any]]:
    """Return what became better lately: steps that still hold, and cases that are faster than in the run before."""
    steps = [one for one in context.shifts if not one.first.worse and min(s.age for s in one.steps) <= _RECENT]
    found = [_improved(context, "step", one.cases, one.ratio, one.message) for one in steps]
    before = context.comparisons[0][1] if context.comparisons else ""
    if isinstance(before, str):
        return found
    return found + [
        _improved(context, "faster", (one.case,), one.judgement.estimate.ratio,
                  f"{metric_words(one.metric)} against {before.names[0]}")
        for one in before.cases if one.verdict == "faster" and one.judgement
    ]  # fmt: skip


def _improved(context: SiteContext, kind: str, cases: Iterable[str], ratio: float, message: str) -> dict[str, Any]:
    return {"kind": kind, "gravity": "good", "metric": None, "ratio": ratio, "message": message,
            "cases": _cases(context, cases), "reproduce": None}  # fmt: skip

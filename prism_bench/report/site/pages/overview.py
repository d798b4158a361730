"""The overview: the verdict of the newest night, what got worse, what got better, what cannot be trusted."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from prism_bench.analysis.checks import GateCheck
from prism_bench.analysis.findings import metric_words
from prism_bench.analysis.reproduce import command
from prism_bench.report.gate.words import answers, title
from prism_bench.report.gate.words import headline as gate_headline
from prism_bench.report.headline import chips, headline, tiles
from prism_bench.report.machine import machine_name
from prism_bench.report.site.chronicle import Chronicle
from prism_bench.report.site.page import Page, kernel_page
from prism_bench.report.templating import span

_TONES = {0: "good", 1: "bad", 2: "muted", 3: "bad"}
_RECENT = 30  # nights for which a step stays on the first page


def page(chronicle: Chronicle, others: Sequence[Mapping[str, str]]) -> Page:
    concerns = [_concern(chronicle, check) for check in chronicle.gate.concerns]
    view = {
        "headline": gate_headline(chronicle.gate),
        "verdict": chronicle.gate.exit_code,
        "measured": headline(chronicle.reading),
        "night": _night(chronicle),
        "tiles": [asdict(tile) for tile in tiles(chronicle.reading, chronicle.reading.every_budget)],
        "parts": [{"part": title(part), "answers": answers(part)} for part in chronicle.gate.parts],
        "worse": [one for one in concerns if one["gravity"] == "bad"],
        "untrusted": [one for one in concerns if one["gravity"] == "untrusted"],
        "better": better(chronicle),
        "notes": [_note(chronicle, check) for part in chronicle.gate.parts for check in part.checks if _is_note(check)],
        "others": list(others),
        "left_out": list(chronicle.passed_by),
    }
    shown = {"tone": _TONES[chronicle.gate.exit_code], "chips": chips(chronicle.reading),
             "lede": lede(chronicle)}  # fmt: skip
    return Page("index", "Overview", view, shown)


def _night(chronicle):
    record = chronicle.record
    return {"machine": machine_name(record), "backend": record.backend, "created": record.created,
            "commit": record.commit, "dirty": record.dirty, "complete": record.complete, "record": chronicle.path.name,
            "records": len(chronicle.own), "seconds": record.duration}  # fmt: skip


def lede(chronicle: Chronicle) -> list[str]:
    """What, where, how long, from which sources."""
    record = chronicle.record
    changed = " with uncommitted changes" if record.dirty else ""
    parts = [machine_name(record), f"{record.backend} backend"]
    parts += [span(record.duration)] if record.duration else []
    parts.append(f"commit {record.commit[:8]}{changed}" if record.commit else "no commit")
    parts += [f"catalogue {record.catalogue}"] if record.catalogue != "built-in" else []
    count = len(chronicle.own)
    return [*parts, f"{count} record{'s' if count != 1 else ''}"]


def _concern(chronicle, check: GateCheck):
    return {**_note(chronicle, check), "reproduce": command(chronicle.record, check)}


def _note(chronicle, check: GateCheck):
    return {
        "kind": check.answer, "gravity": check.gravity, "metric": check.metric, "ratio": check.ratio,
        "message": check.message, "cases": _cases(chronicle, check.cases or filter(None, [check.case])),
        "reproduce": None,
    }  # fmt: skip


def _cases(chronicle, names):
    return [{"case": name, "link": case_link(chronicle, name)} for name in names]


def _is_note(check):
    return check.gravity == "note" and bool(check.message)


def case_link(chronicle: Chronicle, case: str | None) -> str | None:
    """The page that shows a case, from the first folder; None where there is none."""
    told = chronicle.told.get(case) if case else None
    found = told.case if told else chronicle.record.case(case) if case else None
    return f"{kernel_page(found.kernel)}.html" if found else None


def better(chronicle: Chronicle) -> list[dict]:
    """What became better lately: steps that still hold, and cases that were faster than in the night before."""
    steps = [one for one in chronicle.shifts if not one.first.worse and min(s.age for s in one.steps) <= _RECENT]
    found = [_improved(chronicle, "step", one.cases, one.ratio, one.message) for one in steps]
    before = chronicle.comparisons[0][1] if chronicle.comparisons else ""
    cases = [] if isinstance(before, str) else [one for one in before.cases if one.verdict == "faster"]
    return found + [
        _improved(chronicle, "faster", (one.case,), one.judgement.estimate.ratio,
                  f"{metric_words(one.metric)} against {before.names[0]}") for one in cases
    ]  # fmt: skip


def _improved(chronicle, kind, cases, ratio, message):
    return {"kind": kind, "gravity": "good", "metric": None, "ratio": ratio, "message": message,
            "cases": _cases(chronicle, cases), "reproduce": None}  # fmt: skip

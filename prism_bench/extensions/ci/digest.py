"""Digest of some days for mail or a channel: what changed, by how much, and why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from prism_bench.analysis.run_analysis import metric_words, value_text
from prism_bench.analysis.trend.causes import Shift
from prism_bench.analysis.trend.detection import CONFIRMED
from prism_bench.report.gate import headline, plain_text
from prism_bench.report.plain import backend_name, backend_text, machine_name
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.pages.budgets import NEAR
from prism_bench.report.templating import environment, micro, moment
from prism_bench.spec.case import Case
from prism_bench.spec.metric import timed_on
from prism_bench.spec.workload import LABELS
from prism_bench.units import count_text, ratio_text

# What a digest shows, as plain values; its forms add nothing to it.


def digest(contexts: Iterable[SiteContext], since: date, today: date) -> dict[str, Any]:
    """Return what the runs from `since` on found, machine by machine."""
    return {
        "since": since.isoformat(),
        "until": today.isoformat(),
        "machines": [_machine(context, since, today) for context in contexts],
    }


def _machine(context: SiteContext, since: date, today: date) -> dict[str, Any]:
    nights = [facts for facts in context.own if facts.created[:10] >= since.isoformat()]
    moved = [shift for shift in context.shifts if _is_news(context, shift, since)]
    return {
        "machine": machine_name(context.record),
        "backend": backend_name(context.record),
        "timed": timed_on(context.record.backend),
        "nights": len(nights),
        "newest": context.record.created,
        "commit": context.record.commit,
        "headline": headline(context.gate),
        "verdict": context.gate.exit_code,
        "worse": [_shift(one) for one in moved if one.first.worse],
        "better": [_shift(one) for one in moved if not one.first.worse],
        "ground": _ground(context, since),
        "untrusted": _concerns(context, "untrusted"),
        "wrong": [concern for concern in _concerns(context, "bad") if concern["kind"] != "step"],
        "unmeasured": _unmeasured(context),
        "ending": sorted(_ending(context, today), key=lambda one: one["expires"]),
        "left_out": list(context.passed_by),
    }


def _is_news(context: SiteContext, shift: Shift, since: date) -> bool:
    """Return whether its step was confirmed in one of the runs since then; a step is believed on its third.

    A run of an older commit may have confirmed it, too: one of those around the step was measured since then.
    """
    recent = [facts.created[:10] >= since.isoformat() for facts in context.own]
    place = next(place for place, facts in enumerate(context.own) if facts.file == shift.first.record)
    around = any(recent[max(0, place - 1) : place + CONFIRMED])
    return around or min(step.age for step in shift.steps) < sum(recent) + CONFIRMED


def _shift(shift: Shift) -> dict[str, Any]:
    return {
        "message": shift.message,
        "ratio": shift.ratio,
        "since": shift.first.since,
        "cause": shift.first.cause.kind,
        "cases": list(shift.cases),
        "recovered": all(step.recovered for step in shift.steps),
    }


def _concerns(context: SiteContext, gravity: str) -> list[dict[str, Any]]:
    return [
        {"kind": check.answer, "about": check.case or "the run", "message": check.message}
        for check in context.gate.concerns
        if check.gravity == gravity
    ]


def _ground(context: SiteContext, since: date) -> list[dict[str, Any]]:
    """Return the breakpoints since then that concern all series: each one once, with its newest day."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for one in (one for one in context.breakpoints if one.since[:10] >= since.isoformat()):
        known = found.setdefault((one.kind, one.words), {**vars(one), "times": 0})
        known["times"] += 1
    return list(found.values())


def _unmeasured(context: SiteContext) -> list[dict[str, Any]]:
    """Return the kernels that should have a time in the newest run and have none, by the reason why."""
    found: dict[str, dict[str, None]] = {}
    for kernel, reason in [*_without_times(context), *_left_out(context)]:
        found.setdefault(reason, {})[kernel] = None
    return [{"reason": reason, "kernels": list(kernels)} for reason, kernels in found.items()]


def _without_times(context: SiteContext) -> Iterator[tuple[str, str]]:
    for case in context.reading.cases:
        if not any(measurement.samples for measurement in case.measurements):
            yield case.kernel, f"{case.status}: {case.reason}" if case.reason else case.status


def _left_out(context: SiteContext) -> list[tuple[str, str]]:
    """Return the catalogue's cases that the newest run left out, of the labels that it ran."""
    there = {case.name for case in context.record.cases}
    labels = [label for label in LABELS if any(case.label == label for case in context.reading.cases)]
    known: Sequence[Case] = context.catalogue.cases((), labels) if context.catalogue and labels else ()
    return [(case.spec.name, "not in the newest run") for case in known if case.name not in there]


def _ending(context: SiteContext, today: date) -> Iterator[dict[str, Any]]:
    """Yield the budgets that end within the month, or have ended."""
    for one in context.reading.every_budget:
        expires = one.budget.expires
        if expires and expires - today <= NEAR:
            yield {
                "case": one.case,
                "metric": metric_words(one.budget.metric),
                "expires": expires.isoformat(),
                "limit": value_text(one.budget.metric, one.budget.limit),
                "owner": one.budget.owner,
                "expired": expires <= today,
            }


# The digest as Markdown for a channel, and as HTML for mail, which takes neither style sheets nor scripts.

_MOST = 12  # kernels named for one reason; the rest is counted


def html(digest: Mapping[str, Any]) -> str:
    """Return the digest as an HTML document with its styles in its elements."""
    machines = [
        {**one, "sections": [(title, items) for title, items in _sections(one) if items]} for one in digest["machines"]
    ]
    return environment().get_template("digest.html").render(digest=digest, machines=machines)


def markdown(digest: Mapping[str, Any]) -> str:
    """Return the digest as Markdown, ending with a newline; names are text, never markup."""
    lines = [f"# Prism Bench, {digest['since']} to {digest['until']}"]
    for machine in digest["machines"]:
        lines += _forms_machine(machine)
    return "\n".join(lines if digest["machines"] else [*lines, "", "There is no record."]) + "\n"


def _forms_machine(machine: Mapping[str, Any]) -> Iterator[str]:
    nights = count_text(machine["nights"], "run")
    name, backend = plain_text(machine["machine"]), plain_text(backend_text(machine["backend"]))
    yield f"\n## {name}, {backend}: {plain_text(machine['headline'])}\n"
    if not machine["nights"]:
        yield f"Nothing was measured since then; the newest run is of {moment(machine['newest'])}.\n"
    else:
        commit = plain_text((machine["commit"] or "none")[:12])
        yield f"{nights}, the newest of {moment(machine['newest'])}, commit {commit}.\n"
    for title, items in _sections(machine):
        yield from _section(title, items)


def _sections(machine: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield every section's title and its items as text, also of sections without items."""
    yield "Worse", [_moved(one) for one in machine["worse"]]
    yield "Wrong, or a promise broken", [_about(one) for one in machine["wrong"]]
    yield "Cannot be trusted", [_about(one) for one in machine["untrusted"]]
    yield "Better", [_moved(one) for one in machine["better"]]
    yield "The environment changed", [_forms_ground(one) for one in machine["ground"]]
    yield "Unmeasured", [_forms_unmeasured(one) for one in machine["unmeasured"]]
    yield "Budgets near their end", [_forms_ending(one) for one in machine["ending"]]
    yield "Left out", machine["left_out"]


def _section(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"**{title}**\n"
        yield from (f"- {plain_text(micro(item))}" for item in items)
        yield ""


def _moved(one: Mapping[str, Any]) -> str:
    return f"{ratio_text(one['ratio'])} {one['message']}"


def _about(one: Mapping[str, Any]) -> str:
    return f"{one['kind']}: {one['about']}{': ' if one['message'] else ''}{one['message']}"


def _forms_ground(one: Mapping[str, Any]) -> str:
    often = f", {one['times']} times" if one["times"] > 1 else ""
    return f"{one['kind']}: {one['words']}, {one['since'][:10]}{often}"


def _forms_unmeasured(one: Mapping[str, Any]) -> str:
    named = ", ".join(one["kernels"][:_MOST])
    rest = len(one["kernels"]) - _MOST
    return f"{named}{f' and {rest} more' if rest > 0 else ''}: {one['reason']}"


def _forms_ending(one: Mapping[str, Any]) -> str:
    word = "ended" if one["expired"] else "ends"
    return f"{one['case']}, {one['metric']} {one['limit']}: {word} {one['expires']}, {one['owner'] or 'no owner'}"

"""Digest of some days for mail or a channel: what changed, by how much, and why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from prism_bench.analysis.run_analysis import metric_words
from prism_bench.analysis.trend.causes import Shift
from prism_bench.analysis.trend.detection import CONFIRMED
from prism_bench.report.gate import headline, plain_text
from prism_bench.report.plain import backend_name, backend_text, machine_name
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.pages.budgets import NEAR
from prism_bench.report.templating import environment, micro, moment
from prism_bench.spec.case import Case
from prism_bench.spec.metric import timed_on, value_text
from prism_bench.spec.workload import LABELS
from prism_bench.units import change_text, count_text


def digest(contexts: Iterable[SiteContext], since: date, today: date) -> dict[str, Any]:
    """Return the findings of the runs from `since` on, for each machine, as plain values."""
    return {
        "since": since.isoformat(),
        "until": today.isoformat(),
        "machines": [_machine(context, since, today) for context in contexts],
    }


def _machine(context: SiteContext, since: date, today: date) -> dict[str, Any]:
    recent = [facts for facts in context.own if facts.created[:10] >= since.isoformat()]
    moved = [shift for shift in context.shifts if _is_news(context, shift, since)]
    return {
        "machine": machine_name(context.record),
        "backend": backend_name(context.record),
        "timed": timed_on(context.record.backend),
        "nights": len(recent),
        "newest": context.record.created,
        "commit": context.record.commit,
        "headline": headline(context.gate),
        "verdict": context.gate.exit_code,
        "worse": [_shift(shift) for shift in moved if shift.first.worse],
        "better": [_shift(shift) for shift in moved if not shift.first.worse],
        "ground": _breakpoints(context, since),
        "untrusted": _concerns(context, "untrusted"),
        "wrong": [concern for concern in _concerns(context, "bad") if concern["kind"] != "step"],
        "unmeasured": _unmeasured(context),
        "ending": sorted(_ending(context, today), key=lambda budget: budget["expires"]),
        "left_out": list(context.passed_by),
    }


def _is_news(context: SiteContext, shift: Shift, since: date) -> bool:
    """Return whether the step was confirmed in a run since then; a step is confirmed by its third run.

    A run of an older commit may confirm it too: then a run around the step was measured since.
    """
    recent = [facts.created[:10] >= since.isoformat() for facts in context.own]
    index = next(index for index, facts in enumerate(context.own) if facts.file == shift.first.record)
    around = any(recent[max(0, index - 1) : index + CONFIRMED])
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


def _breakpoints(context: SiteContext, since: date) -> list[dict[str, Any]]:
    """Return the breakpoints of all series since then: each once, with its newest day."""
    changes: dict[tuple[str, str], dict[str, Any]] = {}
    for change in (change for change in context.breakpoints if change.since[:10] >= since.isoformat()):
        known = changes.setdefault((change.kind, change.words), {**vars(change), "times": 0})
        known["times"] += 1
    return list(changes.values())


def _unmeasured(context: SiteContext) -> list[dict[str, Any]]:
    """Return the kernels without a time in the newest run, by reason, for the labels that it ran."""
    kernels_by_reason: dict[str, dict[str, None]] = {}
    for case in context.reading.cases:
        if not any(measurement.samples for measurement in case.measurements):
            reason = f"{case.status}: {case.reason}" if case.reason else case.status
            kernels_by_reason.setdefault(reason, {})[case.kernel] = None
    run = {case.name for case in context.record.cases}
    labels = [label for label in LABELS if any(case.label == label for case in context.reading.cases)]
    expected: Sequence[Case] = context.catalogue.cases((), labels) if context.catalogue and labels else ()
    for case in expected:
        if case.name not in run:
            kernels_by_reason.setdefault("not in the newest run", {})[case.spec.name] = None
    return [{"reason": reason, "kernels": list(kernels)} for reason, kernels in kernels_by_reason.items()]


def _ending(context: SiteContext, today: date) -> Iterator[dict[str, Any]]:
    """Yield the budgets that end within the month, or have ended."""
    for check in context.reading.every_budget:
        expires = check.budget.expires
        if expires and expires - today <= NEAR:
            yield {
                "case": check.case,
                "metric": metric_words(check.budget.metric),
                "expires": expires.isoformat(),
                "limit": value_text(check.budget.metric, check.budget.limit),
                "owner": check.budget.owner,
                "expired": expires <= today,
            }


# Forms: Markdown for a channel, and HTML for mail, which takes neither style sheets nor scripts.

_MOST = 12  # kernels named for one reason; the rest is counted


def html(digest: Mapping[str, Any]) -> str:
    """Return the digest as an HTML document with its styles in its elements."""
    machines = [
        {**machine, "sections": [(title, items) for title, items in _sections(machine) if items]}
        for machine in digest["machines"]
    ]
    return environment().get_template("digest.html").render(digest=digest, machines=machines)


def markdown(digest: Mapping[str, Any]) -> str:
    """Return the digest as Markdown, ending with a newline; names are text, never markup."""
    lines = [f"# Prism Bench, {digest['since']} to {digest['until']}"]
    for machine in digest["machines"]:
        lines += _machine_lines(machine)
    return "\n".join(lines if digest["machines"] else [*lines, "", "There is no record."]) + "\n"


def _machine_lines(machine: Mapping[str, Any]) -> Iterator[str]:
    runs = count_text(machine["nights"], "run")
    name, backend = plain_text(machine["machine"]), plain_text(backend_text(machine["backend"]))
    yield f"\n## {name}, {backend}: {plain_text(machine['headline'])}\n"
    if not machine["nights"]:
        yield f"Nothing was measured since then; the newest run is of {moment(machine['newest'])}.\n"
    else:
        commit = plain_text((machine["commit"] or "none")[:12])
        yield f"{runs}, the newest of {moment(machine['newest'])}, commit {commit}.\n"
    for title, items in _sections(machine):
        if items:
            yield f"**{title}**\n"
            yield from (f"- {plain_text(micro(item))}" for item in items)
            yield ""


def _sections(machine: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield every section's title and its items as text, also of sections without items."""
    yield "Worse", [_shift_text(shift) for shift in machine["worse"]]
    yield "Wrong, or a promise broken", [_concern_text(concern) for concern in machine["wrong"]]
    yield "Cannot be trusted", [_concern_text(concern) for concern in machine["untrusted"]]
    yield "Better", [_shift_text(shift) for shift in machine["better"]]
    yield "The environment changed", [_change_text(change) for change in machine["ground"]]
    yield "Unmeasured", [_unmeasured_text(group) for group in machine["unmeasured"]]
    yield "Budgets near their end", [_budget_text(budget) for budget in machine["ending"]]
    yield "Left out", machine["left_out"]


def _shift_text(shift: Mapping[str, Any]) -> str:
    return f"{change_text(shift['ratio'])} {shift['message']}"


def _concern_text(concern: Mapping[str, Any]) -> str:
    return f"{concern['kind']}: {concern['about']}{': ' if concern['message'] else ''}{concern['message']}"


def _change_text(change: Mapping[str, Any]) -> str:
    often = f", {change['times']} times" if change["times"] > 1 else ""
    return f"{change['kind']}: {change['words']}, {change['since'][:10]}{often}"


def _unmeasured_text(group: Mapping[str, Any]) -> str:
    named = ", ".join(group["kernels"][:_MOST])
    rest = len(group["kernels"]) - _MOST
    return f"{named}{f' and {rest} more' if rest > 0 else ''}: {group['reason']}"


def _budget_text(budget: Mapping[str, Any]) -> str:
    word = "ended" if budget["expired"] else "ends"
    when = f"{word} {budget['expires']}, {budget['owner'] or 'no owner'}"
    return f"{budget['case']}, {budget['metric']} {budget['limit']}: {when}"

"""What a digest shows, as plain values; its forms add nothing to it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any

from prism_bench.analysis.findings import metric_words, value_text
from prism_bench.analysis.trend.shifts import Shift
from prism_bench.analysis.trend.walk import CONFIRMED
from prism_bench.report.gate.words import headline
from prism_bench.report.machine import backend_name, machine_name
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.pages.budgets import NEAR
from prism_bench.spec.case import Case
from prism_bench.spec.metric import timed_on
from prism_bench.spec.workload import LABELS


def digest(contexts: Iterable[SiteContext], since: date, today: date) -> dict[str, Any]:
    """Return what the runs from `since` on found, machine by machine."""
    return {"since": since.isoformat(), "until": today.isoformat(),
            "machines": [_machine(one, since, today) for one in contexts]}  # fmt: skip


def _machine(context: SiteContext, since: date, today: date) -> dict[str, Any]:
    nights = [facts for facts in context.own if facts.created[:10] >= since.isoformat()]
    moved = [one for one in context.shifts if _is_news(context, one, since)]
    return {
        "machine": machine_name(context.record), "backend": backend_name(context.record),
        "timed": timed_on(context.record.backend), "nights": len(nights),
        "newest": context.record.created, "commit": context.record.commit,
        "headline": headline(context.gate), "verdict": context.gate.exit_code,
        "worse": [_shift(one) for one in moved if one.first.worse],
        "better": [_shift(one) for one in moved if not one.first.worse],
        "ground": _ground(context, since),
        "untrusted": _concerns(context, "untrusted"),
        "wrong": [one for one in _concerns(context, "bad") if one["kind"] != "step"],
        "unmeasured": _unmeasured(context),
        "ending": sorted(_ending(context, today), key=lambda one: one["expires"]),
        "left_out": list(context.passed_by),
    }  # fmt: skip


def _is_news(context: SiteContext, shift: Shift, since: date) -> bool:
    """Return whether its step was confirmed in one of the runs since then; a step is believed on its third.

    A run of an older commit may have confirmed it, too: one of those around the step was measured since then.
    """
    recent = [facts.created[:10] >= since.isoformat() for facts in context.own]
    place = next(place for place, facts in enumerate(context.own) if facts.file == shift.first.record)
    around = any(recent[max(0, place - 1) : place + CONFIRMED])
    return around or min(step.age for step in shift.steps) < sum(recent) + CONFIRMED


def _shift(shift: Shift) -> dict[str, Any]:
    return {"message": shift.message, "ratio": shift.ratio, "since": shift.first.since, "cause": shift.first.cause.kind,
            "cases": list(shift.cases), "recovered": all(step.recovered for step in shift.steps)}  # fmt: skip


def _concerns(context: SiteContext, gravity: str) -> list[dict[str, Any]]:
    return [{"kind": check.answer, "about": check.case or "the run", "message": check.message}
            for check in context.gate.concerns if check.gravity == gravity]  # fmt: skip


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
        if not any(one.samples for one in case.measurements):
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
            yield {"case": one.case, "metric": metric_words(one.budget.metric), "expires": expires.isoformat(),
                   "limit": value_text(one.budget.metric, one.budget.limit), "owner": one.budget.owner,
                   "expired": expires <= today}  # fmt: skip

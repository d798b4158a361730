"""What a digest tells, as plain values; its forms add nothing to it."""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from prism_bench.analysis.findings import metric_words, value_text
from prism_bench.analysis.trend.shifts import Shift
from prism_bench.analysis.trend.walk import CONFIRMED
from prism_bench.report.gate.words import headline
from prism_bench.report.machine import machine_name
from prism_bench.report.site.chronicle import Chronicle
from prism_bench.report.site.pages.budgets import NEAR
from prism_bench.workload import LABELS


def digest(chronicles: Iterable[Chronicle], since: date, today: date) -> dict:
    """What the nights from `since` on have to say, machine by machine."""
    return {"since": since.isoformat(), "until": today.isoformat(),
            "machines": [_machine(one, since, today) for one in chronicles]}  # fmt: skip


def _machine(chronicle: Chronicle, since: date, today: date) -> dict:
    nights = [facts for facts in chronicle.own if facts.created[:10] >= since.isoformat()]
    moved = [one for one in chronicle.shifts if _is_news(one, len(nights))]
    return {
        "machine": machine_name(chronicle.record), "backend": chronicle.record.backend, "nights": len(nights),
        "newest": chronicle.record.created, "commit": chronicle.record.commit,
        "headline": headline(chronicle.gate), "verdict": chronicle.gate.exit_code,
        "worse": [_shift(one) for one in moved if one.first.worse],
        "better": [_shift(one) for one in moved if not one.first.worse],
        "ground": _ground(chronicle, since),
        "untrusted": _concerns(chronicle, "untrusted"),
        "wrong": [one for one in _concerns(chronicle, "bad") if one["kind"] != "step"],
        "unmeasured": _unmeasured(chronicle),
        "ending": sorted(_ending(chronicle, today), key=lambda one: one["expires"]),
        "left_out": list(chronicle.passed_by),
    }  # fmt: skip


def _is_news(shift: Shift, nights: int) -> bool:
    """Whether its step was confirmed in one of the last nights; a step is believed on its third."""
    return min(step.age for step in shift.steps) < nights + CONFIRMED


def _shift(shift: Shift) -> dict:
    return {"message": shift.message, "ratio": shift.ratio, "since": shift.first.since, "cause": shift.first.cause.kind,
            "cases": list(shift.cases), "recovered": all(step.recovered for step in shift.steps)}  # fmt: skip


def _concerns(chronicle, gravity: str) -> list[dict]:
    return [{"kind": check.answer, "about": check.case or "the run", "message": check.message}
            for check in chronicle.gate.concerns if check.gravity == gravity]  # fmt: skip


def _ground(chronicle, since: date) -> list[dict]:
    """What changed beneath all series since then: each thing once, with its newest day."""
    found: dict[tuple[str, str], dict] = {}
    for one in (one for one in chronicle.breakpoints if one.since[:10] >= since.isoformat()):
        known = found.setdefault((one.kind, one.words), {**vars(one), "times": 0})
        known["times"] += 1
    return list(found.values())


def _unmeasured(chronicle: Chronicle) -> list[dict]:
    """Kernels that should have a time in the newest night and have none, by the reason why."""
    found: dict[str, dict[str, None]] = {}
    for kernel, reason in [*_without_times(chronicle), *_left_out(chronicle)]:
        found.setdefault(reason, {})[kernel] = None
    return [{"reason": reason, "kernels": list(kernels)} for reason, kernels in found.items()]


def _without_times(chronicle):
    for case in chronicle.reading.cases:
        if not any(one.samples for one in case.measurements):
            yield case.kernel, f"{case.status}: {case.reason}" if case.reason else case.status


def _left_out(chronicle):
    """The catalogue's cases that the newest night did not run, those of the labels that it ran."""
    there = {case.name for case in chronicle.record.cases}
    labels = [label for label in LABELS if any(case.label == label for case in chronicle.reading.cases)]
    known: Sequence = chronicle.catalogue.cases((), labels) if chronicle.catalogue and labels else ()
    return [(case.spec.name, "not run that night") for case in known if case.name not in there]


def _ending(chronicle, today: date):
    """Promises that end within the month, or have ended."""
    for one in chronicle.reading.every_budget:
        expires = one.budget.expires
        if expires and expires - today <= NEAR:
            yield {"case": one.case, "metric": metric_words(one.budget.metric), "expires": expires.isoformat(),
                   "limit": value_text(one.budget.metric, one.budget.limit), "owner": one.budget.owner,
                   "expired": expires <= today}  # fmt: skip


def parsed_since(text: str, today: date) -> date | None:
    """The day that `2026-11-14`, `7d` or `2w` mean; None where the text means none."""
    number, unit = text[:-1], text[-1:]
    if number.isdecimal() and unit in ("d", "w") and int(number) < 10_000:
        return today - timedelta(days=int(number) * {"d": 1, "w": 7}[unit])
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None

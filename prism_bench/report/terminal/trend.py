"""A trend for people and for programs: what moved and why, where the ground itself moved, what was set aside."""

from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from prism_bench.analysis.trend import Trend
from prism_bench.analysis.trend.shifts import RECENT, Shift, findings, shifts
from prism_bench.record.store import History
from prism_bench.units import count_text

_STYLES = {"bad": "bold red", "note": "yellow"}
_REASONS = 8


def trend_view(trend: Trend, history: History, recent: int = RECENT) -> RenderableType:
    """Return what `trend` prints, for a Rich console."""
    found = findings(shifts(trend.steps), recent)
    lines = [Text(_headline(trend, history), "bold green" if not found else "bold yellow")]
    lines += [_line(_STYLES[finding.gravity], finding.kind, finding.message) for finding in found]
    for one in trend.breakpoints:
        where = ", ".join(filter(None, (one.machine, one.backend, one.environment)))
        lines.append(_line("cyan", "breakpoint", f"{where}: {one.words} since {one.since}"))
    lines += [_line("yellow", "order", history.unordered)] if history.unordered else []
    lines += _set_aside(trend)
    return Group(*lines, *(_line("yellow", "left out", problem.reason) for problem in history.problems))


def _set_aside(trend: Trend) -> list[Text]:
    """Return a line for each of the most frequent reasons, and one for the rest."""
    reasons = sorted(trend.aside.items(), key=lambda item: -item[1])
    rest = sum(count for _, count in reasons[_REASONS:])
    lines = [_line("dim", "set aside", f"{count_text(count, 'measurement')}: {reason}") for reason, count in reasons]
    return lines[:_REASONS] + ([_line("dim", "set aside", f"{rest} more, see --json")] if rest else [])


def _line(style: str, kind: str, message: str) -> Text:
    return Text.assemble((f"{kind}: ", style), message)


def _headline(trend: Trend, history: History) -> str:
    machines = {facts.machine for facts in history.records}
    steps = count_text(len(trend.steps), "step") if trend.steps else "no step"
    where = f"{count_text(len(history.records), 'record')} of {count_text(len(machines), 'machine')}"
    return f"{steps} in {trend.series} series, {where}"


def trend_json(trend: Trend, history: History, recent: int = RECENT) -> dict[str, Any]:
    """Return the trend as plain JSON values."""
    return {
        "records": len(history.records),
        "points": trend.points,
        "series": trend.series,
        "findings": [_shift(shift, recent) for shift in shifts(trend.steps)],
        "steps": [{**asdict(step), "ratio": step.ratio} for step in trend.steps],
        "breakpoints": [asdict(one) for one in trend.breakpoints],
        "set_aside": dict(trend.aside),
        "order": history.unordered,
        "problems": [asdict(problem) for problem in history.problems],
    }


def _shift(shift: Shift, recent: int) -> dict[str, Any]:
    return {**vars(shift.finding(recent)), "cases": list(shift.cases), "metrics": list(shift.metrics)}

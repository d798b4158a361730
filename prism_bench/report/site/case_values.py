"""A case of a kernel's page as plain values: what its JSON holds, what its pictures draw, and its summaries."""

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from prism_bench.analysis.bounds.profile_table import Counted
from prism_bench.analysis.bounds.why import Why
from prism_bench.analysis.peer_rows import peer_rows
from prism_bench.analysis.summary import number
from prism_bench.analysis.trend import Step
from prism_bench.record.measurement import Measurement
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.counted import counted
from prism_bench.report.site.measured import drawn_measurement, measurement_views
from prism_bench.report.site.shown import ShownCase
from prism_bench.report.site.telemetry import band_of
from prism_bench.report.why import why_json

_DERIVED = ("bandwidth", "bandwidth_share", "flop_rate", "flop_share", "intensity", "bound", "least_time",
            "bound_share", "best_peer", "best_peer_time", "peer_ratio", "cpu_time", "cpu_ratio",
            "cpu_ratio_end_to_end", "error", "invalid", "throttled", "energy", "dram_bytes")  # fmt: skip
_DRAWN = ("cold_time", "intensity", "flop_rate", "bound", "bound_share", "best_peer")
_WORST_ELEMENT = ("place", "actual", "expected", "where")
_WATCHED = ("sm_clock", "power", "power_average", "temperature")


class ConditionsSummary(TypedDict):
    """Conditions of several measurements together: (lowest, median, highest) by quantity, and what slowed the clock."""

    spans: dict[str, tuple[float, float, float]]
    reasons: list[str]
    throttled: int
    windows: int


def case_values(context: SiteContext, shown: ShownCase, seen: Counted | None, why: Why) -> dict[str, Any]:
    """Return the case as the page's JSON has it."""
    case = shown.case
    return {
        "name": case.name, "variant": case.variant, "label": case.label, "workload": case.workload,
        "status": case.status, "reason": case.reason, "elsewhere": shown.elsewhere,
        "bytes": case.bytes, "flops": case.flops, "code": case.code,
        "derived": {name: _plain(shown.row[name]) for name in _DERIVED},
        "peers": peer_rows(case),
        "measurements": measurement_views(case.measurements),
        "conditions": conditions(case.measurements),
        "verification": [_comparison(one) for one in case.verification], "counters": counted(seen), "why": _why(why),
        "steps": [_step(context, step) for step in context.steps.get(case.name, ())],
    }  # fmt: skip


def _comparison(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a comparison with the reference; the worst element is in the record, and here where it is wrong."""
    left_out = _WORST_ELEMENT if found.get("passed") else ()
    return {name: value for name, value in found.items() if name not in left_out}


def _why(why: Why) -> dict[str, Any]:
    """Return the account without what the page's JSON has elsewhere: names, and what counters mean."""
    plain = {name: value for name, value in why_json(why).items() if name != "case"}
    near = {"case": why.near.case, "label": why.near.label} if why.near else None
    counters = [{"name": one.name, "value": one.value, "text": one.text} for one in why.counters]
    return plain | {"near": near, "counters": counters}


def drawn_case(context: SiteContext, shown: ShownCase, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the pictures of the case are drawn from; `night` is the number of the run that it is of.

    `devices` are the runs from which on another GPU measured the case: no line goes across them.
    """
    return {
        "night": context.night_of(shown.reading.record),
        **{name: values[name] for name in ("name", "variant", "label", "steps")},
        "devices": [context.nights[one] for one in context.past.other_boards(shown.case.name)],
        "derived": {name: _plain(shown.row[name]) for name in _DRAWN},
        "measurements": [drawn_measurement(one) for one in shown.case.measurements if one.subject == "kernel"],
    }  # fmt: skip


def conditions(measurements: Iterable[Measurement]) -> ConditionsSummary | None:
    """Return the conditions of the measurements together; None where no device was watched."""
    timed = [one for one in measurements if one.metric != "launch_time"]
    windows = [evidence for one in timed for evidence in one.evidence]
    if not windows:
        return None
    spans = {name: band_of([one.spans.get(name) for one in windows]) for name in _WATCHED}
    return {
        "spans": {name: span for name, span in spans.items() if span},
        "reasons": sorted({reason for one in windows for reason in one.reasons}),
        "throttled": sum(one.throttled for one in timed), "windows": len(windows),
    }  # fmt: skip


def _plain(value: Any) -> str | float | None:
    if isinstance(value, str):
        return value
    plain = number(value)
    return None if plain is None else float(f"{plain:.6g}")


def _step(context: SiteContext, step: Step) -> dict[str, Any]:
    night = next(n for n, facts in enumerate(context.own) if facts.file == step.record)
    return {"metric": step.key.metric, "subject": step.key.subject, "night": night, "nights": step.nights,
            "before": step.before, "after": step.after, "ratio": step.ratio, "since": step.since, "worse": step.worse,
            "recovered": step.recovered, "record": step.record, "commits": step.commits,
            "cause": [step.cause.words, *step.cause.also]}  # fmt: skip

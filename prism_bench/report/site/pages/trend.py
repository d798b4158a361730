"""What moved over all nights, and why; where the ground itself moved; what was set aside."""

from collections.abc import Mapping, Sequence

from prism_bench.analysis.against_history import ENOUGH
from prism_bench.analysis.trend.shifts import RECENT, Shift
from prism_bench.report.site.chronicle import Chronicle
from prism_bench.report.site.page import Page
from prism_bench.report.site.pages.overview import case_link

_POINTS = 45  # nights on each side of a step


def page(chronicle: Chronicle, loads: Mapping[str, Sequence]) -> Page:
    view = {
        "nights": len(chronicle.own), "enough": ENOUGH, "series": chronicle.trend.series,
        "first": chronicle.own[0].created if chronicle.own else None,
        "last": chronicle.own[-1].created if chronicle.own else None,
        "steps": [_shift(chronicle, one) for one in chronicle.shifts],
        "breakpoints": [vars(one) for one in chronicle.breakpoints],
        "aside": dict(sorted(chronicle.trend.aside.items(), key=lambda item: -item[1])),
        "problems": [vars(problem) for problem in chronicle.history.problems],
    }  # fmt: skip
    return Page("trend", "Trend", view, scripts=("plot.js", "pictures.js"))


def _shift(chronicle, shift: Shift):
    largest = max(shift.steps, key=lambda step: max(step.ratio, 1 / step.ratio))
    return {
        "worse": shift.first.worse, "recovered": all(step.recovered for step in shift.steps),
        "gravity": shift.gravity(RECENT), "cause": shift.first.cause.kind, "since": shift.first.since,
        "record": shift.first.record, "cases": list(shift.cases), "metrics": list(shift.metrics), "ratio": shift.ratio,
        "message": shift.message, "link": case_link(chronicle, largest.key.case),
        "case": largest.key.case, "picture": _picture(chronicle, largest),
    }  # fmt: skip


def _picture(chronicle, step):
    """The nights around the step, and the two levels, as numbers of nights and seconds."""
    series = next(one for one in chronicle.series[step.key.case] if one.key == step.key)
    files = [chronicle.history.records[place].file for place in series.records.tolist()]
    place = files.index(step.record)
    start, end = max(0, place - _POINTS), min(len(files), place + _POINTS)
    nights = [chronicle.nights[one] for one in series.records[start:end].tolist()]
    return {"metric": step.key.metric, "nights": nights, "values": series.values[start:end].tolist(),
            "step": chronicle.nights[int(series.records[place])],
            "before": step.before, "after": step.after}  # fmt: skip

"""Cases of a kernel's page as plain values: times, counters, telemetry, and other implementations."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, takewhile
from statistics import median
from typing import Any, TypedDict

from prism_bench.analysis.bounds.bottleneck import check_bytes
from prism_bench.analysis.bounds.profiles import Counted, newest_counted
from prism_bench.analysis.bounds.why import Why
from prism_bench.analysis.peers import peer_rows
from prism_bench.analysis.run_analysis import interval_of
from prism_bench.analysis.summary import cache_bytes, number
from prism_bench.analysis.trend import Step
from prism_bench.analysis.trend.series import BoardCourse
from prism_bench.catalogue import Catalogue
from prism_bench.compilation.languages import language, names
from prism_bench.compilation.program import source_lines
from prism_bench.measure.plausibility import valid_median
from prism_bench.record import store
from prism_bench.record.measurement import Measurement, Span
from prism_bench.record.run_record import RunRecord, encode_measurement
from prism_bench.report.plain import why_json
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import OPERATIONS, file_name, kernel_page
from prism_bench.report.view import CaseView
from prism_bench.spec.kernel import CUDA, KernelSpec
from prism_bench.spec.workload import LABELS

# A case of a kernel's page as plain values: what its JSON holds, and what its pictures draw.

_DERIVED = ("bandwidth", "bandwidth_share", "flop_rate", "flop_share", "intensity", "bound", "least_time",
            "bound_share", "best_peer", "best_peer_time", "peer_ratio", "cpu_time", "cpu_ratio",
            "cpu_ratio_end_to_end", "error", "invalid", "throttled", "energy", "dram_bytes")  # fmt: skip
_DRAWN = ("cold_time", "intensity", "flop_rate", "bound", "bound_share", "best_peer")
_WORST_ELEMENT = ("place", "actual", "expected", "where")


def case_values(context: SiteContext, view: CaseView, counted: Counted | None, why: Why) -> dict[str, Any]:
    """Return the case as the page's JSON has it."""
    case = view.case
    return {
        **{name: getattr(case, name) for name in ("name", "variant", "label", "workload", "status", "reason")},
        "elsewhere": view.elsewhere,
        "bytes": case.bytes,
        "flops": case.flops,
        "code": case.code,
        "derived": {name: _short(view.row[name]) for name in _DERIVED},
        "peers": peer_rows(case),
        "measurements": measurement_views(case.measurements),
        "conditions": conditions(case.measurements),
        "verification": [_comparison(comparison) for comparison in case.verification],
        "counters": _counters(counted),
        "why": _why(why),
        "steps": [_step(context, step) for step in context.steps.get(case.name, ())],
    }


def drawn_case(context: SiteContext, view: CaseView, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the pictures of the case are drawn from; `night` is the number of its run.

    `devices` are the runs from which on another GPU measured the case: no line goes across them.
    """
    return {
        "night": context.run_number(view.reading.record),
        **{name: values[name] for name in ("name", "variant", "label", "steps")},
        "devices": [context.run_numbers[place] for place in context.past.other_boards(view.case.name)],
        "derived": {name: _short(view.row[name]) for name in _DRAWN},
        "measurements": [
            drawn_measurement(measurement) for measurement in view.case.measurements if measurement.subject == "kernel"
        ],
    }


def _short(value: Any) -> str | float | None:
    """Return a text as it is, and a number to six digits."""
    if isinstance(value, str):
        return value
    plain = number(value)
    return None if plain is None else float(f"{plain:.6g}")


def _comparison(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """Return a comparison with the reference; the worst element is in the record, and here where it is wrong."""
    left_out = _WORST_ELEMENT if comparison.get("passed") else ()
    return {name: value for name, value in comparison.items() if name not in left_out}


def _why(why: Why) -> dict[str, Any]:
    """Return the account without what the page's JSON has elsewhere: names, and what counters mean."""
    plain = {name: value for name, value in why_json(why).items() if name != "case"}
    near = {"case": why.near.case, "label": why.near.label} if why.near else None
    counters = [{"name": counter.name, "value": counter.value, "text": counter.text} for counter in why.counters]
    return plain | {"near": near, "counters": counters}


def _step(context: SiteContext, step: Step) -> dict[str, Any]:
    return {
        "metric": step.key.metric,
        "subject": step.key.subject,
        "night": next(number for number, facts in enumerate(context.own) if facts.file == step.record),
        "nights": step.nights,
        "before": step.before,
        "after": step.after,
        "ratio": step.ratio,
        "since": step.since,
        "worse": step.worse,
        "recovered": step.recovered,
        "record": step.record,
        "commits": step.commits,
        "cause": [step.cause.words, *step.cause.also],
    }


# What a profiler counted of a case: in its own record, else in the newest profile of its machine that has it.


def counted_of(context: SiteContext, view: CaseView) -> Counted | None:
    """Return the case as the record of its counters has it; None where nothing was counted."""
    if view.case.profile.get("values"):
        return Counted(view.case, view.reading.record, "")
    counted = counters(str(context.places.profiles), context.machine).get(view.case.name)
    return counted if counted and counted.case.profile.get("values") else None


@lru_cache(8)
def counters(folder: str, machine: str) -> dict[str, Counted]:
    """Return by case what the records of a machine's profilers have newest."""
    return newest_counted(store.readable(folder, machine))


def _counters(counted: Counted | None) -> dict[str, Any]:
    """Return the counters with their units, the uncounted ones by reason, and DRAM bytes against those that must move.

    Empty where nothing was counted.
    """
    if counted is None:
        return {"counters": {}, "source": None, "dram": None}
    uncounted: dict[str, list[str]] = {}
    for name, counter in counted.case.profile["values"].items():
        if counter.get("value") is None:
            uncounted.setdefault(counter.get("reason") or "no reason was recorded", []).append(name)
    checked, profile = check_bytes(counted.case, cache_bytes(counted.record.machine)), counted.case.profile
    return {
        "counters": {
            name: [counter["value"], counter.get("unit", "")]
            for name, counter in profile["values"].items()
            if counter.get("value") is not None
        },
        "uncounted": uncounted,
        "source": counted.file or None,
        "tool": profile.get("tool"),
        "dram": {
            "verdict": checked.verdict,
            "words": checked.words,
            "counted": checked.counted,
            "ratio": checked.ratio,
        },
    }


# A measurement as a page's figures and pictures have it.
#
# The record has every sample; a page that repeated them would be as heavy as the record.

_QUARTILES = (0, 0.25, 0.5, 0.75, 1)
_DIGITS = 3  # after the first one of a sample


def measurement_views(measurements: Iterable[Measurement]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return measurements as plain values, by subject and metric."""
    subjects: dict[str, dict[str, dict[str, Any]]] = {}
    for measurement in measurements:
        subjects.setdefault(measurement.subject, {})[measurement.metric] = _measurement_view(measurement)
    return subjects


def _measurement_view(measurement: Measurement) -> dict[str, Any]:
    """Return the measurement without what is empty; `valid` only where it is false.

    `samples` is their number. The kernel has the median of each of its `processes`, others the `spread` of theirs.
    """
    bare = encode_measurement(replace(measurement, evidence=(), processes=(), clocks=()))
    plain = {name: value for name, value in bare.items() if value and name not in ("subject", "metric", "valid")}
    plain |= {"median": measurement.median, "samples": len(measurement.samples)}
    if not measurement.valid:
        plain["valid"] = False
    if measurement.subject != "kernel":
        return plain | {"spread": measurement.spread}
    return plain | {"processes": [median(process) if process else None for process in measurement.processes]}


def drawn_measurement(measurement: Measurement) -> dict[str, Any]:
    """Return what pictures draw of one of the kernel's measurements.

    `processes` holds for each process the number of its samples and, if there are any, a power of ten, and the lowest,
    the quartiles and the highest in units of it; `clocks` the median SM clock of each in MHz. `refused` is the reason
    why the samples cannot be trusted, or why they are missing.
    """
    seconds = measurement.median and float(f"{measurement.median:.6g}")
    drawn: dict[str, Any] = {"metric": measurement.metric, "median": seconds}
    drawn["processes"] = [_band(process) for process in measurement.processes]
    if any(measurement.clocks):
        drawn["clocks"] = [round(median(process) / 1e6) if process else None for process in measurement.clocks]
    if not measurement.valid:
        drawn["refused"] = measurement.reason or "the record gives no reason"
    return drawn


def _band(samples: Sequence[float]) -> list[int]:
    if not samples:
        return [0]
    ordered = sorted(samples)
    quartiles = [_between(ordered, share * (len(ordered) - 1)) for share in _QUARTILES]
    lowest = min((quartile for quartile in quartiles if quartile > 0), default=1.0)  # a damaged record may have a 0
    power = math.floor(math.log10(lowest)) - _DIGITS
    return [len(samples), power, *(round(quartile / 10.0**power) for quartile in quartiles)]


def _between(ordered: Sequence[float], place: float) -> float:
    """Return the value at a place of the ordered ones, which may be between two of them."""
    low, high = ordered[int(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place % 1)


# What was read of the device over a run, in as many columns as a picture has room for.

COLUMNS = 160  # of a picture; a run has thousands of windows
_QUANTITIES = ("sm_clock", "memory_clock", "power", "power_average", "temperature", "utilization")


class Telemetry(TypedDict):
    """The windows of a run in `columns` of several, in the record's order.

    A column names its first and its last case. `quantities` holds for each column the lowest reading, the median of the
    windows' medians and the highest reading; None where nothing was read.
    """

    windows: int
    columns: list[tuple[str, str]]
    quantities: dict[str, list[Span | None]]


def telemetry(record: RunRecord) -> Telemetry:
    """Return the telemetry of all windows but those of launch times."""
    windows = [
        (case.name, evidence)
        for case in record.cases
        for measurement in case.measurements
        if measurement.metric != "launch_time"
        for evidence in measurement.evidence
    ]
    wide = min(len(windows), COLUMNS)  # columns of equal width, give or take one window
    cuts = [len(windows) * column // wide for column in range(wide + 1)] if wide else []
    columns = [windows[start:end] for start, end in pairwise(cuts)]
    quantities = [name for name in _QUANTITIES if any(name in evidence.spans for _, evidence in windows)]
    return {
        "windows": len(windows),
        "columns": [(column[0][0], column[-1][0]) for column in columns],
        "quantities": {
            name: [_joined_span([evidence.spans.get(name) for _, evidence in column]) for column in columns]
            for name in quantities
        },
    }


def _joined_span(spans: Sequence[Span | None]) -> Span | None:
    """Return the lowest reading, the median of the windows' medians and the highest; None where none is known."""
    known = [span for span in spans if span is not None]
    if not known:
        return None
    return min(span[0] for span in known), median(span[1] for span in known), max(span[2] for span in known)


# Conditions of several measurements together.

_WATCHED = ("sm_clock", "power", "power_average", "temperature")


class ConditionsSummary(TypedDict):
    """Conditions of several measurements together: (lowest, median, highest) by quantity, and what slowed the clock."""

    spans: dict[str, tuple[float, float, float]]
    reasons: list[str]
    throttled: int
    windows: int


def conditions(measurements: Iterable[Measurement]) -> ConditionsSummary | None:
    """Return the conditions of the measurements together; None where no device was watched."""
    timed = [measurement for measurement in measurements if measurement.metric != "launch_time"]
    windows = [evidence for measurement in timed for evidence in measurement.evidence]
    if not windows:
        return None
    spans = {name: _joined_span([evidence.spans.get(name) for evidence in windows]) for name in _WATCHED}
    return {
        "spans": {name: span for name, span in spans.items() if span},
        "reasons": sorted({reason for evidence in windows for reason in evidence.reasons}),
        "throttled": sum(measurement.throttled for measurement in timed),
        "windows": len(windows),
    }


# A line small enough for a table: the last runs of a series as the path of an SVG.

_WIDTH, _HEIGHT = 96, 22
_CALM = 0.02  # relative: a series within this much of its middle is drawn as flat as it is


def recent(series: BoardCourse, most: int) -> list[float]:
    """Return the last values of the series that the GPU of the newest one measured: no line goes across GPUs."""
    boards = series.boards.tolist()[::-1]
    same = list(takewhile(lambda board: board == boards[0], boards))
    return series.values[-min(most, len(same)) :].tolist() if same else []


def sparkline(values: Sequence[float]) -> str | None:
    """Return the path through the values from left to right; None with fewer than two of them.

    The range is that of the values, but never less than a few percent: noise does not look like news.
    """
    if len(values) < 2:
        return None
    low, high = float(min(values)), float(max(values))
    middle = (low + high) / 2
    reach = max(high - middle, _CALM * middle) or 1.0
    step = _WIDTH / (len(values) - 1)
    points = [
        (index * step, _HEIGHT / 2 - (float(value) - middle) / reach * (_HEIGHT / 2 - 2))
        for index, value in enumerate(values)
    ]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in _thinned(points))


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points without those that repeat the height of the one before and of the one after."""
    inner = [
        b
        for (a, b), (_, c) in zip(pairwise(points), pairwise(points[1:]), strict=False)
        if not round(a[1], 1) == round(b[1], 1) == round(c[1], 1)
    ]
    return [points[0], *inner, points[-1]]


# Implementations of one operation in several languages, side by side: what the kernel's and the operation's page show.
#
# An operation is a kernel with forms in other languages than its own. Times are those of the newest record that has
# them; machine code is the record's, and lines of source are those of the catalogue at hand.

_CODE = ("registers", "spill_bytes", "shared_bytes", "code_bytes", "compile_seconds")
_TITLES = {CUDA: "CUDA C++", "callable": "Python callable"}


class TimeInterval(TypedDict):
    """A median in seconds with its 95 % interval."""

    seconds: float
    low: float
    high: float


class ImplementationRow(TypedDict):
    """One language at one workload. `behind` is its time over the fastest one's; `reason` is why it has no time.

    `share` of the limit `by`; `lines` are those of its file and of the shared files that it includes.
    """

    language: str
    title: str
    variant: str | None
    case: str | None
    link: str
    origin: str | None
    reason: str | None
    cold: TimeInterval | None
    hot: TimeInterval | None
    behind: float | None
    share: float | None
    by: str | None
    compiler: str | None
    code: dict[str, float | None]
    lines: tuple[int, int] | None


class ImplementationTable(TypedDict):
    """All languages at one workload, the slowest first; `least` are the seconds that the limit allows, if known."""

    label: str
    workload: str
    least: float | None
    rows: list[ImplementationRow]


def operation_page(kernel: str) -> str:
    """Return the name of the page of an operation."""
    return f"{OPERATIONS}/{file_name(kernel)}"


def language_title(name: str) -> str:
    """Return the name of a language in text: `CUDA C++`, `Triton`."""
    return language(name).title if name in names() else _TITLES.get(name, name)


def forms(catalogue: Catalogue | None, kernel: str) -> dict[str | None, KernelSpec]:
    """Return the forms of a kernel by variant, the kernel itself as None: one for each language.

    Empty where the kernel is written in only one language.
    """
    spec = catalogue.kernels.get(kernel) if catalogue else None
    if spec is None:
        return {}
    variants = {name: spec.with_variant(name) for name in spec.variants}
    others = {name: form for name, form in variants.items() if form.written_in != spec.written_in}
    return {None: spec, **others} if others else {}


def operations(context: SiteContext) -> list[str]:
    """Return the kernels that have forms in several languages."""
    return [name for name in (context.catalogue.kernels if context.catalogue else ()) if forms(context.catalogue, name)]


def implementations(context: SiteContext, kernel: str) -> list[ImplementationTable]:
    """Return a table for each workload of the kernel; none where it is written in only one language."""
    by_variant = forms(context.catalogue, kernel)
    of_kernel = context.kernels.get(kernel, [])
    views = {(view.case.variant, view.case.label): view for view in of_kernel if view.case.label in LABELS}
    lines = {variant: source_lines(form.source_file) for variant, form in by_variant.items()}
    return [
        _table(label, by_variant, {variant: views.get((variant, label)) for variant in by_variant}, lines)
        for label in LABELS
        if any(label in form.workloads for form in by_variant.values())
    ]


def _table(
    label: str,
    by_variant: Mapping[str | None, KernelSpec],
    views: Mapping[str | None, CaseView | None],
    lines: Mapping[str | None, tuple[int, int] | None],
) -> ImplementationTable:
    kernel = by_variant[None].name
    rows = [_row(kernel, variant, form, views[variant], lines[variant]) for variant, form in by_variant.items()]
    fastest = min((row["cold"]["seconds"] for row in rows if row["cold"]), default=None)
    for row in rows:
        row["behind"] = row["cold"]["seconds"] / fastest if row["cold"] and fastest else None
    rows.sort(key=lambda row: -(row["behind"] or 0))
    least = (view.number("least_time") for view in views.values() if view)
    axes = next(form.workloads[label] for form in by_variant.values() if label in form.workloads)
    workload = ",".join(f"{axis}={value}" for axis, value in axes.items())
    return {"label": label, "workload": workload, "least": next(filter(None, least), None), "rows": rows}


def _row(
    kernel: str, variant: str | None, form: KernelSpec, view: CaseView | None, lines: tuple[int, int] | None
) -> ImplementationRow:
    code = view.case.code if view else {}
    return {
        "language": form.written_in,
        "title": language_title(form.written_in),
        "variant": variant,
        "case": view.case.name if view else None,
        "link": f"{kernel_page(kernel)}.html",
        "origin": view.origin if view else None,
        "reason": _reason(view),
        "cold": _interval(view, "cold_time"),
        "hot": _interval(view, "hot_time"),
        "behind": None,
        "share": view.number("bound_share") if view else None,
        "by": str(view.row["bound"]) if view and view.row["bound"] else None,
        "compiler": str(code["compiler"]) if code.get("compiler") else None,
        "code": {name: number(code.get(name)) for name in _CODE},
        "lines": lines,
    }


def _reason(view: CaseView | None) -> str | None:
    """Return why a form has no time; None where it has one."""
    if view is None:
        return "no record of this machine has timed it"
    if valid_median(view.case, "cold_time"):
        return None
    if view.stand_in and view.case.status == "ok":
        return f"no kernel was timed: the backend times the {view.stand_in.name}"
    return view.case.reason or str(view.row["invalid"] or "the record gives no reason")


def _interval(view: CaseView | None, metric: str) -> TimeInterval | None:
    seconds = valid_median(view.case, metric) if view else None
    if view is None or seconds is None:
        return None
    low, high = interval_of(view.case, metric, seconds)
    return {"seconds": seconds, "low": low, "high": high}


def widest(tables: Sequence[ImplementationTable]) -> ImplementationTable | None:
    """Return the table in which the slowest language is furthest behind; None where none compares two times."""
    compared = [table for table in tables if sum(row["behind"] is not None for row in table["rows"]) > 1]
    return max(compared, key=lambda table: table["rows"][0]["behind"] or 0, default=None)

"""Cases of a kernel's page as plain values: times, counters, telemetry, and other implementations."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, takewhile
from statistics import median
from typing import Any, TypedDict

import numpy

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
from prism_bench.record.measurement import Evidence, Measurement, Span
from prism_bench.record.run_record import RunRecord, encode_measurement
from prism_bench.report.plain import why_json
from prism_bench.report.site.context import ShownCase, SiteContext
from prism_bench.report.site.page import OPERATIONS, file_name, kernel_page
from prism_bench.spec.kernel import CUDA, KernelSpec
from prism_bench.spec.workload import LABELS

# What a profiler counted of a case: in its own record, else in the newest profile of its machine that has it.


def counted_of(context: SiteContext, shown: ShownCase) -> Counted | None:
    """Return the case as the record of its counters has it; None where nothing was counted."""
    if shown.case.profile.get("values"):
        return Counted(shown.case, shown.reading.record, "")
    found = counters(str(context.places.profiles), context.machine).get(shown.case.name)
    return found if found and found.case.profile.get("values") else None


def counted(found: Counted | None) -> dict[str, Any]:
    """Return the counters with their units, the uncounted ones by reason, and DRAM bytes against those that must move.

    Empty where nothing was counted.
    """
    if found is None:
        return {"counters": {}, "source": None, "dram": None}
    uncounted: dict[str, list[str]] = {}
    for name, one in found.case.profile["values"].items():
        if one.get("value") is None:
            uncounted.setdefault(one.get("reason") or "no reason was recorded", []).append(name)
    checked, profile = check_bytes(found.case, cache_bytes(found.record.machine)), found.case.profile
    return {
        "counters": {
            name: [one["value"], one.get("unit", "")]
            for name, one in profile["values"].items()
            if one.get("value") is not None
        },
        "uncounted": uncounted,
        "source": found.file or None,
        "tool": profile.get("tool"),
        "dram": {
            "verdict": checked.verdict,
            "words": checked.words,
            "counted": checked.counted,
            "ratio": checked.ratio,
        },
    }


@lru_cache(8)
def counters(folder: str, machine: str) -> dict[str, Counted]:
    """Return by case what the records of a machine's profilers have newest."""
    return newest_counted(store.readable(folder, machine))


# A measurement as a page's figures and pictures have it.
#
# The record has every sample; a page that repeated them would be as heavy as the record.

_QUARTILES = (0, 0.25, 0.5, 0.75, 1)
_DIGITS = 3  # after the first one of a sample


def measurement_views(measurements: Iterable[Measurement]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return measurements as plain values, by subject and metric."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for one in measurements:
        found.setdefault(one.subject, {})[one.metric] = _view(one)
    return found


def _view(one: Measurement) -> dict[str, Any]:
    """Return the measurement without what is empty; `valid` only where it is false.

    `samples` is their number. The kernel has the median of each of its `processes`, others the `spread` of theirs.
    """
    bare = encode_measurement(replace(one, evidence=(), processes=(), clocks=()))
    plain = {name: value for name, value in bare.items() if value and name not in ("subject", "metric", "valid")}
    plain |= {"median": one.median, "samples": len(one.samples)}
    if not one.valid:
        plain["valid"] = False
    if one.subject != "kernel":
        return plain | {"spread": one.spread}
    return plain | {"processes": [median(process) if process else None for process in one.processes]}


def drawn_measurement(one: Measurement) -> dict[str, Any]:
    """Return what pictures draw of one of the kernel's measurements.

    `processes` holds for each process the number of its samples and, if there are any, a power of ten, and the lowest,
    the quartiles and the highest in units of it; `clocks` the median SM clock of each in MHz. `refused` is the reason
    why the samples cannot be trusted, or why there are none.
    """
    found: dict[str, Any] = {"metric": one.metric, "median": one.median and float(f"{one.median:.6g}")}
    found["processes"] = [_band(process) for process in one.processes]
    if any(one.clocks):
        found["clocks"] = [round(median(process) / 1e6) if process else None for process in one.clocks]
    if not one.valid:
        found["refused"] = one.reason or "the record gives no reason"
    return found


def _band(samples: Sequence[float]) -> list[int]:
    if not samples:
        return [0]
    quartiles = numpy.quantile(samples, _QUARTILES)
    lowest = min((float(one) for one in quartiles if one > 0), default=1.0)  # a damaged record may have a time of zero
    power = math.floor(math.log10(lowest)) - _DIGITS
    return [len(samples), power, *(round(float(one) / 10.0**power) for one in quartiles)]


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
    windows = list(_windows(record))
    columns = [windows[start:end] for start, end in _cuts(len(windows))]
    quantities = [name for name in _QUANTITIES if any(name in evidence.spans for _, evidence in windows)]
    return {
        "windows": len(windows),
        "columns": [(column[0][0], column[-1][0]) for column in columns],
        "quantities": {
            name: [_band_of([evidence.spans.get(name) for _, evidence in column]) for column in columns]
            for name in quantities
        },
    }


def _windows(record: RunRecord) -> Iterator[tuple[str, Evidence]]:
    for case in record.cases:
        for one in case.measurements:
            if one.metric != "launch_time":
                yield from ((case.name, evidence) for evidence in one.evidence)


def _cuts(count: int) -> list[tuple[int, int]]:
    """Return where each column starts and ends: at most `COLUMNS` of equal width, give or take one."""
    wide = min(count, COLUMNS)
    places = [count * column // wide for column in range(wide + 1)] if wide else []
    return list(zip(places, places[1:], strict=False))


def _band_of(spans: Sequence[Span | None]) -> Span | None:
    """Return the lowest reading, the median of the windows' medians and the highest; None where none is known."""
    known = [span for span in spans if span is not None]
    if not known:
        return None
    return min(span[0] for span in known), median(span[1] for span in known), max(span[2] for span in known)


# A case of a kernel's page as plain values: what its JSON holds, what its pictures draw, and its summaries.

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
        "name": case.name,
        "variant": case.variant,
        "label": case.label,
        "workload": case.workload,
        "status": case.status,
        "reason": case.reason,
        "elsewhere": shown.elsewhere,
        "bytes": case.bytes,
        "flops": case.flops,
        "code": case.code,
        "derived": {name: _plain(shown.row[name]) for name in _DERIVED},
        "peers": peer_rows(case),
        "measurements": measurement_views(case.measurements),
        "conditions": conditions(case.measurements),
        "verification": [_comparison(one) for one in case.verification],
        "counters": counted(seen),
        "why": _why(why),
        "steps": [_step(context, step) for step in context.steps.get(case.name, ())],
    }


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
    }


def conditions(measurements: Iterable[Measurement]) -> ConditionsSummary | None:
    """Return the conditions of the measurements together; None where no device was watched."""
    timed = [one for one in measurements if one.metric != "launch_time"]
    windows = [evidence for one in timed for evidence in one.evidence]
    if not windows:
        return None
    spans = {name: _band_of([one.spans.get(name) for one in windows]) for name in _WATCHED}
    return {
        "spans": {name: span for name, span in spans.items() if span},
        "reasons": sorted({reason for one in windows for reason in one.reasons}),
        "throttled": sum(one.throttled for one in timed),
        "windows": len(windows),
    }


def _plain(value: Any) -> str | float | None:
    if isinstance(value, str):
        return value
    plain = number(value)
    return None if plain is None else float(f"{plain:.6g}")


def _step(context: SiteContext, step: Step) -> dict[str, Any]:
    night = next(n for n, facts in enumerate(context.own) if facts.file == step.record)
    return {
        "metric": step.key.metric,
        "subject": step.key.subject,
        "night": night,
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
    """One language at one workload. `behind` is its time over the fastest one's; `reason` is why it has none.

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

    Empty where the kernel is written in one language alone.
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
    """Return a table for each workload of the kernel; none where it is written in one language alone."""
    own = forms(context.catalogue, kernel)
    shown = {
        (one.case.variant, one.case.label): one
        for one in context.cases.values()
        if one.case.kernel == kernel and one.case.label in LABELS
    }
    lines = {variant: source_lines(form.source_file) for variant, form in own.items()}
    return [
        _table(label, own, {variant: shown.get((variant, label)) for variant in own}, lines)
        for label in LABELS
        if any(label in form.workloads for form in own.values())
    ]


def _table(
    label: str,
    own: Mapping[str | None, KernelSpec],
    found: Mapping[str | None, ShownCase | None],
    lines: Mapping[str | None, tuple[int, int] | None],
) -> ImplementationTable:
    rows = [_row(own[None].name, variant, form, found[variant], lines[variant]) for variant, form in own.items()]
    fastest = min((row["cold"]["seconds"] for row in rows if row["cold"]), default=None)
    for row in rows:
        row["behind"] = row["cold"]["seconds"] / fastest if row["cold"] and fastest else None
    rows.sort(key=lambda row: -(row["behind"] or 0))
    least = (number(one.row["least_time"]) for one in found.values() if one)
    axes = next(form.workloads[label] for form in own.values() if label in form.workloads)
    workload = ",".join(f"{axis}={value}" for axis, value in axes.items())
    return {"label": label, "workload": workload, "least": next(filter(None, least), None), "rows": rows}


def _row(
    kernel: str, variant: str | None, form: KernelSpec, shown: ShownCase | None, lines: tuple[int, int] | None
) -> ImplementationRow:
    code = shown.case.code if shown else {}
    return {
        "language": form.written_in,
        "title": language_title(form.written_in),
        "variant": variant,
        "case": shown.case.name if shown else None,
        "link": f"{kernel_page(kernel)}.html",
        "origin": shown.origin if shown else None,
        "reason": _reason(shown),
        "cold": _time(shown, "cold_time"),
        "hot": _time(shown, "hot_time"),
        "behind": None,
        "share": number(shown.row["bound_share"]) if shown else None,
        "by": str(shown.row["bound"]) if shown and shown.row["bound"] else None,
        "compiler": str(code["compiler"]) if code.get("compiler") else None,
        "code": {name: number(code.get(name)) for name in _CODE},
        "lines": lines,
    }


def _reason(shown: ShownCase | None) -> str | None:
    """Return why a form has no time; None where it has one."""
    if shown is None:
        return "no record of this machine has timed it"
    if valid_median(shown.case, "cold_time"):
        return None
    stand_in = shown.reading.record.stand_in
    if stand_in and shown.case.status == "ok":
        return f"no kernel was timed: the backend times the {stand_in.name}"
    return shown.case.reason or str(shown.row["invalid"] or "the record gives no reason")


def _time(shown: ShownCase | None, metric: str) -> TimeInterval | None:
    seconds = valid_median(shown.case, metric) if shown else None
    if shown is None or seconds is None:
        return None
    low, high = interval_of(shown.case, metric, seconds)
    return {"seconds": seconds, "low": low, "high": high}


def widest(tables: Sequence[ImplementationTable]) -> ImplementationTable | None:
    """Return the table in which the slowest language is furthest behind; None where none compares two times."""
    compared = [table for table in tables if sum(row["behind"] is not None for row in table["rows"]) > 1]
    return max(compared, key=lambda table: table["rows"][0]["behind"] or 0, default=None)

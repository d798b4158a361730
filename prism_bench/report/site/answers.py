"""The first sentence of each page, and what needs attention in the newest run."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

from prism_bench.analysis.bounds.why import Why
from prism_bench.analysis.compare.comparison import RecordComparison
from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.analysis.gate.checks import LAST_PART, WELL, GateCheck, command
from prism_bench.analysis.peers import BEST, HeadlineRow, peers
from prism_bench.analysis.trend.causes import Shift
from prism_bench.measure.plausibility import Limits
from prism_bench.record.run_record import CaseResult
from prism_bench.report.headline import labels_text, peer_text, shown_rows, times_text
from prism_bench.report.site.cases import ImplementationTable, recent, sparkline
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import kernel_page
from prism_bench.spec.metric import ELSEWHERE, MEASURED, StandIn
from prism_bench.units import change_text, count_text, rate_text, share_text, time_text

# The first sentence of each page: its answer, before any table; empty where nothing was measured that it is about.

_TIMED = ("measured", "older", "round", "languages")
_FAR = 0.5  # of its limit: a case that reaches less is far from it


def catalogue_answer(rows: Sequence[Mapping[str, Any]], stand_in: StandIn | None = None) -> str:
    """Return how many implementations have a time, went wrong, miss a budget or are behind a peer.

    The times are those of the `stand_in` where the record has one.
    """
    states = Counter("timed" if row["state"] in _TIMED else row["state"] for row in rows)
    if not states["timed"]:
        return ""
    behind = sum(1 for row in rows if row["peer"] and row["peer"]["ratio"] < 1)
    missed = sum(1 for row in rows if row["budget"] == "missed")
    whose = f" of the {stand_in.name}" if stand_in else ""
    pieces = [f"{states['timed']} of {count_text(len(rows), 'implementation')} have a time{whose}"]
    pieces += [f"{count} {word}" for word, count in states.items() if word not in ("timed", "unmeasured")]
    pieces += [f"{missed} {'misses' if missed == 1 else 'miss'} a budget" if missed else "none misses a budget"]
    pieces += (
        [f"{behind} {'is' if behind == 1 else 'are'} slower than the best peer at the largest size"] if behind else []
    )
    return f"{', '.join(pieces)}."


def budgets_answer(verdicts: Sequence[BudgetVerdict], labels: Mapping[str, str] | None = None) -> str:
    """Return how many budgets are missed and which of them by the most; where none is, how many are met.

    `labels` are those of the cases, which the answer names by kernel and label.
    """
    missed = sorted(
        (judged for judged in verdicts if judged.verdict == "missed"), key=lambda judged: -(judged.use or 0)
    )
    counts = Counter(judged.verdict for judged in verdicts)
    if not verdicts:
        return ""
    if not missed:
        left = ", ".join(f"{count} {word}" for word, count in counts.items())
        return f"No budget is missed: {left}."
    verb = "is" if len(missed) == 1 else "are"
    measured = f", {change_text(missed[0].ratio)} against the promised value" if missed[0].ratio else ""
    named = " ".join(filter(None, [missed[0].case.partition("[")[0], (labels or {}).get(missed[0].case)]))
    worst = f"the furthest by {named}{measured}"
    return f"{len(missed)} of {count_text(len(verdicts), 'budget')} {verb} missed, {worst}."


def roofline_answer(shares: Sequence[float]) -> str:
    """Return what share of their limit half of the cases reach, and how many are far from it."""
    if not shares:
        return ""
    ordered, far = sorted(shares), sum(share < _FAR for share in shares)
    rest = f"{far} {'reaches' if far == 1 else 'reach'} less than {share_text(_FAR)}" if far else "none is far from it"
    cases = count_text(len(shares), "case")
    middle = share_text(ordered[len(ordered) // 2])
    return f"Half of the {cases} that memory or arithmetic limits reach {middle} of their limit or more; {rest}."


def speedup_answer(rows: Sequence[HeadlineRow]) -> str:
    """Return how many cases are slower than their best peer, and which is the furthest behind."""
    best = next((row for row in shown_rows(rows) if row["peers"] == BEST), None)
    if best is None:
        return ""
    worst = best["worst"]
    behind = (
        f"{best['below']} of {count_text(best['cases'], 'case')} at {labels_text(best)} are slower than the best peer"
    )
    named = f"{worst['implementation']} {worst['label']}, {times_text(worst['ratio'])} as fast as {peer_text(worst)}"
    return f"{behind}; the {'furthest behind' if worst['ratio'] < 1 else 'closest'} is {named}."


def compare_answer(newest: tuple[str, RecordComparison | str] | None, cases: int) -> str:
    """Return the verdict on the newest run, of `cases` cases, against the run before, or why no verdict can be given.

    It is only about that pair: the overview also has the cases that only earlier runs have.
    """
    if newest is None:
        return "There is no earlier run of this machine to compare the newest one with."
    name, comparison = newest
    if isinstance(comparison, str):
        return f"The newest run does not compare with {name}: {comparison}."
    names = {"inconclusive": "undecided", "same": "the same"}
    counts = {"slower": 0, **{word: count for word, count in comparison.counts().items() if count}}
    listed = ", ".join(
        f"{count} {names.get(word, word)}" if count else f"none {word} than in that run"
        for word, count in counts.items()
    )
    new = cases - len(comparison.cases)
    listed += f"; {count_text(new, 'case')} {'is' if new == 1 else 'are'} not in it" if new > 0 else ""
    if comparison.control.spoils(comparison.software):
        control = comparison.control
        differ = f"{len(control.changed)} of {count_text(control.cases, 'case')} of identical code differ"
        return f"The comparison of the newest run with {name} cannot be trusted: {differ}."
    return f"The newest run against {name}: {listed}."


def trend_answer(steps: Sequence[Shift], records: int, enough: int) -> str:
    """Return how many steps for the worse and for the better the history has."""
    if records < enough:
        return f"No step can be found in {count_text(records, 'record')}: it takes {enough}."
    worse = [shift for shift in steps if shift.first.worse]
    lasting = sum(not all(step.recovered for step in shift.steps) for shift in worse)
    if not steps:
        return f"No step in {count_text(records, 'record')}."
    recovered = f" and {len(worse) - lasting} that recovered" if len(worse) > lasting else ""
    return f"{count_text(lasting, 'step')} for the worse{recovered}, {len(steps) - len(worse)} for the better."


def tuning_answer(choices: Sequence[Mapping[str, Any]], gain: float | None) -> str:
    """Return how many tuned cases leave their default launch, and what that brings."""
    adopted = sum(choice["adopted"] for choice in choices)
    if not choices:
        return ""
    faster = f", {times_text(gain)} faster{'' if adopted == 1 else ' in the geometric mean'}" if gain else ""
    leave = "leaves its" if adopted == 1 else "leave their"
    return f"{adopted} of {count_text(len(choices), 'tuned case')} {leave} default launch{faster}."


def machine_answer(limits: Limits) -> str:
    """Return what the machine reached: its ceilings and its launch overhead."""
    units = {
        "bandwidth": ("copies", "B/s", ""),
        "read_bandwidth": ("reads", "B/s", ""),
        "fp32": ("computes", "FLOP/s", " in FP32"),
        "tensor": ("multiplies half matrices at", "FLOP/s", ""),
    }
    pieces = [
        f"{verb} {rate_text(limits.ceilings[name], unit)}{where}"
        for name, (verb, unit, where) in units.items()
        if name in limits.ceilings
    ]
    overhead = limits.floors.get("cold_time")
    pieces += [f"launches an empty kernel in {time_text(overhead)}"] if overhead else []
    return f"This run's machine {_listed(pieces)}." if pieces else ""


def kernel_answer(case: CaseResult, why: Why, stand_in: StandIn | None = None) -> str:
    """Return the time of the largest case, its distance to the limit and its best peer.

    The time is that of the `stand_in` where the record has one.
    """
    metric = next(
        (
            name
            for name in {**MEASURED, **ELSEWHERE}
            if name in ("cold_time", "wall_time")
            and (measurement := case.measurement(name))
            and measurement.valid
            and measurement.samples
        ),
        None,
    )
    measured = case.measurement(metric) if metric else None
    if measured is None or measured.median is None:
        return ""
    if stand_in:
        whose = f"the {stand_in.name} on the CPU takes {time_text(measured.median)} at {case.label}"
        return f"No kernel was timed: {whose}."
    pieces = [f"{case.label} takes {time_text(measured.median)}"]
    pieces += [f"{share_text(why.roof.share)} of the {why.roof.limit} limit"] if why.roof else []
    best = next(iter(peers(case)), None)
    if best:
        ratio = best.seconds / measured.median
        pieces.append(f"{times_text(ratio)} as fast as the best peer, {best.name}")
    return f"{', '.join(pieces)}."


def operation_answer(table: ImplementationTable | None, tables: Sequence[ImplementationTable]) -> str:
    """Return how far the slowest language is behind the fastest one; where none compares, which has a time."""
    timed = list(dict.fromkeys(row["title"] for other in tables for row in other["rows"] if row["cold"]))
    if table is None:
        return f"Only {timed[0]} has a time on this machine: nothing is compared." if len(timed) == 1 else ""
    rows = [(row["behind"], row["title"]) for row in table["rows"] if row["behind"]]
    (behind, slowest), (_, fastest) = rows[0], rows[-1]
    return f"At {table['label']} {fastest} is the fastest, and {slowest} takes {times_text(behind)} its time."


def _listed(pieces: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join([", ".join(pieces[:-1]), pieces[-1]]) if len(pieces) > 1 else pieces[0]


# What needs attention in the newest run: concerns of the gate as rows with a small chart, and what became better.

_RECENT = 30  # runs for which a step stays on the first page
_RUNS = 60  # of a chart


class CaseLink(TypedDict):
    """A case and the page that shows it, from the first folder; None without a page."""

    case: str
    link: str | None


class RecentLine(TypedDict):
    """The chart of a metric over the last runs on one GPU: the path of an SVG, and the range that it is scaled to."""

    path: str
    metric: str
    runs: int
    low: float
    high: float


class AttentionRow(TypedDict):
    """A concern, an improvement or a note: `line` is its chart over the last runs, where this GPU measured two.

    `ratio` is the new value over the old one, or over the promise.
    """

    kind: str
    gravity: str
    metric: str | None
    ratio: float | None
    message: str
    cases: list[CaseLink]
    reproduce: str | None
    line: RecentLine | None


def concerns(context: SiteContext) -> list[AttentionRow]:
    """Return a row for each concern of the gate, the gravest first, each with the command that shows it again."""
    return [_row(context, check, command(context.record, check)) for check in context.gate.concerns]


def notes(context: SiteContext) -> list[AttentionRow]:
    """Return a row for each note of the gate that has words."""
    checks = (check for part in context.gate.parts for check in part.checks)
    return [_row(context, check) for check in checks if check.gravity == "note" and check.message]


def _row(context: SiteContext, check: GateCheck, reproduce: str | None = None) -> AttentionRow:
    named = check.cases or tuple(filter(None, [check.case]))
    return {
        "kind": check.answer,
        "gravity": "good" if check.gravity == WELL else check.gravity,
        "metric": check.metric,
        "ratio": check.ratio,
        "message": check.message,
        "cases": _links(context, named),
        "reproduce": reproduce,
        "line": _line(context, named, check.metric),
    }


def better(context: SiteContext) -> list[AttentionRow]:
    """Return what became better lately: steps that still hold, and cases that are faster than when last measured.

    The largest change comes first. Where a comparison cannot be trusted, its verdicts are withheld.
    """
    steps = [
        shift for shift in context.shifts if not shift.first.worse and min(step.age for step in shift.steps) <= _RECENT
    ]
    improved = [
        _improved(context, "step", shift.cases, shift.first.key.metric, (shift.ratio, shift.message)) for shift in steps
    ]
    checks = [check for part in context.gate.parts if part.name == LAST_PART for check in part.checks]
    spoiled = {check.against for check in checks if check.gravity == "untrusted" and not check.case}
    faster = [check for check in checks if check.answer == "faster" and check.against not in spoiled]
    return improved + [_row(context, check) for check in sorted(faster, key=lambda check: check.order)]


def _improved(
    context: SiteContext, kind: str, cases: Iterable[str], metric: str, found: tuple[float, str]
) -> AttentionRow:
    named = tuple(cases)
    return {
        "kind": kind,
        "gravity": "good",
        "metric": metric,
        "ratio": found[0],
        "message": found[1],
        "cases": _links(context, named),
        "reproduce": None,
        "line": _line(context, named, metric),
    }


def _line(context: SiteContext, cases: tuple[str, ...], metric: str | None) -> RecentLine | None:
    """Return the chart of the first case: the kernel's own metric, or its cold time where that has no series."""
    courses = [course for course in context.past.newest(cases[0]) if course.key.subject == "kernel"] if cases else []
    for name in (metric, "cold_time"):
        series = next((course for course in courses if course.key.metric == name), None)
        values = recent(series, _RUNS) if series else []
        path = sparkline(values)
        if series and path:
            return {
                "path": path,
                "metric": series.key.metric,
                "runs": len(values),
                "low": min(values),
                "high": max(values),
            }
    return None


def _links(context: SiteContext, names: Iterable[str]) -> list[CaseLink]:
    return [{"case": name, "link": case_link(context, name)} for name in names]


def case_link(context: SiteContext, case: str | None) -> str | None:
    """Return the page that shows a case, from the first folder; None without a page."""
    shown = context.cases.get(case) if case else None
    case_result = shown.case if shown else context.record.case(case) if case else None
    return f"{kernel_page(case_result.kernel)}.html" if case_result else None


def anchors(rows: Iterable[Mapping[str, object]]) -> dict[str, int]:
    """Return the place of the first row of each kind, counted over all rows: what a pill of that kind links to."""
    places: dict[str, int] = {}
    for place, row in enumerate(rows):
        places.setdefault(str(row["kind"]), place)
    return places


# Coverage of the newest run: what was measured, what was only verified, and what is missing with its reason.

_MOST = 3  # reasons that are named


def coverage(context: SiteContext) -> list[tuple[str, str]]:
    """Return names and values of the run's coverage, in words; a line with nothing to report is left out."""
    return list(_lines(context))


def _lines(context: SiteContext) -> Iterator[tuple[str, str]]:
    reading, record = context.reading, context.record
    kernels = [case for case in reading.cases if case.ceiling is None]
    timed = [
        case
        for case in kernels
        if any(measurement.samples and measurement.subject == "kernel" for measurement in case.measurements)
    ]
    title = f"Timed on the {record.stand_in.name}" if record.stand_in else "Timed"
    yield title, f"{len(timed)} of {count_text(len(kernels), 'case')}{_by_label(timed)}"
    if reading.edges:
        verified = sum(case.status == "ok" for case in reading.edges)
        yield "Edge cases", f"{verified} of {len(reading.edges)} verified"
    ceilings = [case.kernel for case in reading.cases if case.ceiling is not None and case.status == "ok"]
    yield "Ceilings", ", ".join(dict.fromkeys(ceilings)) or "none measured: times have no limit to be held against"
    reasons = Counter(case.reason or "the record gives no reason" for case in kernels if case.status != "ok")
    if reasons:
        yield "Not timed", _reasons(reasons)
    empty = Counter(
        (measurement.reason or "no reason").splitlines()[0]
        for case in kernels
        for measurement in case.measurements
        if measurement.subject.startswith("peer:") and not measurement.samples
    )
    if empty:
        yield "Peers without a time", _reasons(empty)
    older = sum(
        measurement.origin != "newest" for measurement in context.cases.values() if measurement.case.ceiling is None
    )
    if older:
        yield "Not in this run", f"{count_text(older, 'case')}, shown from older records"
    if not record.complete:
        yield "Cut short", "cases that the run did not reach are missing"


def _by_label(cases: list) -> str:
    counts = Counter(case.label for case in cases)
    text = ", ".join(f"{counts[label]} at {label}" for label in sorted(counts))
    return f": {text}" if text else ""


def _reasons(reasons: Counter[str]) -> str:
    """Return the number of cells and their most frequent reasons, each once."""
    named = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(_MOST))
    left = len(reasons) - _MOST
    rest = f"; and {count_text(left, 'other reason')}" if left > 0 else ""
    return f"{sum(reasons.values())}, because: {named}{rest}"

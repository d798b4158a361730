"""Memory in the terminal, as plain values, and as a site page."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.compare.comparison import ComparedCase
from prism_bench.errors import ResultsError
from prism_bench.extensions.memory import PoolState, Trace
from prism_bench.extensions.memory.replay import BASE, Contest
from prism_bench.extensions.memory.trace import Tracked
from prism_bench.io.documents import json_of
from prism_bench.record.schema import JsonTable
from prism_bench.report.headline import times_text
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.report.terminal.comparison import STYLES
from prism_bench.units import bytes_text, change_range_text, change_text, count_text, ratio_text, share_text, time_text

# Memory in the terminal and as plain values: a tracker's counts, a pool's plan, and allocators side by side.

_ADVICE = {
    "high": "most sizes come again: keeping blocks pays",
    "medium": "some sizes come again: keeping those blocks pays",
    "low": "few sizes come again: keeping blocks brings little",
}
_TOP = 5


def tracked_view(name: str, tracked: Tracked, plan: PoolState | None = None) -> RenderableType:
    """Return a tracker's counts, and the counts that the size-class pool would have."""
    title = Text.assemble(
        (name, "bold"), ("  synthetic: no program asked for this" if tracked.synthetic else "", "yellow")
    )
    lines = [
        f"{tracked.allocations:,} allocations of {tracked.unique:,} sizes, {tracked.repeated:,} of a size seen before: "
        f"reuse potential {tracked.reuse_potential:.2f} %, so {_ADVICE[tracked.advice]}; "
        f"{tracked.class_reuse:.2f} % where sizes are rounded to powers of two",
        f"{bytes_text(tracked.allocated_bytes)} in all, {bytes_text(tracked.peak)} in use at most, "
        f"{bytes_text(tracked.current)} at the end; {tracked.ignored:,} smaller ones left out",
        f"fragmentation: internal {share_text(tracked.internal)}, external {share_text(tracked.external)} at its worst "
        f"(the published estimate, {tracked.unique_percent:.2f} %, is a hundred less the reuse potential)",
        "sizes requested most: " + ", ".join(f"{bytes_text(size)} x {times}" for size, times in tracked.top[:_TOP]),
    ]
    lines += [f"the size-class pool, by its books: {plan}"] if plan else []
    return Group(title, *(Text(f"  {line}") for line in lines))


def contest_view(contest: Contest) -> RenderableType:
    """Return the output of `memory` for a Rich console."""
    parts = [_traces(contest), Text(), _programs(contest)]
    parts += [Text(f"  {name}: {reason}", style="yellow") for name, reason in contest.missing.items()]
    default = contest.default
    advice = "CuPy's stays the default" if default == BASE else f"{default} is what these programs should use"
    parts += [Text(f"the size-class pool is {_VERDICTS[contest.verdict('size_class')]}; {advice}", style="bold")]
    return Group(*parts)


_VERDICTS = {
    "same": "as fast as CuPy's own",
    "faster": "faster than CuPy's own",
    "slower": "slower than CuPy's own",
    "mixed": "faster than CuPy's own for some programs and slower for others",
    "inconclusive": "not distinguishable from CuPy's own by these programs",
    "unmeasured": "not measured against CuPy's own",
}


def _grid(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place > 1 else "left", overflow="fold")
    return table


def _traces(contest: Contest) -> Table:
    table = _grid(
        "trace",
        "allocator",
        "allocation",
        "99 %",
        "release",
        "asked",
        "held",
        "device",
        "over asked",
        "internal",
        "external",
        f"against {BASE}",
    )
    for row in contest.traces:
        get = row.values.get
        table.add_row(
            row.trace,
            row.allocator,
            time_text(row.allocation),
            time_text(row.tail),
            time_text(row.release),
            *(bytes_text(get(name)) for name in ("peak_asked", "peak_held", "peak_device")),
            ratio_text(get("overhead")),
            share_text(get("internal_fragmentation")),
            share_text(get("external_fragmentation")),
            _ratio(row.compared),
        )
    return table


def _programs(contest: Contest) -> Table:
    table = _grid("program", "allocator", "metric", BASE, "with it", "ratio and interval", "verdict")
    for program in contest.programs:
        case = program.compared
        times = (time_text(seconds) for seconds in case.seconds)
        verdict = Text(case.verdict, style=STYLES[case.verdict])
        reason = "; ".join(filter(None, (case.machine_words, case.reason)))
        table.add_row(
            Text(case.case.partition("[")[0]),
            program.allocator,
            case.metric.replace("_", " "),
            *times,
            _ratio(case),
            verdict.append(f": {reason}" if reason else "", style="dim"),
        )
    return table


def _ratio(compared: ComparedCase | None) -> str:
    if compared is None or compared.judgement is None:
        return "-"
    low, high = compared.judgement.estimate.interval()
    text = change_text(compared.judgement.estimate.ratio)
    return f"{text} ({change_range_text(low, high)})" if high < float("inf") else text


def contest_json(contest: Contest) -> dict[str, Any]:
    """Return the comparison as plain JSON values; unmeasured values are null."""
    return {
        "base": BASE,
        "default": contest.default,
        "verdicts": {row.allocator: contest.verdict(row.allocator) for row in contest.traces if row.allocator != BASE},
        "missing": dict(contest.missing),
        "traces": [
            {
                "trace": row.trace,
                "allocator": row.allocator,
                "allocation_seconds": row.allocation,
                "release_seconds": row.release,
                "allocation_p99_seconds": row.tail,
                **row.values,
                "against_base": _plain(row.compared),
            }
            for row in contest.traces
        ],
        "programs": [
            {"allocator": program.allocator, "case": program.compared.case, **(_plain(program.compared) or {})}
            for program in contest.programs
        ],
    }


def _plain(compared: ComparedCase | None) -> dict[str, Any] | None:
    if compared is None:
        return None
    plain: dict[str, Any] = {
        "metric": compared.metric,
        "verdict": compared.verdict,
        "reason": compared.reason,
        "seconds": list(compared.seconds),
    }
    if compared.judgement:
        low, high = compared.judgement.estimate.interval()
        bounded = high < float("inf")
        plain |= {"ratio": compared.judgement.estimate.ratio, "interval": [low, high] if bounded else None}
    return plain


def traces_json(counted: Sequence[tuple[Trace, Tracked, PoolState]]) -> dict[str, Any]:
    """Return traces by name: the tracker's counts as they are published, and the pool's books."""
    return {
        trace.name: {"facts": trace.facts, "tracked": tracked.plain(), "size_class": plan.plain()}
        for trace, tracked, plan in counted
    }


# Site page of device memory: allocators compared, and pipelines under them.

_FILES = {"contest": "memory.json", "pipelines": "pipelines.json"}
_PARTS = {"contest": ("traces", "programs", "verdicts"), "pipelines": ("pipelines", "lstm_phases")}

_PICTURES = (
    ("allocation", "Median time of an allocation", "allocation_seconds", "s", time_text),
    ("held", "Memory held at the peak", "peak_held", "B", bytes_text),
)
_NAMES = {"none": "no pool at all"}  # an allocator's name that reads as a count


def page(context: SiteContext) -> Page:
    """Return the page of memory: allocators compared, and pipelines."""
    problems: list[str] = []
    tables = {name: _read(context.places.memory / file, _PARTS[name], problems) for name, file in _FILES.items()}
    contest = tables["contest"]
    traces, base = (contest["traces"], contest.get("base")) if contest else ((), None)
    pictures = [
        {"name": name, "title": title, "bars": {"unit": unit, "bars": _bars(traces, key, text, base)}}
        for name, title, key, unit, text in _PICTURES
        if any(trace.get(key) for trace in traces)
    ]
    answer = _answer(traces, contest["programs"], str(base)) if contest else None
    view = {"night": context.record.created, "answer": answer, **tables, "problems": problems}
    empty = not (any(tables.values()) or problems)
    return Page("memory", "Memory", view, {"pictures": pictures}, scripts=("plot.js", "pictures.js"), empty=empty)


def _answer(traces: Sequence[JsonTable], programs: Sequence[JsonTable], base: str) -> str:
    """Return a sentence or two on times of allocations and programs compared with the `base`."""
    others = list(dict.fromkeys(trace["allocator"] for trace in traces if trace["allocator"] != base))
    verdicts = {name: _verdicts([trace for trace in traces if trace["allocator"] == name]) for name in others}
    named = [f"{_NAMES.get(name, name)} {text}" for name, text in verdicts.items()]
    times = f"An allocation against {base}: {'; '.join(named)}." if named else f"Only {base} replayed the traces."
    counts = Counter(program["verdict"] for program in programs)
    whole = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return times + (f" Whole programs against it: {whole}." if whole else "")


def _verdicts(traces: Sequence[JsonTable]) -> str:
    """Return the verdicts on an allocator by their number of traces, each with its range of ratios."""
    judged = [trace["against_base"] for trace in traces if trace.get("against_base")]
    parts = []
    for verdict, count in Counter(case["verdict"] for case in judged).most_common():
        ratios = [case["ratio"] for case in judged if case["verdict"] == verdict and case.get("ratio")]
        ends = dict.fromkeys(times_text(end(ratios)) for end in (min, max)) if ratios else {}
        reach = f" ({' to '.join(ends)})" if ends else ""
        parts.append(f"{verdict} on {count} of {count_text(len(traces), 'trace')}{reach}")
    return ", ".join(parts) or "not compared"


def _bars(
    traces: Sequence[JsonTable], key: str, text: Callable[[float | None], str], base: str | None
) -> list[dict[str, object]]:
    """Return a bar for each allocator on each trace; the bars of the `base` have another ink."""
    return [
        {
            "name": f"{trace['trace']}, {trace['allocator']}",
            "start": 0.0,
            "end": trace[key],
            "words": text(trace[key]),
            "ink": "second" if trace["allocator"] == base else "accent",
        }
        for trace in traces
        if trace.get(key)
    ]


def _read(path: Path, parts: Sequence[str], problems: list[str]) -> JsonTable | None:
    """Return the JSON output of a command; None without output, or with a new problem if it is something else."""
    try:
        plain = json_of(path, "readable")
    except FileNotFoundError:
        return None
    except ResultsError as error:
        problems.append(str(error).replace(str(path), path.name))
        return None
    table: JsonTable = plain if isinstance(plain, dict) else {}
    missing = [name for name in parts if name not in table]
    if missing:
        problems.append(f"{path.name}: it has no {', '.join(missing)}")
    return None if missing else table

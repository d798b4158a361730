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
from prism_bench.record.run_record import JsonTable
from prism_bench.report.headline import times_text
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.report.terminal.comparison import STYLES
from prism_bench.units import bytes_text, count_text, ratio_text, share_text, time_text

# Memory in the terminal and as plain values: a tracker's counts, a pool's plan, and allocators side by side.

_ADVICE = {
    "high": "most sizes come again: keeping blocks pays",
    "medium": "some sizes come again: keeping those blocks pays",
    "low": "few sizes come again: keeping blocks brings little",
}
_TOP = 5


def tracked_view(name: str, found: Tracked, plan: PoolState | None = None) -> RenderableType:
    """Return a tracker's counts, and the counts that the size-class pool would have."""
    title = Text.assemble(
        (name, "bold"), ("  synthetic: no program asked for this" if found.synthetic else "", "yellow")
    )
    lines = [
        f"{found.allocations:,} allocations of {found.unique:,} sizes, {found.repeated:,} of a size seen before: "
        f"reuse potential {found.reuse_potential:.2f} %, so {_ADVICE[found.advice]}; "
        f"{found.class_reuse:.2f} % where sizes are rounded to powers of two",
        f"{bytes_text(found.allocated_bytes)} in all, {bytes_text(found.peak)} in use at most, "
        f"{bytes_text(found.current)} at the end; {found.ignored:,} smaller ones left out",
        f"fragmentation: internal {share_text(found.internal)}, external {share_text(found.external)} at its worst "
        f"(the published estimate, {found.unique_percent:.2f} %, is a hundred less the reuse potential)",
        "sizes requested most: " + ", ".join(f"{bytes_text(size)} x {times}" for size, times in found.top[:_TOP]),
    ]
    lines += [f"the size-class pool, by its books: {plan}"] if plan else []
    return Group(title, *(Text(f"  {line}") for line in lines))


def contest_view(found: Contest) -> RenderableType:
    """Return what `memory` prints of a comparison, to be handed to a Rich console."""
    parts = [_traces(found), Text(), _programs(found)]
    parts += [Text(f"  {name}: {reason}", style="yellow") for name, reason in found.missing.items()]
    parts += [Text(_conclusion(found), style="bold")]
    return Group(*parts)


_WORDS = {
    "same": "as fast as CuPy's own",
    "faster": "faster than CuPy's own",
    "slower": "slower than CuPy's own",
    "mixed": "faster than CuPy's own for some programs and slower for others",
    "inconclusive": "not distinguishable from CuPy's own by these programs",
    "unmeasured": "not measured against CuPy's own",
}


def _conclusion(found: Contest) -> str:
    default = (
        "CuPy's stays the default" if found.default == BASE else f"{found.default} is what these programs should use"
    )
    return f"the size-class pool is {_WORDS[found.verdict('size_class')]}; {default}"


def _grid(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place > 1 else "left", overflow="fold")
    return table


def _traces(found: Contest) -> Table:
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
    for row in found.traces:
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


def _programs(found: Contest) -> Table:
    table = _grid("program", "allocator", "metric", BASE, "with it", "ratio and interval", "verdict")
    for program in found.programs:
        case = program.compared
        times = (time_text(seconds) for seconds in case.seconds)
        verdict = Text(case.verdict, style=STYLES[case.verdict])
        words = "; ".join(filter(None, (case.machine_words, case.reason)))
        reason = f": {words}" if words else ""
        table.add_row(
            Text(case.case.partition("[")[0]),
            program.allocator,
            case.metric.replace("_", " "),
            *times,
            _ratio(case),
            verdict.append(reason, style="dim"),
        )
    return table


def _ratio(compared: ComparedCase | None) -> str:
    if compared is None or compared.judgement is None:
        return "-"
    low, high = compared.judgement.estimate.interval()
    text = f"{compared.judgement.estimate.ratio:.3f}x"
    return f"{text} ({low:.3f} to {high:.3f})" if high < float("inf") else text


def contest_json(found: Contest) -> dict[str, Any]:
    """Return the same as plain JSON values; what was not measured is null."""
    return {
        "base": BASE,
        "default": found.default,
        "verdicts": {row.allocator: found.verdict(row.allocator) for row in found.traces if row.allocator != BASE},
        "missing": dict(found.missing),
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
            for row in found.traces
        ],
        "programs": [
            {"allocator": program.allocator, "case": program.compared.case, **(_plain(program.compared) or {})}
            for program in found.programs
        ],
    }


def _plain(compared: ComparedCase | None) -> dict[str, Any] | None:
    if compared is None:
        return None
    found: dict[str, Any] = {
        "metric": compared.metric,
        "verdict": compared.verdict,
        "reason": compared.reason,
        "seconds": list(compared.seconds),
    }
    if compared.judgement:
        low, high = compared.judgement.estimate.interval()
        bounded = high < float("inf")
        found |= {"ratio": compared.judgement.estimate.ratio, "interval": [low, high] if bounded else None}
    return found


def traces_json(found: Sequence[tuple[Trace, Tracked, PoolState]]) -> dict[str, Any]:
    """Return traces by name: the tracker's counts as they are published, and the pool's books."""
    return {
        trace.name: {"facts": trace.facts, "tracked": tracked.plain(), "size_class": plan.plain()}
        for trace, tracked, plan in found
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
    found = {name: _read(context.places.memory / file, _PARTS[name], problems) for name, file in _FILES.items()}
    pictures = _pictures(found["contest"]["traces"], found["contest"].get("base")) if found["contest"] else []
    contest = found["contest"]
    answer = _answer(contest["traces"], contest["programs"], str(contest.get("base"))) if contest else None
    view = {"night": context.record.created, "answer": answer, **found, "problems": problems}
    return Page("memory", "Memory", view, {"pictures": pictures}, scripts=("plot.js", "pictures.js"))


def _answer(traces: Sequence[JsonTable], programs: Sequence[JsonTable], base: str) -> str:
    """Return in a sentence or two how long an allocation takes against the `base`, and what whole programs gain."""
    others = list(dict.fromkeys(trace["allocator"] for trace in traces if trace["allocator"] != base))
    own = {name: _verdicts([trace for trace in traces if trace["allocator"] == name]) for name in others}
    named = [f"{_NAMES.get(name, name)} {verdicts}" for name, verdicts in own.items()]
    times = f"An allocation against {base}: {'; '.join(named)}." if named else f"Only {base} replayed the traces."
    counts = Counter(program["verdict"] for program in programs)
    whole = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return times + (f" Whole programs against it: {whole}." if whole else "")


def _verdicts(own: Sequence[JsonTable]) -> str:
    """Return the verdicts on one allocator by their number of traces, each with its range of ratios."""
    judged = [one["against_base"] for one in own if one.get("against_base")]
    words = []
    for verdict, count in Counter(one["verdict"] for one in judged).most_common():
        ratios = [one["ratio"] for one in judged if one["verdict"] == verdict and one.get("ratio")]
        ends = dict.fromkeys(times_text(end(ratios)) for end in (min, max)) if ratios else {}
        reach = f" ({' to '.join(ends)})" if ends else ""
        words.append(f"{verdict} on {count} of {count_text(len(own), 'trace')}{reach}")
    return ", ".join(words) or "not compared"


def _pictures(traces: Sequence[JsonTable], base: str | None) -> list[dict[str, object]]:
    """Return the pictures of the allocators: what an allocation takes, and what is held at the peak of each trace."""
    return [
        {"name": name, "title": title, "bars": {"unit": unit, "bars": _bars(traces, key, words, base)}}
        for name, title, key, unit, words in _PICTURES
        if any(trace.get(key) for trace in traces)
    ]


def _bars(
    traces: Sequence[JsonTable], key: str, words: Callable[[float | None], str], base: str | None
) -> list[dict[str, object]]:
    """Return a bar for each allocator on each trace; those of the `base` in another ink."""
    return [
        {
            "name": f"{trace['trace']}, {trace['allocator']}",
            "start": 0.0,
            "end": trace[key],
            "words": words(trace[key]),
            "ink": "second" if trace["allocator"] == base else "accent",
        }
        for trace in traces
        if trace.get(key)
    ]


def _read(path: Path, parts: Sequence[str], problems: list[str]) -> JsonTable | None:
    """Return what a command printed as JSON; None if there is no output, or if it is something else (a problem)."""
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

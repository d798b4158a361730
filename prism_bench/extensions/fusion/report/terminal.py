"""The ledger of fusion in the terminal: a table for each chain and workload, then the plan's table next to ours."""

from collections.abc import Callable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.extensions.fusion.benefit import ChainAnswer, ChainLedger, ComparedRow, Sources, StageRow
from prism_bench.extensions.fusion.benefit.figure import Figure
from prism_bench.extensions.fusion.benefit.published import STAGES, pass_rule, source
from prism_bench.extensions.fusion.benefit.saving import CLOCKS, Speedup
from prism_bench.extensions.fusion.report.words import (
    CACHED,
    LEGEND,
    Footnotes,
    heading,
    percent,
    quantity_text,
    ratio_words,
    signed,
    verdict,
)
from prism_bench.report.cells import GAP, times_text
from prism_bench.units import bytes_text, energy_text, time_text

_STYLES = {"passed": "green", "met": "green", "failed": "bold red", "missed": "bold red"}
_TIMES = ("cold_time", "hot_time", "launch_time", "issued", "gaps")


def fusion_view(ledgers: Sequence[ChainLedger], table: Sequence[ComparedRow], sources: Sources) -> RenderableType:
    """Return what `fusion` prints on a Rich console."""
    notes = Footnotes()
    parts: list[RenderableType] = [Text(heading(sources), style="dim"), Text(LEGEND, style="dim"), Text()]
    parts += [part for one in ledgers for part in _chain(one, notes)]
    parts += [_plan(table, notes)] if table else []
    parts += [Text(f"  [{number}] {reason}", style="dim") for number, reason in notes.numbered()]
    return Group(*parts)


def _chain(ledger: ChainLedger, notes: Footnotes) -> Iterator[RenderableType]:
    yield Text.assemble((f"{ledger.chain} {ledger.label}", "bold"), f"  {ledger.workload}")
    yield _costs(ledger, notes)
    yield Text(f"  library: {_library(ledger.library, notes)}")
    fused = [row for row in ledger.rows if row.speedups]
    if fused:
        yield _gains(fused, notes)
        yield _savings(fused, notes)
    if ledger.answers:
        yield _answers(ledger.answers)
    yield from (Text(f"  note: {note}", style="dim") for row in ledger.rows for note in row.notes)
    yield Text()


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position else "left", overflow="fold")
    return table


def _costs(ledger: ChainLedger, notes: Footnotes) -> Table:
    """Return what each stage costs."""
    table = _table("  stage", "launches", "bytes", "emulated", "counted", "temporaries", "workspace", "cold", "hot",
                   "host", "issued", "gaps", "energy", "error")  # fmt: skip
    for row in ledger.rows:
        table.add_row(f"  {row.stage}", str(row.plan.launches), *_bytes(row, notes), *_measured(row, notes))
    return table


def _bytes(row: StageRow, notes: Footnotes) -> tuple[str, ...]:
    plan = row.plan
    temporaries = f"{len(plan.temporaries)} ({bytes_text(plan.temporary_bytes)})" if plan.temporaries else "none"
    counted = (_cell(row.figures[name], bytes_text, notes) for name in ("emulated", "dram_bytes"))
    return (bytes_text(plan.bytes), *counted, temporaries, bytes_text(plan.workspace_bytes))


def _measured(row: StageRow, notes: Footnotes) -> tuple[str, ...]:
    times = (_cell(row.figures[name], time_text, notes) for name in _TIMES)
    error = _cell(row.figures["error"], lambda value: f"{value:.1e}", notes)
    return (*times, _cell(row.figures["energy"], energy_text, notes), error)


def _cell(figure: Figure, words: Callable[[float], str], notes: Footnotes) -> str:
    return notes.mark(figure.reason) if figure.value is None else words(figure.value)


def _library(figure: Figure, notes: Footnotes) -> str:
    """Return `torch 161 us, cold`."""
    if figure.value is None or figure.source is None:
        return notes.mark(figure.reason)
    return f"{figure.source.split()[0].removeprefix('peer:')} {time_text(figure.value)}, cold"


def _gains(rows: Sequence[StageRow], notes: Footnotes) -> Table:
    """Return how many times faster each fused stage is, and whether that is what the plan promised."""
    rule = pass_rule()
    rule_text = f"error<{rule.error_below:g}, {rule.speedup_at_least:g}x cold"
    table = _table("  times faster", "cold", "hot (graph)", "issued", "library", rule_text)
    for row in rows:
        ratios = (_ratio(row.speedups[clock], notes) for clock in (*CLOCKS, "library"))
        table.add_row(f"  {row.stage}", *ratios, _judged(verdict(row.passed, "failed")))
    return table


def _savings(rows: Sequence[StageRow], notes: Footnotes) -> Table:
    """Return where the saved time went, and what the bytes of the chain need at least."""
    table = _table("  saved", "cold", "by launches", "by traffic", "unexplained", "bytes alone", "of cold")
    for row in rows:
        table.add_row(f"  {row.stage}", *_parts(row, notes), *_least_time(row, notes))
    return table


def _answers(answers: Sequence[ChainAnswer]) -> Table:
    """Return how long a host waits for one evaluation, and what one of many costs it."""
    table = _table("  from request to answer", "form", "launches", "answer", "quartiles", "p99", "each of many",
                   "against the graph", "error")  # fmt: skip
    for one in answers:
        ratio = times_text(one.against_graph) if one.against_graph else GAP
        error = GAP if one.error is None else f"{one.error:.1e}"
        each = time_text(one.each.median)
        table.add_row(f"  {one.stage}", one.form, str(one.launches), *_quartiles(one), each, ratio, error)
    return table


def _quartiles(answer: ChainAnswer) -> tuple[str, str, str]:
    spread = answer.answer
    return time_text(spread.median), f"{time_text(spread.low)} to {time_text(spread.high)}", time_text(spread.p99)


def _ratio(speedup: Speedup, notes: Footnotes) -> str:
    return ratio_words(speedup) + (f" {notes.mark(speedup.reason)}" if speedup.reason and speedup.ratio else "")


def _parts(row: StageRow, notes: Footnotes) -> tuple[str, ...]:
    found = row.savings.get("cold_time")
    if found is None:
        return ("-",) * 4
    seconds, launches, traffic, rest = map(signed, (found.seconds, found.launches, found.traffic, found.rest))
    mark = f" {notes.mark(CACHED)}" if found.cached else ""
    return seconds, launches, f"{traffic}{mark} ({found.basis})", rest


def _least_time(row: StageRow, notes: Footnotes) -> tuple[str, str]:
    least, cold = row.value("floor"), row.value("cold_time")
    share = percent(least / cold) if least and cold else "-"
    return _cell(row.figures["floor"], time_text, notes), share


def _judged(word: str) -> Text:
    return Text(word, style=_STYLES.get(word, "yellow"))


def _plan(table: Sequence[ComparedRow], notes: Footnotes) -> Group:
    """Return baseline, Partial, Full, Target: published, and ours under it."""
    grid = _table("  the plan's table", *STAGES, "target", "verdict")
    for one in table:
        row, words = one.published, quantity_text(one.published.quantity)
        bound = f"{'>' if row.at_least else '<'} {words(row.target)}"
        quoted = (words(row.stages[stage]) for stage in STAGES)
        grid.add_row(f"  {row.name}, published", *quoted, bound, "", style="dim")
        for ours in one.ours:
            cells = (_cell(ours.stages[stage], words, notes) for stage in STAGES)
            grid.add_row(f"    ours, {ours.what}", *cells, "", _judged(verdict(ours.met, "missed")))
    return Group(grid, Text(f"  published: {source()}; ours: cold times and counters of these records", style="dim"))

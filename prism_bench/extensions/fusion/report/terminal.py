"""The ledgers of fusion in the terminal and as JSON."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypedDict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.extensions.fusion.benefit import ChainAnswer, ChainLedger, ComparedRow, Sources, StageRow
from prism_bench.extensions.fusion.benefit.saving import CLOCKS, STAGES, Figure, Speedup, pass_rule, source
from prism_bench.extensions.fusion.overlap import OverlapLedger, OverlapRow
from prism_bench.extensions.fusion.selection import PrecisionChoice, Tried
from prism_bench.report.headline import times_text
from prism_bench.report.plain import machine_name
from prism_bench.report.view import GAP
from prism_bench.units import bytes_text, energy_text, rate_text, share_text, time_text

# The ledger of fusion in words: ratios with their interval, parts with their sign, reasons as numbered notes.

LEGEND = (
    "cold: one evaluation, caches cleared, the host's launches hidden; hot: its launches replayed in a CUDA graph; "
    "host: what the host spends to launch them; issued: the longer of host and hot, as separate launches go; gaps: "
    "the device waits for the host; bytes: compulsory ones of every launch added up; temporaries: handed on from "
    "launch to launch; workspace: a launch's own; unexplained: saved by "
    "neither fewer launches nor fewer bytes, such as by faster arithmetic or shorter waits of dependent launches"
)
_CACHED = "the bytes that differ fit in the last cache, where they cost less than at the copy ceiling"


def heading(sources: Sources) -> str:
    """Return where the figures are from, and what a launch and a byte cost there."""
    record, prices = sources.record, sources.prices()
    if record is None:
        return f"no times: {sources.missing}"
    launch, rate = time_text(prices.launch), rate_text(prices.bandwidth, "B/s")
    cut = "" if record.complete else "; the run was cut short"
    return (
        f"{machine_name(record)}, {record.created}: one more launch costs {launch} at least, the copy ceiling is "
        f"{rate}{cut}"
    )


class Footnotes:
    """Reasons in the order in which they were met, each printed once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, reason: str | None) -> str:
        """Return the mark to print instead of the missing figure."""
        return f"[{self._numbers.setdefault(reason, len(self._numbers) + 1)}]" if reason else GAP

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Yield every number with its reason."""
        return ((number, reason) for reason, number in self._numbers.items())


def ratio_words(speedup: Speedup) -> str:
    """Return `2.82x (2.79 to 2.85)`; a dash where there is no ratio."""
    if speedup.ratio is None:
        return GAP
    interval = f" ({speedup.low:.2f} to {speedup.high:.2f})" if speedup.low is not None else ""
    return times_text(speedup.ratio) + interval


def signed(seconds: float | None) -> str:
    """Return `1.45 us`, `-2.10 us`."""
    if seconds is None:
        return GAP
    return f"-{time_text(-seconds)}" if seconds < 0 else time_text(seconds)


def percent(share: float) -> str:
    """Return the share in words, `<0.1 %` where it is nearly nothing."""
    return share_text(share) if share >= 0.0005 else "<0.1 %"


def verdict(kept: bool | None, bad: str) -> str:
    """Return `passed` and `failed`, `met` and `missed`; `unmeasured` where it is not decided."""
    good = {"failed": "passed", "missed": "met"}[bad]
    return "unmeasured" if kept is None else good if kept else bad


def quantity_text(quantity: str) -> Callable[[float], str]:
    """Return how a figure of the plan's table is written."""
    return {"time": time_text, "launches": lambda count: f"{count:.0f}"}.get(quantity, share_text)


# The ledger of fusion in the terminal: a table for each chain and workload, then the plan's table next to ours.

_STYLES = {"passed": "green", "met": "green", "failed": "bold red", "missed": "bold red"}
_TIMES = ("cold_time", "hot_time", "launch_time", "issued", "gaps")


def fusion_view(ledgers: Sequence[ChainLedger], table: Sequence[ComparedRow], sources: Sources) -> RenderableType:
    """Return what `fusion` prints on a Rich console."""
    notes = Footnotes()
    parts: list[RenderableType] = [Text(heading(sources), style="dim"), Text(LEGEND, style="dim"), Text()]
    parts += [part for ledger in ledgers for part in _chain(ledger, notes)]
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
    table = _table(
        "  stage",
        "launches",
        "bytes",
        "emulated",
        "counted",
        "temporaries",
        "workspace",
        "cold",
        "hot",
        "host",
        "issued",
        "gaps",
        "energy",
        "error",
    )
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


def _cell(figure: Figure, text: Callable[[float], str], notes: Footnotes) -> str:
    return notes.mark(figure.reason) if figure.value is None else text(figure.value)


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
    table = _table(
        "  from request to answer",
        "form",
        "launches",
        "answer",
        "quartiles",
        "p99",
        "each of many",
        "against the graph",
        "error",
    )
    for answer in answers:
        ratio = times_text(answer.against_graph) if answer.against_graph else GAP
        error = GAP if answer.error is None else f"{answer.error:.1e}"
        each = time_text(answer.each.median)
        table.add_row(f"  {answer.stage}", answer.form, str(answer.launches), *_quartiles(answer), each, ratio, error)
    return table


def _quartiles(answer: ChainAnswer) -> tuple[str, str, str]:
    spread = answer.answer
    return time_text(spread.median), f"{time_text(spread.low)} to {time_text(spread.high)}", time_text(spread.p99)


def _ratio(speedup: Speedup, notes: Footnotes) -> str:
    return ratio_words(speedup) + (f" {notes.mark(speedup.reason)}" if speedup.reason and speedup.ratio else "")


def _parts(row: StageRow, notes: Footnotes) -> tuple[str, ...]:
    saving = row.savings.get("cold_time")
    if saving is None:
        return ("-",) * 4
    seconds, launches, traffic, rest = map(signed, (saving.seconds, saving.launches, saving.traffic, saving.rest))
    mark = f" {notes.mark(_CACHED)}" if saving.cached else ""
    return seconds, launches, f"{traffic}{mark} ({saving.basis})", rest


def _least_time(row: StageRow, notes: Footnotes) -> tuple[str, str]:
    least, cold = row.value("floor"), row.value("cold_time")
    share = percent(least / cold) if least and cold else "-"
    return _cell(row.figures["floor"], time_text, notes), share


def _judged(word: str) -> Text:
    return Text(word, style=_STYLES.get(word, "yellow"))


def _plan(table: Sequence[ComparedRow], notes: Footnotes) -> Group:
    """Return baseline, Partial, Full, Target: published, and ours under it."""
    grid = _table("  the plan's table", *STAGES, "target", "verdict")
    for compared in table:
        row, quantity = compared.published, quantity_text(compared.published.quantity)
        bound = f"{'>' if row.at_least else '<'} {quantity(row.target)}"
        quoted = (quantity(row.stages[stage]) for stage in STAGES)
        grid.add_row(f"  {row.name}, published", *quoted, bound, "", style="dim")
        for ours in compared.ours:
            cells = (_cell(ours.stages[stage], quantity, notes) for stage in STAGES)
            grid.add_row(f"    ours, {ours.what}", *cells, "", _judged(verdict(ours.met, "missed")))
    return Group(grid, Text(f"  published: {source()}; ours: cold times and counters of these records", style="dim"))


# The ledger of fusion as plain JSON values.


class FusionJson(TypedDict):
    """`source` is where times are from, `prices` what a launch and a byte cost there.

    `chains` holds a ledger for each chain and workload, `published` the plan's table with our rows, `rule` its pass
    rule. A figure is {value, source, reason}: a null value has its reason.
    """

    source: str
    prices: dict[str, Any]
    chains: list[dict[str, Any]]
    published: dict[str, Any]
    rule: dict[str, Any]


def fusion_json(ledgers: Sequence[ChainLedger], table: Sequence[ComparedRow], sources: Sources) -> FusionJson:
    """Return the ledgers and the plan's table as plain values."""
    return {
        "source": heading(sources),
        "prices": asdict(sources.prices()),
        "chains": [asdict(ledger) for ledger in ledgers],
        "published": {"source": source(), "rows": [asdict(row) for row in table]},
        "rule": asdict(pass_rule()),
    }


# The ledger of overlap: parts alone, then the whole work in each form, in a table and as JSON.


class OverlapJson(TypedDict):
    """A ledger: `floor` is the seconds of the longest part, each of `rows` a form with its samples' seconds."""

    title: str
    floor: float | None
    rows: list[dict[str, Any]]


def overlap_view(overlap: OverlapLedger) -> RenderableType:
    """Return what `profile --overlap` prints of one experiment."""
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    columns = ("  form", "launches", "copied in", "copied out", "time", "copies", "faster", "hidden")
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position else "left", overflow="fold")
    for row in overlap.rows:
        name = f"  {row.name}{', alone' if row.part else ''}"
        moved = (bytes_text(row.copied_in), bytes_text(row.copied_out))
        table.add_row(name, str(row.launches), *moved, *_times(overlap, row), style="dim" if row.part else "")
    return Group(Text(overlap.title, style="bold"), table, Text(f"  {_longest(overlap)}", style="dim"), Text())


def _times(overlap: OverlapLedger, row: OverlapRow) -> tuple[str, ...]:
    if row.median is None:
        return (GAP,) * 4
    copied = row.copied_in + row.copied_out
    rate = rate_text(copied / row.median, "B/s") if copied else GAP
    speedup = None if row.part else overlap.speedup(row)
    faster = GAP if speedup is None else times_text(speedup)
    hidden = None if row.part else overlap.hidden(row)
    return time_text(row.median), rate, faster, GAP if hidden is None else share_text(hidden)


def _longest(overlap: OverlapLedger) -> str:
    if overlap.longest_part is None:
        return "no times: the CPU does one after the other; results of all forms are the same, bit by bit"
    longest = time_text(overlap.longest_part)
    return (
        f"the longest part alone takes {longest}; hidden: of what perfect overlap would save, the share that is saved; "
        "results of all forms are the same, bit by bit"
    )


def overlap_json(overlap: OverlapLedger) -> OverlapJson:
    """Return the ledger as plain values: seconds of every sample, and what follows from their medians."""
    derived = {
        row.name: {
            "median": row.median,
            "faster": None if row.part else overlap.speedup(row),
            "hidden": None if row.part else overlap.hidden(row),
        }
        for row in overlap.rows
    }
    rows = [{**asdict(row), **derived[row.name]} for row in overlap.rows]
    return {"title": overlap.title, "floor": overlap.longest_part, "rows": rows}


# The choice of a precision: what was tried, what came out, in a table and as JSON.


class PrecisionJson(TypedDict):
    """A choice: `tried` holds the fields of each precision that was tried, `chosen` the name of one or None."""

    program: str
    workload: str
    within: float
    sample: str
    basis: str
    tried: list[dict[str, Any]]
    chosen: str | None


def precision_table(selection: PrecisionChoice) -> RenderableType:
    """Return what `tune --precision` prints of one program."""
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for position, column in enumerate(("  precision", "of", "error", "bytes", "time", "", "run it as")):
        table.add_column(column, justify="right" if 2 <= position <= 4 else "left", overflow="fold")
    for trial in selection.tried:
        table.add_row(f"  {trial.precision}", trial.stage, *_figures(trial), *_verdict(selection, trial))
    title = Text.assemble((selection.program, "bold"), f"  {selection.workload}, error within {selection.within:g}")
    return Group(
        title,
        table,
        Text(f"  {_sentence(selection)}"),
        Text(f"  sample: {selection.sample}", style="dim"),
        *(Text(f"  {trial.precision}: {trial.reason}", style="dim") for trial in selection.tried if trial.reason),
        Text(),
    )


def _figures(trial: Tried) -> tuple[str, str, str]:
    error = GAP if trial.error is None else f"{trial.error:.1e}"
    return error, bytes_text(trial.bytes), GAP if trial.seconds is None else time_text(trial.seconds)


def _verdict(selection: PrecisionChoice, trial: Tried) -> tuple[Text, str]:
    if trial == selection.chosen:
        return Text("chosen", style="bold green"), trial.kernel
    if trial.error is None:
        return Text("not tried", style="yellow"), ""
    return Text("allowed") if selection.allowed(trial) else Text("too far off", style="red"), ""


def _sentence(selection: PrecisionChoice) -> str:
    if selection.chosen is None:
        return "no precision is within that"
    return f"{selection.chosen.precision} is the cheapest by {selection.basis}"


def precision_json(selection: PrecisionChoice) -> PrecisionJson:
    """Return the selection as plain values; `chosen` is a precision's name or None."""
    chosen = selection.chosen
    return {
        "program": selection.program,
        "workload": selection.workload,
        "within": selection.within,
        "sample": selection.sample,
        "basis": selection.basis,
        "tried": [asdict(trial) for trial in selection.tried],
        "chosen": chosen.precision if chosen else None,
    }

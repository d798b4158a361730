"""The ledger of overlap: parts alone, then the whole work in each form, in a table and as JSON."""

from dataclasses import asdict
from typing import Any, TypedDict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.extensions.fusion.overlap import OverlapLedger, OverlapRow
from prism_bench.report.cells import GAP, times_text
from prism_bench.units import bytes_text, rate_text, share_text, time_text


class OverlapJson(TypedDict):
    """A ledger: `floor` is the seconds of the longest part, each of `rows` a form with its samples' seconds."""

    title: str
    floor: float | None
    rows: list[dict[str, Any]]


def overlap_view(overlap: OverlapLedger) -> RenderableType:
    """Return what `overlap` prints of one experiment."""
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
    derived = {row.name: {"median": row.median, "faster": None if row.part else overlap.speedup(row),
                          "hidden": None if row.part else overlap.hidden(row)} for row in overlap.rows}  # fmt: skip
    rows = [{**asdict(row), **derived[row.name]} for row in overlap.rows]
    return {"title": overlap.title, "floor": overlap.longest_part, "rows": rows}

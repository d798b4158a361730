"""The ledger of overlap: parts alone, then the whole work in each form, in a table and as JSON."""

from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.extensions.fusion.overlap import Overlap
from prism_bench.report.cells import GAP, times_text
from prism_bench.units import bytes_text, rate_text, share_text, time_text


def overlap_view(overlap: Overlap) -> RenderableType:
    """What `overlap` prints of one experiment."""
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    columns = ("  form", "launches", "copied in", "copied out", "time", "copies", "faster", "hidden")
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position else "left", overflow="fold")
    for row in overlap.rows:
        name = f"  {row.name}{', alone' if row.part else ''}"
        moved = (bytes_text(row.copied_in), bytes_text(row.copied_out))
        table.add_row(name, str(row.launches), *moved, *_times(overlap, row), style="dim" if row.part else "")
    return Group(Text(overlap.title, style="bold"), table, Text(f"  {_floor(overlap)}", style="dim"), Text())


def _times(overlap, row):
    if row.median is None:
        return (GAP,) * 4
    copied = row.copied_in + row.copied_out
    rate = rate_text(copied / row.median, "B/s") if copied else GAP
    faster = GAP if row.part else times_text(overlap.speedup(row))
    hidden = None if row.part else overlap.hidden(row)
    return time_text(row.median), rate, faster, GAP if hidden is None else share_text(hidden)


def _floor(overlap):
    if overlap.floor is None:
        return "no times: the CPU does one after the other; results of all forms are the same, bit by bit"
    return (f"the longest part alone takes {time_text(overlap.floor)}; hidden: of what perfect overlap would save, the "
            "share that is saved; results of all forms are the same, bit by bit")  # fmt: skip


def overlap_json(overlap: Overlap) -> dict:
    """The ledger as plain values: seconds of every sample, and what follows from their medians."""
    derived = {row.name: {"median": row.median, "faster": None if row.part else overlap.speedup(row),
                          "hidden": None if row.part else overlap.hidden(row)} for row in overlap.rows}  # fmt: skip
    rows = [{**asdict(row), **derived[row.name]} for row in overlap.rows]
    return {"title": overlap.title, "floor": overlap.floor, "rows": rows}

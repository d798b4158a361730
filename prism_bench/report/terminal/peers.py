"""Peers in the terminal: the headline by class of peer, and every peer of a case."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.headline import HeadlineRow
from prism_bench.analysis.peer_rows import PeerRow, peer_rows
from prism_bench.analysis.summary import implementation
from prism_bench.record.run_record import CaseResult
from prism_bench.report.cells import times_text
from prism_bench.report.peers import case_text, headline_text, how_text, labels_text, mean_text
from prism_bench.report.terminal.fitted_table import FittedTable
from prism_bench.report.terminal.fitting import middle_cut
from prism_bench.units import time_text


def headline_view(rows: Sequence[HeadlineRow], *, whole: bool = True) -> list[RenderableType]:
    """Return the headline: a table by label and class, what its figures mean, and the large ratios by name.

    Without `whole`, the table is that of the first labels alone.
    """
    text = headline_text(rows)
    if not whole and text.rows:
        first = labels_text(text.rows[0])
        return [_table([row for row in text.rows if labels_text(row) == first])]
    if not text.rows:
        return []
    large = [f"{text.large_title}: {'; '.join(text.large)}."] if text.large else []
    return [_table(text.rows), *(Text(words, style="dim") for words in (" ".join(text.notes), *large))]


def _table(rows: Sequence[HeadlineRow]) -> FittedTable:
    """Return the headline's table; in a narrow terminal, names of kernels lose their middle."""
    longest = max(len(row["worst"]["implementation"]) for row in rows)
    return FittedTable(lambda _, names: _grid(rows, names), {}, longest)


def _grid(rows: Sequence[HeadlineRow], names: int) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for title in ("labels", "against peers"):
        grid.add_column(title, no_wrap=True)
    for title in ("cases", "mean", "below 1"):
        grid.add_column(title, justify="right", no_wrap=True)
    grid.add_column("worst", overflow="fold")
    before = None
    for row in rows:
        labels = labels_text(row)
        raced = row["worst"].copy()
        raced["implementation"] = middle_cut(raced["implementation"], names)
        worst = Text.assemble(f"{times_text(raced['ratio'])} ", (case_text(raced), "dim"))
        grid.add_row("" if labels == before else labels, row["peers"], str(row["cases"]), mean_text(row),
                     str(row["below"]), worst)  # fmt: skip
        before = labels
    return grid


def peer_tables(cases: Sequence[CaseResult]) -> list[RenderableType]:
    """Return for each case with peers a table of them: class, time, ratio, how it was called or why it has no time."""
    found = [(case, peer_rows(case)) for case in cases if not case.ceiling]
    return [
        Group(Text(f"\npeers of {implementation(case)} {case.label}"), _peers(rows)) for case, rows in found if rows
    ]


def _peers(rows: Sequence[PeerRow]) -> RenderableType:
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for title in ("peer", "class"):
        grid.add_column(title, no_wrap=True)
    for title in ("time", "ratio"):
        grid.add_column(title, justify="right", no_wrap=True)
    grid.add_column("how", overflow="fold")
    for row in rows:
        ratio = "-" if row["ratio"] is None else times_text(row["ratio"])
        grid.add_row(Text(row["peer"]), row["kind"], time_text(row["seconds"]), ratio, Text(how_text(row), style="dim"))
    return Padding(grid, (0, 0, 0, 2))

"""The inventory as tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from lab.inventory.inventory import CLAIMS, InventoryItem
from prism_bench.report.terminal.fitted_table import FittedColumn, FittedTable, Row, fitted

_COLUMNS = (
    FittedColumn("kernel"), FittedColumn("family", goes=5), FittedColumn("definitions", numbers=True, goes=2),
    FittedColumn("instances", numbers=True, goes=3), FittedColumn("variants", numbers=True, goes=4),
    FittedColumn("verified", numbers=True), FittedColumn("timed"), FittedColumn("replaces", goes=1),
    FittedColumn("gaps"),
)  # fmt: skip


def items_table(items: Sequence[InventoryItem], record: Path | None) -> FittedTable:
    """Return a row for each kernel, with its gaps."""
    rows: list[Row] = []
    for item in items:
        verified = f"{item.verified}/{item.checks}" if item.checks else "-"
        counts = (str(len(item.definitions)), str(len(item.launched)), str(len(item.variants)), verified)
        words = (" ".join(item.timed) or "-", " ".join(item.replaces), Text("; ".join(item.gaps), style="yellow"))
        rows.append(((item.kernel, item.family, *counts, *words), None))
    return fitted(f"verified and timed: {record or 'no record'}", _COLUMNS, rows)


def claims_table(counts: Mapping[str, int]) -> Table:
    """Return the documents' figures next to those of the catalogue."""
    table = Table(title="figures of the documents and of the catalogue", title_justify="left")
    for name in ("", "documents", "here", "source"):
        table.add_column(name, justify="right" if name in ("documents", "here") else "left")
    for name, (quoted, source) in CLAIMS.items():
        table.add_row(name, quoted, str(counts[name]), source)
    return table

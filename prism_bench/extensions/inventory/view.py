"""The inventory as tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from prism_bench.extensions.inventory.inventory import CLAIMS, InventoryItem


def items_table(items: Sequence[InventoryItem], record: Path | None) -> Table:
    """Return a row for each kernel, with its gaps."""
    table = Table(title=f"verified and timed: {record or 'no record'}", title_justify="left")
    for name in ("family", "kernel", "definitions", "instances", "variants", "verified", "timed", "replaces", "gaps"):
        counted = name in ("definitions", "instances", "variants", "verified")
        table.add_column(name, justify="right" if counted else "left", overflow="fold")
    for item in items:
        verified = f"{item.verified}/{item.checks}" if item.checks else "-"
        counts = (str(len(item.definitions)), str(len(item.launched)), str(len(item.variants)), verified)
        words = (" ".join(item.timed) or "-", " ".join(item.replaces), Text("; ".join(item.gaps), style="yellow"))
        table.add_row(item.family, item.kernel, *counts, *words)
    return table


def claims_table(counts: Mapping[str, int]) -> Table:
    """Return the documents' figures next to those of the catalogue."""
    table = Table(title="figures of the documents and of the catalogue", title_justify="left")
    for name in ("", "documents", "here", "source"):
        table.add_column(name, justify="right" if name in ("documents", "here") else "left")
    for name, (quoted, source) in CLAIMS.items():
        table.add_row(name, quoted, str(counts[name]), source)
    return table

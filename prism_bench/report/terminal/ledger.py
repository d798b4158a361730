"""The launch ledger as a table and as JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.bounds.ledger import LaunchLedger, LedgerRow
from prism_bench.units import bytes_text, share_text, time_text
from prism_bench.workflows.tracing import LaunchCost

CAUSES = ("sync", "host", "launch", "queued")


def ledger_json(account: LaunchLedger, costs: Mapping[str, LaunchCost]) -> dict[str, Any]:
    """Return what `prism-bench ledger --json` prints."""
    return {**asdict(account), "costs": {name: asdict(cost) for name, cost in costs.items()}}


def ledger_view(account: LaunchLedger, costs: Mapping[str, LaunchCost], *, whole: bool) -> RenderableType:
    """Return a row for each range, the total first with `whole`, then what launching costs the host, and notes."""
    title = Text(f"launch ledger of {account.source}, by {account.tool} {account.version}")
    table = Table()
    table.add_column("range", overflow="fold")
    graphs = ("graphs",) if account.total.graphs else ()
    for name in ("kernels", *graphs, "launch calls", "busy", "span", "idle", "gaps", *CAUSES, "copies"):
        table.add_column(name, justify="right")
    for row in [*([account.total] if whole else []), *account.ranges]:
        kernels, *cells = _cells(row)
        table.add_row(Text(row.name or "all"), kernels, *(str(row.graphs) for _ in graphs), *cells)
    lines = [
        f"{name}: the host takes {time_text(cost.plain)} to launch it, {time_text(cost.watched)} while watched"
        for name, cost in costs.items()
    ]
    return Group(title, table, *map(Text, [*lines, *(f"note: {note}" for note in account.notes)]))


def _cells(row: LedgerRow) -> tuple[str, ...]:
    causes = (time_text(row.gaps[word].seconds) if word in row.gaps else "-" for word in CAUSES)
    times = (share_text(row.busy_share), time_text(row.span), time_text(row.idle))
    copies = f"{row.copies} ({bytes_text(row.copied_bytes)})"
    return (str(row.kernels), str(row.launch_calls), *times, str(row.gap_count), *causes, copies)

"""Operations on several GPUs as a table and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.extensions.links.results import LinkRow
from prism_bench.units import rate_text, ratio_text, share_text, time_text

_STYLES = {"ok": "green", "skipped": "yellow"}
NOTE = (
    "time: all GPUs start together, caches cleared; that of the slowest between its events. bandwidth: the bytes that "
    "each GPU has to send at least over the time; share: of the best operation that only moves data"
)


def links_view(found: Sequence[LinkRow]) -> RenderableType:
    """Return what `links` prints, for a Rich console."""
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for place, column in enumerate(("operation", "label", "GPUs", "right", "time", "bandwidth", "share", "arithmetic",
                                    "speedup")):  # fmt: skip
        table.add_column(column, justify="right" if place > 1 else "left", overflow="fold")
    for row in found:
        table.add_row(*_cells(row))
    reasons = dict.fromkeys(f"{row.operation}:{row.form}: {row.reason}" for row in found if row.reason)
    return Group(table, *(Text(f"  {reason}", style="yellow") for reason in reasons), Text(f"  {NOTE}", style="dim"))


def _cells(row: LinkRow) -> tuple[str | Text, ...]:
    right = Text("yes" if row.status == "ok" else row.status, style=_STYLES.get(row.status, "bold red"))
    speed = rate_text(row.bandwidth, "B/s") if row.bandwidth else "-"
    return (
        f"{row.operation}:{row.form}", row.label, str(row.devices), right, time_text(row.seconds), speed,
        share_text(row.share), rate_text(row.flop_rate, "FLOP/s") if row.flop_rate else "-", ratio_text(row.against),
    )  # fmt: skip


def links_json(found: Sequence[LinkRow]) -> dict[str, Any]:
    """Return the same as plain JSON values; what was not measured is null."""
    return {
        "links": [
            {**asdict(row), "bandwidth": row.bandwidth, "flop_rate": row.flop_rate, "share": row.share} for row in found
        ]
    }

"""The choice of a precision: what was tried, what came out, in a table and as JSON."""

from dataclasses import asdict
from typing import Any, TypedDict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.extensions.fusion.selection import PrecisionChoice, Tried
from prism_bench.report.cells import GAP
from prism_bench.units import bytes_text, time_text


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
    """Return what `precision` prints of one program."""
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for position, column in enumerate(("  precision", "of", "error", "bytes", "time", "", "run it as")):
        table.add_column(column, justify="right" if 2 <= position <= 4 else "left", overflow="fold")
    for one in selection.tried:
        table.add_row(f"  {one.precision}", one.stage, *_figures(one), *_verdict(selection, one))
    title = Text.assemble((selection.program, "bold"), f"  {selection.workload}, error within {selection.within:g}")
    return Group(title, table, Text(f"  {_sentence(selection)}"), Text(f"  sample: {selection.sample}", style="dim"),
                 *(Text(f"  {one.precision}: {one.reason}", style="dim") for one in selection.tried if one.reason),
                 Text())  # fmt: skip


def _figures(one: Tried) -> tuple[str, str, str]:
    error = GAP if one.error is None else f"{one.error:.1e}"
    return error, bytes_text(one.bytes), GAP if one.seconds is None else time_text(one.seconds)


def _verdict(selection: PrecisionChoice, one: Tried) -> tuple[Text, str]:
    if one == selection.chosen:
        return Text("chosen", style="bold green"), one.kernel
    if one.error is None:
        return Text("not tried", style="yellow"), ""
    return Text("allowed") if selection.allowed(one) else Text("too far off", style="red"), ""


def _sentence(selection: PrecisionChoice) -> str:
    if selection.chosen is None:
        return "no precision is within that"
    return f"{selection.chosen.precision} is the cheapest by {selection.basis}"


def precision_json(selection: PrecisionChoice) -> PrecisionJson:
    """Return the selection as plain values; `chosen` is a precision's name or None."""
    chosen = selection.chosen
    return {
        "program": selection.program, "workload": selection.workload, "within": selection.within,
        "sample": selection.sample, "basis": selection.basis, "tried": [asdict(one) for one in selection.tried],
        "chosen": chosen.precision if chosen else None,
    }  # fmt: skip

"""Reports of pipelines in the terminal and as JSON: every form, the published goals, the phases of the LSTM."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.extensions.pipelines.results import ASKED_PER_SECOND, LSTM_GOAL, PUBLISHED_FRAMES, Phase, PipelineRow
from prism_bench.units import bytes_text, ratio_text, share_text, time_text

_STYLES = {"ok": "green", "skipped": "yellow"}


def pipelines_view(rows: Sequence[PipelineRow], phases: Sequence[Phase]) -> RenderableType:
    """Return what `pipeline` prints, for a Rich console."""
    parts = [_table(rows)]
    parts += [Text(f"  {row.word}: {row.reason}", style="yellow") for row in rows if row.reason]
    missing = dict.fromkeys(row.missing for row in rows if row.missing)
    parts += [Text(f"  overlap: {reason}", style="dim") for reason in missing]
    parts += [Text(_asked(), style="dim")]
    return Group(*parts, *([Text(), _phases(phases)] if phases else []))


def _asked() -> str:
    return (
        f"  the documents ask for {ASKED_PER_SECOND} operations a second and report {PUBLISHED_FRAMES} frames; "
        "latency is from the host's memory to the host's memory, CPU is the float64 references on NumPy"
    )


def _grid(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", overflow="fold")
    return table


def _table(rows: Sequence[PipelineRow]) -> Table:
    table = _grid("pipeline", "right", "latency", "steady", "a second", "host", "launches", "overlap", "copies up",
                  "copies down", "CPU", "times")  # fmt: skip
    for row in rows:
        verdict = Text("yes" if row.status == "ok" else row.status, style=_STYLES.get(row.status, "bold red"))
        table.add_row(
            row.word, verdict, time_text(row.latency), time_text(row.steady), _per_second(row), time_text(row.launch),
            "-" if row.launches is None else str(row.launches), share_text(row.overlap), _copies(row, "up"),
            _copies(row, "down"), time_text(row.cpu), ratio_text(row.against_cpu),
        )  # fmt: skip
    return table


def _per_second(row: PipelineRow) -> str | Text:
    if row.per_second is None:
        return "-"
    text = Text(f"{row.per_second:,.0f}")
    if row.goal:
        met = row.per_second >= row.goal
        text.append(f" (asked {row.goal:,.0f})", style="green" if met else "bold red")
    return text


def _copies(row: PipelineRow, way: str) -> str:
    return f"{row.moved[way]} ({bytes_text(row.moved[f'{way}_bytes'])})" if way in row.moved else "-"


def _phases(phases: Sequence[Phase]) -> Table:
    table = _grid("the LSTM's phases, of one step", "from host to host", "copies", "bytes", "times the CPU")
    for one in phases:
        table.add_row(one.name, time_text(one.step), f"{one.copies:.3g}", bytes_text(one.bytes), _times(one))
    return table


def _times(phase: Phase) -> Text:
    text = Text(ratio_text(phase.against_cpu))
    if phase.row.word == "lstm:one_stream" and phase.against_cpu:
        met = phase.against_cpu >= LSTM_GOAL
        text.append(f" (asked {ratio_text(LSTM_GOAL)})", style="green" if met else "bold red")
    return text


def pipelines_json(rows: Sequence[PipelineRow], phases: Sequence[Phase]) -> dict[str, Any]:
    """Return the same as plain JSON values; what was not measured is null."""
    return {
        "asked_per_second": ASKED_PER_SECOND,
        "published_frames_per_second": PUBLISHED_FRAMES,
        "pipelines": [
            {**asdict(row), "per_second": row.per_second, "against_cpu": row.against_cpu, "goal": row.goal}
            for row in rows
        ],
        "lstm_phases": [
            {"name": one.name, "form": one.row.word, "step_seconds": one.step, "copies": one.copies,
             "bytes": one.bytes, "against_cpu": one.against_cpu}
            for one in phases
        ],
    }  # fmt: skip

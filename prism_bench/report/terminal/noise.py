"""Noise floors in the terminal and as plain values."""

from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.compare.noise import Noise
from prism_bench.report.machine import backend_text
from prism_bench.spec.metric import timed_on
from prism_bench.units import share_text, time_text


def noise_view(noise: Noise) -> RenderableType:
    """Return a row for each case and metric, the widest noise floor first, and how often the verdict was wrong."""
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    grid.add_column("case", overflow="fold")
    grid.add_column("metric")
    for name in ("time", "between processes", "within", "smallest change", "false verdicts"):
        grid.add_column(name, justify="right", no_wrap=True)
    for (case, metric), floor in sorted(noise.floors.items(), key=lambda item: -item[1].smallest_change):
        grid.add_row(
            Text(case), metric, time_text(floor.seconds), share_text(floor.between), share_text(floor.within),
            share_text(floor.smallest_change), f"{floor.false_verdicts} of {floor.repaired}",
        )  # fmt: skip
    return Group(_headline(noise), *([grid] if noise.floors else []))


def _headline(noise: Noise) -> Text:
    if not noise.floors:
        return Text("no case was timed validly in two processes a side", style="yellow")
    words = f"{noise.device}, {backend_text(noise.backend)}: {len(noise.floors)} noise floors"
    return Text(f"{words}; of verdicts on the build against itself, {share_text(noise.false_share)} called a change")


def noise_json(noise: Noise) -> dict[str, Any]:
    """Return the noise floors as plain JSON values, one entry per case and metric."""
    floors = [{"case": case, "metric": metric, **asdict(floor)} for (case, metric), floor in noise.floors.items()]
    plain = {key: value for key, value in vars(noise).items() if key != "floors"}
    return {**plain, "timed": timed_on(noise.backend), "false_share": noise.false_share, "floors": floors}

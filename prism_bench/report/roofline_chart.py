"""The roofline of a record: every case by operations per byte and by the rate it reached, under the measured roofs."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from prism_bench.analysis.bounds.roofline import ARITHMETIC, attainable, plotted, ridge, roofs
from prism_bench.analysis.reading import Reading
from prism_bench.analysis.summary import SummaryRow, rows_of
from prism_bench.measure.limits import Limits
from prism_bench.report.labels import place
from prism_bench.report.svg import INK, canvas, inline, tick
from prism_bench.units import count_text, rate_text, share_text, time_text

# A label's look: S0 is hollow, larger workloads are darker and larger.
_LOOKS = {"S0": ("none", 4.2), "S1": (INK["second"], 5.0), "S2": (INK["accent"], 6.0)}


def roofline_chart(reading: Reading, width: int, height: int) -> str | None:
    """Return inline SVG of `width` x `height` pixels; None where no case has both operations and a cold time."""
    rows = rows_of(plotted(reading.frame))
    if not rows:
        return None
    name = f"roof{width}"
    context, figure_of = canvas(width, height, name)
    with context:
        figure = figure_of()
        axes = figure.add_subplot()
        figure.subplots_adjust(left=70 / width, right=1 - 14 / width, bottom=50 / height, top=1 - 14 / height)
        _scale(axes, rows, reading.limits)
        drawn = _draw_roofs(axes, reading.limits)
        titles = _draw_points(axes, rows)
        _name_points(axes, rows, drawn)
        return inline(figure, f"Roofline of {count_text(len(rows), 'case')}", titles, prefix=f"{name}-")


def _scale(axes: Axes, rows: Sequence[SummaryRow], limits: Limits) -> None:
    axes.set(xscale="log", yscale="log", xlabel="operations per compulsory byte", ylabel="operations per second")
    intensities, rates = [row["intensity"] for row in rows], [row["flop_rate"] for row in rows]
    low, high = min(intensities), max(intensities)
    top = max([*rates, *roofs(limits).values()])
    bandwidth, peak = limits.ceilings.get("bandwidth"), limits.ceilings.get("fp32")
    if bandwidth and peak:
        high = max(high, ridge(bandwidth, peak) * 4)
    axes.set_xlim(low / 2.5, high * 3)
    axes.set_ylim(min(rates) / 3, top * 2.5)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(lambda value, _: tick(rate_text(value, "")))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", color=INK["rule"], linewidth=0.5, alpha=0.6)
    axes.set_axisbelow(True)


def _draw_roofs(axes: Axes, limits: Limits) -> list[tuple[float, float]]:
    """Draw the roofs with their names, and return places along them."""
    left, right = axes.get_xlim()
    bandwidth, peak = limits.ceilings.get("bandwidth"), limits.ceilings.get("fp32")
    per_byte = np.geomspace(left, right, 300)
    drawn = []
    if bandwidth or peak:
        rates = [attainable(x, bandwidth or math.inf, peak or math.inf) for x in per_byte]
        axes.plot(per_byte, rates, color=INK["ink"], linewidth=1.4)
        drawn = list(zip(per_byte, rates, strict=True))
    if bandwidth:
        _on_slope(axes, max(left, axes.get_ylim()[0] / bandwidth), bandwidth)
    for name, rate in roofs(limits).items():
        if name != "fp32":
            axes.axhline(rate, color=INK["muted"], linewidth=0.9, linestyle=(0, (4, 3)))
        words = f"{ARITHMETIC.get(name, name)} {rate_text(rate, 'FLOP/s')}"
        _on_roof(axes, right, rate, words)
    return drawn


def _on_roof(axes: Axes, right: float, rate: float, words: str) -> None:
    axes.annotate(
        words, (right, rate), (-4, 4), textcoords="offset points", ha="right", color=INK["muted"], fontsize=10
    )


def _on_slope(axes: Axes, start: float, bandwidth: float) -> None:
    """Write the memory roof's name along it."""
    x = start * 1.35
    (x0, y0), (x1, y1) = axes.transData.transform([(x, x * bandwidth), (x * 10, x * 10 * bandwidth)])
    angle = math.degrees(math.atan2(y1 - y0, x1 - x0))
    words = f"memory {rate_text(bandwidth, 'B/s')}"
    axes.annotate(words, (x, x * bandwidth), (-3, 5), textcoords="offset points", rotation=angle, color=INK["muted"],
                  rotation_mode="anchor", fontsize=10)  # fmt: skip


def _draw_points(axes: Axes, rows: Sequence[SummaryRow]) -> dict[str, str]:
    titles = {}
    for position, row in enumerate(rows):
        face, size = _LOOKS.get(row["label"], _LOOKS["S1"])
        gid = f"point-{position}"
        marker = "D" if row["variant"] else "o"
        scaled = size * (0.85 if row["variant"] else 1)
        axes.plot(row["intensity"], row["flop_rate"], marker, gid=gid, markersize=scaled, markerfacecolor=face,
                  markeredgecolor=INK["accent"], markeredgewidth=1.1, clip_on=False)  # fmt: skip
        titles[gid] = _title(row)
    return titles


def _title(row: SummaryRow) -> str:
    share = f", {share_text(row['bound_share'])} of its {row['bound']} limit" if row["bound"] else ""
    return f"{row['case']}: {rate_text(row['flop_rate'], 'FLOP/s')} in {time_text(row['cold_time'])}{share}"


def _name_points(axes: Axes, rows: Sequence[SummaryRow], drawn: list[tuple[float, float]]) -> None:
    """Name the largest workload of each kernel, the fastest first."""
    largest = {row["implementation"]: row for row in sorted(rows, key=lambda row: row["label"])}
    named = sorted(largest.values(), key=lambda row: row["flop_rate"], reverse=True)
    points = [(row["intensity"], row["flop_rate"], row["implementation"]) for row in named]
    points += [(row["intensity"], row["flop_rate"], "") for row in rows if row is not largest[row["implementation"]]]
    place(axes, points, drawn, color=INK["ink"], fontsize=10)

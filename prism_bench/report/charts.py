"""Charts as inline SVG: the roofline, and labels that do not overlap."""

import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from prism_bench.analysis.bounds.bottleneck import ARITHMETIC, attainable, plotted, ridge, roofs
from prism_bench.analysis.run_analysis import Reading
from prism_bench.analysis.summary import SummaryRow, rows_of
from prism_bench.measure.plausibility import Limits
from prism_bench.units import count_text, rate_text, share_text, time_text

if TYPE_CHECKING:  # Matplotlib is an extra: what draws imports it when it is called
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox
    from matplotlib.typing import RcKeyType


# Names next to points, placed so that none covers another.

# An offset in points, and the text's horizontal and vertical alignment.
_Place = tuple[int, int, Literal["left", "center", "right"], Literal["bottom", "center", "top"]]
_Point = tuple[float, float, str]
_PLACES: tuple[_Place, ...] = (
    (7, 0, "left", "center"), (5, -5, "left", "top"), (-5, 5, "right", "bottom"), (5, 5, "left", "bottom"),
    (0, -8, "center", "top"), (0, 8, "center", "bottom"), (-7, 0, "right", "center"), (-5, -5, "right", "top"),
    (18, -16, "left", "top"), (-18, 16, "right", "bottom"),
)  # fmt: skip
# How much of a text's extent is left of, or below, the point that it is aligned to.
_BEFORE = {"left": 0.0, "bottom": 0.0, "center": 0.5, "right": 1.0, "top": 1.0}


def place(axes: "Axes", points: list[_Point], lines: list[tuple[float, float]], **style: Any) -> "list[Text]":
    """Write each point's name at the first free place around it; a name with no free place is left out.

    Earlier points come first. No name covers a point or one of the places on `lines`; a point without a name only keeps
    its place free. Returns the texts that are left.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = axes.figure.canvas
    assert isinstance(canvas, FigureCanvasAgg), "`svg.canvas` makes figures of Agg"
    renderer = canvas.get_renderer()
    anchors = axes.transData.transform([point[:2] for point in points]) if points else np.empty((0, 2))
    taken = [*_around(anchors, 4), *_around(axes.transData.transform(lines) if lines else anchors[:0], 1)]
    frame = axes.get_window_extent(renderer)
    standing = []
    for index, (x, y, name) in enumerate(points):
        others = np.delete(taken, index, axis=0)
        found = _first_free(anchors[index], _extent(renderer, name, style), others, frame) if name else None
        if found:
            where, box = found
            standing.append(_written(axes, (x, y, name), where, style))
            taken.append(box)
    return standing


def _extent(renderer: "RendererBase", name: str, style: Mapping[str, Any]) -> np.ndarray:
    """Return width and height of the name in pixels, computed once: drawing each try takes a hundred times as long."""
    from matplotlib.font_manager import FontProperties

    font = FontProperties(size=style.get("fontsize"))
    width, own, _ = renderer.get_text_width_height_descent(name, font, ismath=False)
    _, line, _ = renderer.get_text_width_height_descent("lp", font, ismath=False)  # what a line takes at least
    return np.array([width, max(own, line) + 1])


def _first_free(
    anchor: np.ndarray, extent: np.ndarray, taken: np.ndarray, frame: "Bbox"
) -> tuple[_Place, np.ndarray] | None:
    """Return the first place in the frame whose box covers nothing that is taken, with that box; None without one."""
    for where in _PLACES:
        dx, dy, across, up = where
        low = anchor + (dx, dy) - extent * (_BEFORE[across], _BEFORE[up])
        high = low + extent
        inside = frame.x0 <= low[0] and high[0] <= frame.x1 and frame.y0 <= low[1] and high[1] <= frame.y1
        if inside and not (np.all(taken[:, :2] <= high, axis=1) & np.all(taken[:, 2:] >= low, axis=1)).any():
            return where, np.concatenate([low, high])
    return None


def _written(axes: "Axes", point: _Point, where: _Place, style: Mapping[str, Any]) -> "Text":
    (x, y, name), (dx, dy, across, up) = point, where
    text = axes.annotate(name, (x, y), (dx, dy), textcoords="offset points", ha=across, va=up, **style)
    text.set_parse_math(False)
    return text


def _around(places: np.ndarray, reach: float) -> np.ndarray:
    """Return boxes (left, low, right, high) that reach that far around each place."""
    return np.concatenate([places - reach, places + reach], axis=1)


# Matplotlib figures as inline SVG that takes its colours and its font from the page around it.
#
# Figures are drawn in placeholder colours; each becomes a CSS variable here, so one picture serves light, dark and
# print.

# Placeholder colours that no figure uses otherwise, by the CSS variable that replaces them.
INK = MappingProxyType({
    "ink": "#010203", "muted": "#010204", "rule": "#010205", "paper": "#010206", "accent": "#010207",
    "second": "#010208", "third": "#010209", "warm": "#01020a",
})  # fmt: skip
_SETTINGS: "Mapping[RcKeyType, Any]" = MappingProxyType({
    "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 11, "text.color": INK["ink"],
    "axes.edgecolor": INK["rule"], "axes.linewidth": 0.8, "axes.labelcolor": INK["muted"], "axes.labelsize": 11,
    "xtick.color": INK["rule"], "ytick.color": INK["rule"], "xtick.labelcolor": INK["muted"],
    "ytick.labelcolor": INK["muted"], "axes.spines.top": False, "axes.spines.right": False, "axes.facecolor": "none",
    "figure.facecolor": "none", "xtick.minor.size": 0, "ytick.minor.size": 0, "path.simplify": False,
})  # fmt: skip
_NO_METADATA = MappingProxyType(dict.fromkeys(("Creator", "Date", "Format", "Type")))


def canvas(width: float, height: float, name: str) -> tuple[AbstractContextManager[None], "Callable[[], Figure]"]:
    """Return a context to draw in and a maker of figures of that many CSS pixels; `name` makes their ids unique."""
    from matplotlib import rc_context

    return rc_context({**_SETTINGS, "svg.hashsalt": name}), lambda: _figure(width, height)


def _figure(width: float, height: float) -> "Figure":
    """Return a figure; one inch is 72 pixels, as in SVG, and the Agg canvas measures how wide a text is."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    return FigureCanvasAgg(Figure((width / 72, height / 72), dpi=72)).figure


def inline(figure: "Figure", label: str, titles: dict[str, str] | None = None, prefix: str = "") -> str:
    """Return the figure as one `<svg>` element that scales with the page; `label` is for screen readers.

    `titles` are tooltips by the gid of the artist they belong to; `prefix` makes every id of the picture its own.
    """
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata=dict(_NO_METADATA))
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.DOTALL)
    for gid, title in (titles or {}).items():
        text = text.replace(f'<g id="{gid}">', f'<g id="{gid}" class="mark"><title>{escape(title)}</title>')
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", text)
    for name, colour in INK.items():
        text = text.replace(colour, f"var(--{name})")
    return _opened(text, label)


_SHADES = 64  # colours of a PNG, with those of soft edges


def png(figure: "Figure") -> bytes:
    """Return the figure as a PNG with few colours, which takes a third of the bytes."""
    from PIL import Image

    drawn, packed = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(_SHADES, dither=Image.Dither.NONE).save(packed, "png", optimize=True)
    return packed.getvalue()


def _opened(text: str, label: str) -> str:
    found = re.search(r'viewBox="([^"]+)"', text)
    assert found, "Matplotlib writes the box"
    box = found.group(1)
    body = text[text.index(">") + 1 :]
    opening = f'<svg class="chart" role="img" aria-label="{escape(label, quote=True)}" viewBox="{box}"'
    return f'{opening} xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg">{body}'


def tick(text: str) -> str:
    """Return an axis label for a quantity: `10 µs` for `10.0 us`."""
    return re.sub(r"\.0+(?= |$)", "", text).replace("us", "µs").strip()


# The roofline of a record: every case by operations per byte and by the rate it reached, under the measured roofs.

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
        # Name the largest workload of each kernel, the fastest first.
        largest = {row["implementation"]: row for row in sorted(rows, key=lambda row: row["label"])}
        named = sorted(largest.values(), key=lambda row: row["flop_rate"], reverse=True)
        points = [(row["intensity"], row["flop_rate"], row["implementation"]) for row in named]
        points += [
            (row["intensity"], row["flop_rate"], "") for row in rows if row is not largest[row["implementation"]]
        ]
        place(axes, points, drawn, color=INK["ink"], fontsize=10)
        return inline(figure, f"Roofline of {count_text(len(rows), 'case')}", titles, prefix=f"{name}-")


def _scale(axes: "Axes", rows: Sequence[SummaryRow], limits: Limits) -> None:
    from matplotlib.ticker import NullFormatter

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


def _draw_roofs(axes: "Axes", limits: Limits) -> list[tuple[float, float]]:
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
        axes.annotate(
            words, (right, rate), (-4, 4), textcoords="offset points", ha="right", color=INK["muted"], fontsize=10
        )
    return drawn


def _on_slope(axes: "Axes", start: float, bandwidth: float) -> None:
    """Write the memory roof's name along it."""
    x = start * 1.35
    (x0, y0), (x1, y1) = axes.transData.transform([(x, x * bandwidth), (x * 10, x * 10 * bandwidth)])
    angle = math.degrees(math.atan2(y1 - y0, x1 - x0))
    words = f"memory {rate_text(bandwidth, 'B/s')}"
    axes.annotate(
        words,
        (x, x * bandwidth),
        (-3, 5),
        textcoords="offset points",
        rotation=angle,
        color=INK["muted"],
        rotation_mode="anchor",
        fontsize=10,
    )


def _draw_points(axes: "Axes", rows: Sequence[SummaryRow]) -> dict[str, str]:
    titles = {}
    for position, row in enumerate(rows):
        face, size = _LOOKS.get(row["label"], _LOOKS["S1"])
        gid = f"point-{position}"
        marker = "D" if row["variant"] else "o"
        scaled = size * (0.85 if row["variant"] else 1)
        axes.plot(
            row["intensity"],
            row["flop_rate"],
            marker,
            gid=gid,
            markersize=scaled,
            markerfacecolor=face,
            markeredgecolor=INK["accent"],
            markeredgewidth=1.1,
            clip_on=False,
        )
        share = f", {share_text(row['bound_share'])} of its {row['bound']} limit" if row["bound"] else ""
        titles[gid] = f"{row['case']}: {rate_text(row['flop_rate'], 'FLOP/s')} in {time_text(row['cold_time'])}{share}"
    return titles

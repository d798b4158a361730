"""Picture of a recording: the warps of one multiprocessor, over the launch and over a stretch from its middle."""

from collections.abc import Mapping
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from prism_bench.errors import ResultsError
from prism_bench.extensions.timeline.recording import Recording
from prism_bench.extensions.timeline.regions import RegionTimeline, rows
from prism_bench.extensions.timeline.report import cost_text
from prism_bench.report.charts import png
from prism_bench.units import count_text, share_text

if TYPE_CHECKING:  # Matplotlib takes long to load
    from matplotlib.axes import Axes

# M. Okabe, K. Ito: Color Universal Design, https://jfly.uni-koeln.de/color/
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8a8f98")
_SETTINGS: Mapping[Any, Any] = MappingProxyType({
    "font.family": "sans-serif", "font.size": 9, "text.color": "#1c1e21", "axes.edgecolor": "#dedad0",
    "axes.labelcolor": "#62656b", "xtick.labelsize": 8, "xtick.color": "#dedad0", "ytick.color": "#dedad0",
    "xtick.labelcolor": "#62656b", "ytick.labelcolor": "#1c1e21", "ytick.labelsize": 7, "axes.spines.top": False,
    "axes.spines.right": False, "axes.spines.left": False,
})  # fmt: skip
_MOST_WARPS = 24
_STRETCH = 16  # regions of a warp that the lower panel shows
_WIDTH, _WARP, _AROUND = 10.0, 0.16, 0.85  # inches
_LINE = 165  # characters of the small text
_HEIGHT, _INSIDE = 0.84, 0.55  # of a warp's line: a region, and one within another


def timeline_picture(recording: Recording) -> bytes:
    """Return a PNG of the multiprocessor that ends last; ResultsError without regions."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    timeline = recording.timeline
    if not len(timeline):
        raise ResultsError(f"{recording.case}: no region was recorded: there is nothing to draw")
    number = int(timeline.multiprocessor[timeline.end.argmax()])
    here = np.flatnonzero(timeline.multiprocessor == number)
    threads = timeline.slot * 32 + timeline.warp
    warps = np.unique(threads[here])
    shown = warps[:_MOST_WARPS]
    here = here[np.isin(threads[here], shown)]
    lines = np.searchsorted(shown, threads[here])
    windows = _windows(timeline, here, len(shown))
    with rc_context(dict(_SETTINGS)):
        height = len(windows) * (len(shown) * _WARP + _AROUND) + 1.1
        figure = FigureCanvasAgg(Figure((_WIDTH, height), dpi=150)).figure
        for axes, window in zip(figure.subplots(len(windows), 1, squeeze=False).flat, windows, strict=True):
            _panel(axes, timeline, here, lines, window)
            axes.set_yticks(range(len(shown)), [_name(int(thread), several=warps[-1] >= 32) for thread in shown])
        _legend(figure, timeline)
        place = f"multiprocessor {number}, which ends last" if timeline.is_timed else "order of events, without times"
        of_all = f", {len(shown)} of {count_text(len(warps), 'warp')}" if len(shown) < len(warps) else ""
        title = f"{recording.case} on {recording.device}: {place}{of_all}"
        figure.text(0.01, 1 - 0.08 / height, title, fontsize=10, va="top")
        cost = wrap(cost_text(recording.cost), _LINE) if recording.cost else []
        figure.text(0.01, 1 - 0.32 / height, "\n".join(cost), fontsize=7.5, color="#62656b", va="top")
        figure.tight_layout(h_pad=1.2, rect=(0, 0.32 / height, 1, 1 - (0.3 + 0.16 * len(cost)) / height))
        return png(figure)


def _name(thread: int, *, several: bool) -> str:
    """Return a warp's name, with that of its block's place where `several` blocks are on a multiprocessor."""
    return (f"block {thread // 32}, " if several else "") + f"warp {thread % 32}"


def _windows(timeline: RegionTimeline, here: np.ndarray, warps: int) -> list[tuple[float, float]]:
    """Return the whole launch, and a stretch from its middle where the whole has too many regions to be seen."""
    begin, end = float(timeline.begin[here].min()), float(timeline.end[here].max())
    stretch = (end - begin) * _STRETCH * warps / len(here)
    middle = (begin + end) / 2
    whole = (begin, end)
    return [whole] if stretch > (end - begin) / 2 else [whole, (middle - stretch / 2, middle + stretch / 2)]


def _panel(
    axes: "Axes", timeline: RegionTimeline, here: np.ndarray, lines: np.ndarray, window: tuple[float, float]
) -> None:
    from matplotlib.collections import PolyCollection

    scale = 1e-3 if timeline.is_timed else 1.0
    seen = (timeline.end[here] >= window[0]) & (timeline.begin[here] <= window[1])
    places, line = here[seen], lines[seen]
    half = np.where(timeline.parent[places] >= 0, _INSIDE, _HEIGHT) / 2
    left, right = timeline.begin[places] * scale, timeline.end[places] * scale
    corners = [(left, line - half), (left, line + half), (right, line + half), (right, line - half)]
    boxes = np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)
    colours = [COLOURS[number % len(COLOURS)] for number in timeline.region[places]]
    axes.add_collection(PolyCollection(list(boxes), facecolors=colours, linewidths=0))
    axes.set(xlim=[edge * scale for edge in window], ylim=(lines.max() + 0.6, -0.6))
    axes.set_xlabel("µs since the first region" if timeline.is_timed else "events", fontsize=8)


def _legend(figure: Any, timeline: RegionTimeline) -> None:
    from matplotlib.patches import Patch

    patches = [
        Patch(
            facecolor=COLOURS[timeline.names.index(row.name) % len(COLOURS)],
            label=row.name + ("" if row.share is None else f", {share_text(row.share)}"),
        )
        for row in rows(timeline)
    ]
    figure.legend(handles=patches, loc="lower center", ncols=6, frameon=False, fontsize=8.5)

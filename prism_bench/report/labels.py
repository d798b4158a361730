"""Names next to points, placed so that none covers another."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.transforms import Bbox

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


def place(axes: Axes, points: list[_Point], lines: list[tuple[float, float]], **style: Any) -> list[Text]:
    """Write each point's name at the first free place around it; a name with no free place is left out.

    Earlier points come first. No name covers a point or one of the places on `lines`; a point without a name only keeps
    its place free. Returns the texts that are left.
    """
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


def _extent(renderer: RendererBase, name: str, style: Mapping[str, Any]) -> np.ndarray:
    """Return width and height of the name in pixels, computed once: drawing each try takes a hundred times as long."""
    font = FontProperties(size=style.get("fontsize"))
    width, own, _ = renderer.get_text_width_height_descent(name, font, ismath=False)
    _, line, _ = renderer.get_text_width_height_descent("lp", font, ismath=False)  # what a line takes at least
    return np.array([width, max(own, line) + 1])


def _first_free(
    anchor: np.ndarray, extent: np.ndarray, taken: np.ndarray, frame: Bbox
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


def _written(axes: Axes, point: _Point, where: _Place, style: Mapping[str, Any]) -> Text:
    (x, y, name), (dx, dy, across, up) = point, where
    text = axes.annotate(name, (x, y), (dx, dy), textcoords="offset points", ha=across, va=up, **style)
    text.set_parse_math(False)
    return text


def _around(places: np.ndarray, reach: float) -> np.ndarray:
    """Return boxes (left, low, right, high) that reach that far around each place."""
    return np.concatenate([places - reach, places + reach], axis=1)

"""Names beside points, placed so that none covers another."""

from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.transforms import Bbox

_PLACES = (
    (7, 0, "left", "center"), (5, -5, "left", "top"), (-5, 5, "right", "bottom"), (5, 5, "left", "bottom"),
    (0, -8, "center", "top"), (0, 8, "center", "bottom"), (-7, 0, "right", "center"), (-5, -5, "right", "top"),
    (18, -16, "left", "top"), (-18, 16, "right", "bottom"),
)  # fmt: skip


def place(axes: Axes, points: list[tuple[float, float, str]], lines: list[tuple[float, float]], **style) -> list[Text]:
    """Write each point's name at the first free place around it; a name with no free place is left out.

    Earlier points come first. No name covers a point or one of the places on `lines`; a point without a name only keeps
    its place free. Returns the texts that stand.
    """
    figure = axes.figure
    renderer = figure.canvas.get_renderer()
    taken = [_around(axes.transData.transform(point[:2]), 4) for point in points]
    drawn = [_around(axes.transData.transform(point), 1) for point in lines]
    frame = axes.get_window_extent(renderer)
    standing = []
    for index, (x, y, name) in enumerate(points):
        others = taken[:index] + taken[index + 1 :] + drawn
        text = _first_free(axes, (x, y, name), others, frame, renderer, style=style)
        if text is not None:
            standing.append(text)
            taken.append(text.get_window_extent(renderer))
    return standing


def _first_free(axes, point, taken, frame, renderer, *, style):
    x, y, name = point
    if not name:
        return None
    for dx, dy, across, up in _PLACES:
        text = axes.annotate(name, (x, y), (dx, dy), textcoords="offset points", ha=across, va=up, **style)
        text.set_parse_math(False)
        box = text.get_window_extent(renderer)
        inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
        if inside and not any(box.overlaps(other) for other in taken):
            return text
        text.remove()
    return None


def _around(point, reach):
    x, y = point
    return Bbox.from_extents(x - reach, y - reach, x + reach, y + reach)

"""A line small enough for a table: the last runs of a series as the path of an SVG."""

from collections.abc import Sequence
from itertools import pairwise, takewhile

from prism_bench.analysis.trend.windows import BoardCourse

WIDTH, HEIGHT = 96, 22
_CALM = 0.02  # relative: a series within this much of its middle is drawn as flat as it is


def recent(series: BoardCourse, most: int) -> list[float]:
    """Return the last values of the series that the GPU of the newest one measured: no line goes across GPUs."""
    boards = series.boards.tolist()[::-1]
    same = list(takewhile(lambda board: board == boards[0], boards))
    return series.values[-min(most, len(same)) :].tolist() if same else []


def sparkline(values: Sequence[float]) -> str | None:
    """Return the path through the values from left to right; None with fewer than two of them.

    The range is that of the values, but never less than a few percent: noise does not look like news.
    """
    if len(values) < 2:
        return None
    low, high = float(min(values)), float(max(values))
    middle = (low + high) / 2
    reach = max(high - middle, _CALM * middle) or 1.0
    step = WIDTH / (len(values) - 1)
    points = [(index * step, HEIGHT / 2 - (float(value) - middle) / reach * (HEIGHT / 2 - 2))
              for index, value in enumerate(values)]  # fmt: skip
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in _thinned(points))


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points without those that repeat the height of the one before and of the one after."""
    inner = [b for (a, b), (_, c) in zip(pairwise(points), pairwise(points[1:]), strict=False)
             if not round(a[1], 1) == round(b[1], 1) == round(c[1], 1)]  # fmt: skip
    return [points[0], *inner, points[-1]]

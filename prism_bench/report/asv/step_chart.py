"""A series with its step: a dot for each run, a line for the level before and after."""

from matplotlib.ticker import MaxNLocator

from prism_bench.analysis.trend import Course, Step
from prism_bench.report.svg import INK, canvas, inline, tick
from prism_bench.units import time_text

_WIDTH, _HEIGHT = 460, 120
_AROUND = 45  # runs shown before and after the step


def step_chart(series: Course, step: Step, place: int, began: int, name: str) -> str:
    """Draw the chart as inline SVG.

    `place` is the step's first run in the series, `began` that of the level before; `name` sets its ids apart.
    """
    start, end = max(0, place - _AROUND), min(len(series.values), place + _AROUND)
    levels = ((max(start, began), place - 1, step.before), (place, min(end, place + step.nights) - 1, step.after))
    context, figure_of = canvas(_WIDTH, _HEIGHT, name)
    with context:
        figure = figure_of()
        axes = figure.add_subplot()
        figure.subplots_adjust(left=62 / _WIDTH, right=1 - 8 / _WIDTH, bottom=14 / _HEIGHT, top=1 - 10 / _HEIGHT)
        axes.plot(range(start, end), series.values[start:end], "o", markersize=2.6, markerfacecolor=INK["second"],
                  markeredgewidth=0, clip_on=False)  # fmt: skip
        for first, last, level in levels:
            axes.plot((first, last), (level, level), color=INK["accent"], linewidth=1.6)
        axes.axvline(place - 0.5, color=INK["rule"], linewidth=0.8, linestyle=(0, (3, 3)))
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.yaxis.set_major_formatter(lambda value, _: tick(time_text(value)))
        axes.set_xticks([])
        label = f"{step.key.case}: {time_text(step.before)} before, {time_text(step.after)} after"
        return inline(figure, label, prefix=f"{name}-")

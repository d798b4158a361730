"""Kernel against best peer against CPU: bars on a logarithmic scale, one picture per label."""

import math

from matplotlib.ticker import LogLocator, NullFormatter

from prism_bench.analysis.reading import Reading
from prism_bench.report.svg import INK, canvas, inline, tick
from prism_bench.units import time_text

_SERIES = (
    ("cold_time", INK["accent"]),
    ("best_peer_time", INK["second"]),
    ("cpu", INK["third"]),
)
_BAR, _GROUP_GAP, _MARGIN = 12, 15, 44


def rivals_charts(reading: Reading, width: int) -> dict[str, str]:
    """Inline SVG by label, `width` pixels wide; a label where nothing can be compared is absent."""
    rows = compared(reading)
    labels = sorted(rows["label"].unique())
    return {label: _chart(rows[rows["label"] == label], label, width) for label in labels}


def compared(reading: Reading):
    """The rows of the summary with a kernel and a rival to it, or with the CPU alone where there was no device.

    `cpu` is the CPU's wall time, whether it stood beside a device or was all that ran.
    """
    frame = reading.frame.assign(cpu=reading.frame["cpu_time"].fillna(reading.frame["wall_time"]))
    beside = frame["cold_time"].notna() & (frame["best_peer_time"].notna() | frame["cpu"].notna())
    alone = frame["cpu"].notna() & frame["cold_time"].isna().all()
    return frame[(beside | alone) & frame["ceiling"].isna()]


def _chart(rows, label, width):
    bars = [[(row[key], colour) for key, colour in _SERIES if row[key] == row[key]] for _, row in rows.iterrows()]
    body = sum(len(group) * _BAR + _GROUP_GAP for group in bars)
    height, name = body + _MARGIN, f"bars{label}{width}"
    context, figure_of = canvas(width, height, name)
    with context:
        figure = figure_of()
        axes = figure.add_subplot()
        room = min(190, width * 0.36)
        figure.subplots_adjust(left=room / width, right=1 - 58 / width, bottom=30 / height, top=1 - 14 / height)
        _scale(axes, [seconds for group in bars for seconds, _ in group], body, width)
        _draw(axes, bars, list(rows["implementation"]))
        return inline(figure, f"Times of {len(rows)} cases at {label}: kernel, best library, CPU", prefix=f"{name}-")


def _scale(axes, times, body, width):
    axes.set(xscale="log", ylim=(body, 0))
    low = 10 ** math.floor(math.log10(min(times)))
    axes.set_xlim(low / (2 if min(times) < low * 1.6 else 1), max(times) * 1.05)
    axes.xaxis.set_major_formatter(lambda seconds, _: tick(time_text(seconds)))
    decades = math.log10(axes.get_xlim()[1] / axes.get_xlim()[0])
    if decades < 1.7:
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    elif width < 500:
        axes.xaxis.set_major_locator(LogLocator(numticks=4))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, axis="x", which="major", color=INK["rule"], linewidth=0.5, alpha=0.6)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0, pad=8)


def _draw(axes, bars, names):
    left, top, places = axes.get_xlim()[0], _GROUP_GAP / 2, []
    for group in bars:
        places.append(top + len(group) * _BAR / 2)
        for seconds, colour in group:
            axes.barh(top + _BAR / 2, seconds - left, _BAR - 2.5, left=left, color=colour, linewidth=0)
            axes.annotate(time_text(seconds).replace("us", "µs"), (seconds, top + _BAR / 2), (4, -0.4),
                          textcoords="offset points", va="center", fontsize=9.5, color=INK["muted"])  # fmt: skip
            top += _BAR
        top += _GROUP_GAP
    axes.set_yticks(places, names)
    for text in axes.get_yticklabels():
        text.set(parse_math=False, color=INK["ink"])

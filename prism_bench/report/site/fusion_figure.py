"""A chain before and after as one picture: a bar for each stage, and between them where the saved time went."""

from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib.ticker import MaxNLocator

from prism_bench.analysis.fusion import ChainLedger, StageRow
from prism_bench.errors import ResultsError
from prism_bench.report.svg import INK, canvas, inline, tick
from prism_bench.units import time_text

_WIDTH, _ROW, _AROUND, _LEFT = 560, 21, 40, 132
_PARTS = (("launches", "fewer launches", "second"), ("traffic", "fewer bytes", "third"), ("rest", "the rest", "warm"))


@dataclass(frozen=True)
class _Bar:
    """A bar from `start` to `end` in seconds, with its name, its words and its ink."""

    name: str
    start: float
    end: float
    ink: str
    words: str


def fusion_figure(ledger: ChainLedger) -> str:
    """The waterfall as inline SVG: separate launches, what each cause takes off, the fused stage.

    A ResultsError where the separate launches, or all fused stages, have no cold time.
    """
    bars = list(_bars(ledger))
    if len(bars) < 2:
        raise ResultsError(f"{ledger.chain} {ledger.label}: no cold times of both sides")
    height, name = len(bars) * _ROW + _AROUND, f"fusion-{ledger.chain}-{ledger.label}"
    context, figure_of = canvas(_WIDTH, height, name)
    with context:
        figure = figure_of()
        axes = figure.add_subplot()
        figure.subplots_adjust(left=_LEFT / _WIDTH, right=1 - 78 / _WIDTH, bottom=30 / height, top=1 - 6 / height)
        _draw(axes, bars)
        return inline(
            figure, f"{ledger.chain} at {ledger.label}: separate launches against fused ones", prefix=f"{name}-"
        )


def _bars(ledger) -> Iterator[_Bar]:
    before = ledger.row("baseline")
    base = before.value("cold_time") if before else None
    if base is None:
        return
    yield _Bar("separate launches", 0.0, base, "ink", time_text(base))
    for row in ledger.rows:
        if row is not before and row.value("cold_time"):
            yield from _stage(row, base)


def _stage(row: StageRow, base: float) -> Iterator[_Bar]:
    saved, place = row.savings.get("cold_time"), base
    for attribute, words, ink in _PARTS if saved and saved.rest is not None else ():
        part = getattr(saved, attribute)
        yield _Bar(words, place, place - part, ink, ("−" if part >= 0 else "+") + time_text(abs(part)))
        place -= part
    cold, ratio = row.value("cold_time"), row.speedups.get("cold_time")
    times = f", {ratio.ratio:.2f}x" if ratio and ratio.ratio else ""
    yield _Bar(row.stage, 0.0, cold, "accent", f"{time_text(cold)}{times}")


def _draw(axes, bars):
    most = max(max(bar.start, bar.end) for bar in bars)
    axes.set(xlim=(min(0.0, *(min(bar.start, bar.end) for bar in bars)), most * 1.02), ylim=(len(bars) - 0.5, -0.5))
    for place, bar in enumerate(bars):
        left, right = sorted((bar.start, bar.end))
        axes.barh(place, right - left, 0.62, left=left, color=INK[bar.ink], linewidth=0)
        axes.annotate(tick(bar.words.replace(".00 ", " ")), (right, place), (5, -0.4), textcoords="offset points",
                      va="center", fontsize=10, color=INK["muted"], annotation_clip=False)  # fmt: skip
    axes.set_yticks(range(len(bars)), [bar.name for bar in bars])
    axes.tick_params(axis="y", length=0, labelsize=10)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(lambda value, _: tick(time_text(value)) if value else "0")
    axes.tick_params(axis="x", labelsize=9)
    axes.spines["left"].set_visible(False)
    axes.grid(True, axis="x", color=INK["rule"], linewidth=0.5, alpha=0.6)
    axes.set_axisbelow(True)

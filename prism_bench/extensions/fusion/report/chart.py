"""Before and after: each chain's stages as bars from zero, one panel per chain and workload, as a PNG."""

import io
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from prism_bench.errors import ResultsError
from prism_bench.extensions.fusion.benefit import ChainLedger, StageRow
from prism_bench.extensions.fusion.report.bars import Moved, Panel, StageBars, Times, launched

_INK = MappingProxyType({"ink": "#1c1e21", "muted": "#62656b", "rule": "#dedad0", "before": "#8a8f98",
                         "after": "#1f4e8c", "pale": "#e3e1da"})  # fmt: skip
_SETTINGS: Mapping[Any, Any] = MappingProxyType({
    "font.family": "sans-serif", "font.size": 9, "text.color": _INK["ink"], "axes.edgecolor": _INK["rule"],
    "xtick.color": _INK["rule"], "ytick.color": _INK["rule"], "xtick.labelcolor": _INK["muted"],
    "ytick.labelcolor": _INK["ink"], "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
})  # fmt: skip
_COLUMNS, _WIDTH, _BAR, _AROUND = 2, 10.0, 0.42, 1.15


def fusion_picture(ledgers: Sequence[ChainLedger]) -> bytes:
    """Return the picture of all ledgers whose baseline and a fused stage have cold times.

    Where none has, the picture is of the bytes that all of them move. A ResultsError where there is nothing before or
    nothing after.
    """
    kind = next((kind for kind in (Times(), Moved()) if any(map(kind.shows, ledgers))), None)
    if kind is None:
        raise ResultsError("no chain has a baseline and a fused stage: there is nothing to draw")
    shown = [one for one in ledgers if kind.shows(one)]
    lines = -(-len(shown) // _COLUMNS)
    most = max(len(launched(one)) for one in shown)
    with matplotlib.rc_context(dict(_SETTINGS)):
        figure = FigureCanvasAgg(Figure((_WIDTH, lines * (most * _BAR + _AROUND)), dpi=150)).figure
        panels = list(figure.subplots(lines, _COLUMNS, squeeze=False).flat)
        for axes, one in zip(panels, shown, strict=False):
            _panel(axes, one, kind.panel(one), most)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        _legend(figure, kind.legend)
        figure.tight_layout(w_pad=2.5, h_pad=1.8, rect=(0, 0.3 / figure.get_figheight(), 1, 1))
        stream = io.BytesIO()
        figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def _legend(figure: Figure, meanings: Mapping[str, str]) -> None:
    patches = [Patch(facecolor=_INK[name], label=words) for name, words in meanings.items()]
    figure.legend(handles=patches, loc="lower center", ncols=3, frameon=False, fontsize=8.5)


def _panel(axes: Axes, ledger: ChainLedger, panel: Panel, most: int) -> None:
    for place, bar in enumerate(panel.bars):
        _bar(axes, place, bar)
    longest = max(length for bar in panel.bars if bar for length, _ in bar.lengths)
    rows = launched(ledger)
    axes.set_yticks(range(len(rows)), [f"{row.stage}\n{_launches(row)}" for row in rows])
    axes.set(ylim=(most - 0.4, -0.6), xlim=(0, longest * 1.75))
    axes.set_xlabel(panel.axis, fontsize=8, color=_INK["muted"])
    axes.tick_params(axis="y", length=0)
    title = f"{ledger.chain.replace('_', ' ')}, {ledger.label}"
    axes.set_title(title, loc="left", fontsize=10.5, weight="bold", pad=17)
    axes.text(0, 1.03, panel.under_title, transform=axes.transAxes, fontsize=7.5, color=_INK["muted"])


def _bar(axes: Axes, place: int, bar: StageBars | None) -> None:
    right_of: dict[str, Any] = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
    if bar is None:
        axes.annotate("not measured", (0, place), color=_INK["muted"], **right_of)
        return
    for length, colour in bar.lengths:
        axes.barh(place, length, 0.72 if colour == "pale" else 0.46, color=_INK[colour], linewidth=0)
    axes.annotate(bar.words, (bar.lengths[0][0], place), fontsize=8.5, **right_of)


def _launches(row: StageRow) -> str:
    return f"{row.plan.launches} launch{'' if row.plan.launches == 1 else 'es'}"

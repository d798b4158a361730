"""Before and after: each chain's stages as bars from zero, one panel per chain and workload, as a PNG.

A solid bar is the cold time on the device. Where the host takes longer to issue the launches than the device to do
them, a pale bar behind it shows that.
"""

import io
from collections.abc import Sequence
from types import MappingProxyType

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from prism_bench.analysis.fusion import ChainLedger, StageRow
from prism_bench.analysis.fusion.published import STAGES, published_rows
from prism_bench.errors import ResultsError
from prism_bench.report.fusion_words import ratio_words
from prism_bench.report.svg import tick
from prism_bench.units import bytes_text, time_text

_INK = MappingProxyType({"ink": "#1c1e21", "muted": "#62656b", "rule": "#dedad0", "before": "#8a8f98",
                         "after": "#1f4e8c", "pale": "#e3e1da"})  # fmt: skip
_SETTINGS = MappingProxyType({
    "font.family": "sans-serif", "font.size": 9, "text.color": _INK["ink"], "axes.edgecolor": _INK["rule"],
    "xtick.color": _INK["rule"], "ytick.color": _INK["rule"], "xtick.labelcolor": _INK["muted"],
    "ytick.labelcolor": _INK["ink"], "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
})  # fmt: skip
_COLUMNS, _WIDTH, _BAR, _AROUND = 2, 10.0, 0.42, 1.15


def fusion_picture(ledgers: Sequence[ChainLedger]) -> bytes:
    """The picture of all ledgers in which the baseline and a fused stage have cold times.

    A ResultsError where there is none.
    """
    shown = [one for one in ledgers if _measured(one)]
    if not shown:
        raise ResultsError("no chain has cold times of its baseline and of a fused stage: there is nothing to draw")
    lines = -(-len(shown) // _COLUMNS)
    most = max(len(_launched(one)) for one in shown)
    with matplotlib.rc_context(dict(_SETTINGS)):
        figure = FigureCanvasAgg(Figure((_WIDTH, lines * (most * _BAR + _AROUND)), dpi=150)).figure
        panels = list(figure.subplots(lines, _COLUMNS, squeeze=False).flat)
        for axes, one in zip(panels, shown, strict=False):
            _panel(axes, one, most)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        _legend(figure)
        figure.tight_layout(w_pad=2.5, h_pad=1.8, rect=(0, 0.3 / figure.get_figheight(), 1, 1))
        stream = io.BytesIO()
        figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def _launched(ledger: ChainLedger) -> list[StageRow]:
    """The stages that are launched: what is served has another clock, and stands in the tables."""
    return [row for row in ledger.rows if row.plan.launches]


def _measured(ledger: ChainLedger) -> bool:
    before = ledger.row("baseline")
    fused = [row for row in ledger.rows if row is not before and row.value("cold_time")]
    return bool(before and before.value("cold_time") and fused)


def _legend(figure):
    meanings = {"before": "separate launches, cold time on the device", "after": "fused, and times faster",
                "pale": "longer where the host issues the launches one by one"}  # fmt: skip
    patches = [Patch(facecolor=_INK[name], label=words) for name, words in meanings.items()]
    figure.legend(handles=patches, loc="lower center", ncols=3, frameon=False, fontsize=8.5)


def _panel(axes, ledger, most):
    rows = _launched(ledger)
    unit, scale = ("ms", 1e3) if max(_longest(row) for row in rows) >= 1e-3 else ("µs", 1e6)
    for place, row in enumerate(rows):
        _bar(axes, place, row, scale)
    axes.set_yticks(range(len(rows)), [f"{row.stage}\n{_launches(row)}" for row in rows])
    axes.set(ylim=(most - 0.4, -0.6), xlim=(0, max(_longest(row) for row in rows) * scale * 1.75))
    axes.set_xlabel(f"{unit} per evaluation", fontsize=8, color=_INK["muted"])
    axes.tick_params(axis="y", length=0)
    title = f"{ledger.chain.replace('_', ' ')}, {ledger.label}"
    axes.set_title(title, loc="left", fontsize=10.5, weight="bold", pad=17)
    axes.text(0, 1.03, _under_title(ledger), transform=axes.transAxes, fontsize=7.5, color=_INK["muted"])


def _bar(axes, place, row, scale):
    colour = _INK["before"] if row.stage == "baseline" else _INK["after"]
    cold, issued = row.value("cold_time"), row.value("issued")
    if cold is None:
        axes.annotate("not measured", (0, place), (5, 0), textcoords="offset points", va="center", color=_INK["muted"])
        return
    if issued and issued > cold:
        axes.barh(place, issued * scale, 0.72, color=_INK["pale"], linewidth=0)
    axes.barh(place, cold * scale, 0.46, color=colour, linewidth=0)
    end = _longest(row) * scale
    axes.annotate(_words(row), (end, place), (5, 0), textcoords="offset points", va="center", fontsize=8.5)


def _words(row: StageRow) -> str:
    """`20.0 µs, 1.72x` above `40.0 µs issued, 417 kB`; the middle is left out where the device takes longer."""
    first = [tick(time_text(row.value("cold_time")))]
    if "cold_time" in row.speedups:
        first.append(ratio_words(row.speedups["cold_time"]))
    longer = _longest(row) > row.value("cold_time")
    second = [f"{tick(time_text(_longest(row)))} issued"] if longer else []
    return f"{', '.join(first)}\n{', '.join([*second, bytes_text(row.plan.bytes)])}"


def _launches(row):
    return f"{row.plan.launches} launch{'es' if row.plan.launches > 1 else ''}"


def _longest(row):
    return max(row.value("cold_time") or 0.0, row.value("issued") or 0.0)


def _under_title(ledger):
    """The workload, and what was published of the chain without one."""
    quoted = next((one for one in published_rows() if one.quantity == "time" and ledger.chain in one.chains), None)
    if quoted is None:
        return ledger.workload
    times = ", ".join(f"{quoted.stages[stage] * 1e6:.0f}" for stage in STAGES)
    return f"{ledger.workload}; published, without a size: {times} µs"

"""Fusion in pictures: each chain before and after, and its page on the site."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from prism_bench.errors import ResultsError, UsageError
from prism_bench.extensions.fusion import benefit as fusion
from prism_bench.extensions.fusion.benefit import ChainLedger, Sources, StageRow
from prism_bench.extensions.fusion.benefit.ledger import read_times
from prism_bench.extensions.fusion.benefit.saving import STAGES, published_rows
from prism_bench.extensions.fusion.report.terminal import (
    LEGEND,
    fusion_json,
    quantity_text,
    ratio_words,
    signed,
    verdict,
)
from prism_bench.report.charts import png, tick
from prism_bench.report.headline import times_text
from prism_bench.report.site.cases import counters
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page, kernel_page
from prism_bench.spec.kernel import Chain, KernelSpec
from prism_bench.spec.workload import LABELS
from prism_bench.units import bytes_text, count_text, time_text

if TYPE_CHECKING:  # Matplotlib is an extra: the picture imports it when it is drawn
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from prism_bench.extensions.persistent.records import LatencyRecord


# What the bars of a picture of fusion show: times where a record has them, else the bytes that move.


@dataclass(frozen=True)
class StageBars:
    """The lengths of a stage's bars, the longest first, each with its colour's name; words next to them."""

    lengths: tuple[tuple[float, str], ...]
    words: str


@dataclass(frozen=True)
class Panel:
    """The bars of one chain at one workload, None if there is nothing to show, with words for axis and title."""

    axis: str
    under_title: str
    bars: tuple[StageBars | None, ...]


def launched(ledger: ChainLedger) -> list[StageRow]:
    """Return the stages that have bars: what is served has another clock, and is in the tables alone."""
    return [row for row in ledger.rows if row.plan.launches]


class Times:
    """Cold times on the device, solid; behind them, pale, where the host takes longer to issue the launches."""

    legend: ClassVar[Mapping[str, str]] = {
        "before": "separate launches, cold time on the device",
        "after": "fused, and times faster",
        "pale": "longer where the host issues the launches one by one",
    }

    def shows(self, ledger: ChainLedger) -> bool:
        """Return whether the baseline and a fused stage have times."""
        before = ledger.row("baseline")
        fused = [row for row in ledger.rows if row is not before and row.value("cold_time")]
        return bool(before and before.value("cold_time") and fused)

    def panel(self, ledger: ChainLedger) -> Panel:
        """Return the bars of a chain."""
        rows = launched(ledger)
        most = max(map(self._longest, rows))
        unit, scale = ("ms", 1e3) if most >= 1e-3 else ("µs", 1e6)
        return Panel(f"{unit} per evaluation", self._under(ledger), tuple(self._bar(row, scale) for row in rows))

    def _under(self, ledger: ChainLedger) -> str:
        """Return the workload, and what was published of the chain without one."""
        quoted = next(
            (
                published_row
                for published_row in published_rows()
                if published_row.quantity == "time" and ledger.chain in published_row.chains
            ),
            None,
        )
        if quoted is None:
            return ledger.workload
        times = ", ".join(f"{quoted.stages[stage] * 1e6:.0f}" for stage in STAGES)
        return f"{ledger.workload}; published (no size): {times} µs"

    def _bar(self, row: StageRow, scale: float) -> StageBars | None:
        cold = row.value("cold_time")
        if cold is None:
            return None
        longer = self._longest(row)
        behind = ((longer * scale, "pale"),) if longer > cold else ()
        return StageBars((*behind, (cold * scale, colour(row))), self._words(row, longer if behind else None))

    def _words(self, row: StageRow, issued: float | None) -> str:
        """Return `20.0 µs, 1.72x` above `40.0 µs issued, 417 kB`, without the middle where the device takes longer."""
        first = [tick(time_text(row.value("cold_time")))]
        if "cold_time" in row.speedups:
            first.append(ratio_words(row.speedups["cold_time"]))
        second = [f"{tick(time_text(issued))} issued"] if issued else []
        return f"{', '.join(first)}\n{', '.join([*second, bytes_text(row.plan.bytes)])}"

    def _longest(self, row: StageRow) -> float:
        return max(row.value("cold_time") or 0.0, row.value("issued") or 0.0)


class Moved:
    """Bytes of one evaluation, as far as all its stages know them: by counters, on the emulator, or by the plans."""

    legend: ClassVar[Mapping[str, str]] = {
        "before": "bytes that separate launches move",
        "after": "bytes that fused forms move; no times were measured",
    }

    def shows(self, ledger: ChainLedger) -> bool:
        """Return whether there is a baseline and a fused stage."""
        return ledger.row("baseline") is not None and len(launched(ledger)) > 1

    def panel(self, ledger: ChainLedger) -> Panel:
        """Return the bars of a chain."""
        rows = launched(ledger)
        how, moved = self.moved(rows)
        unit, scale = next(
            (unit, scale)
            for unit, scale in (("GB", 1e-9), ("MB", 1e-6), ("kB", 1e-3), ("B", 1.0))
            if max(moved) * scale >= 1 or unit == "B"
        )
        bars = (self._bar(row, own_bytes, moved[0], scale) for row, own_bytes in zip(rows, moved, strict=True))
        return Panel(f"{unit} per evaluation, {how}", ledger.workload, tuple(bars))

    def moved(self, rows: Sequence[StageRow]) -> tuple[str, list[float]]:
        """Return the bytes of all stages, and from where they are."""
        for name, how in (("dram_bytes", "counted in memory"), ("emulated", "counted on the emulator")):
            values = [value for row in rows if (value := row.value(name))]
            if len(values) == len(rows):
                return how, values
        return "by the plans", [float(row.plan.bytes) for row in rows]

    def _bar(self, row: StageRow, own_bytes: float, before: float, scale: float) -> StageBars:
        """Return `384 kB, -11 %` above `7 temporaries, 15.6 kB`."""
        less = [] if row.stage == "baseline" or not before else [f"{own_bytes / before - 1:+.0%}".replace("%", " %")]
        count, size = len(row.plan.temporaries), bytes_text(row.plan.temporary_bytes)
        kept = f"{count} temporar{'y' if count == 1 else 'ies'}, {size}" if count else "no temporaries"
        return StageBars(((own_bytes * scale, colour(row)),), f"{', '.join([bytes_text(own_bytes), *less])}\n{kept}")


def colour(row: StageRow) -> str:
    """Return the name of the stage's colour."""
    return "before" if row.stage == "baseline" else "after"


# Before and after: each chain's stages as bars from zero, one panel per chain and workload, as a PNG.

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

    Where none has, the picture is of the bytes that all of them move. ResultsError if there is nothing before or
    nothing after.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    kind = next((kind for kind in (Times(), Moved()) if any(map(kind.shows, ledgers))), None)
    if kind is None:
        raise ResultsError("no chain has a baseline and a fused stage: there is nothing to draw")
    shown = [ledger for ledger in ledgers if kind.shows(ledger)]
    lines = -(-len(shown) // _COLUMNS)
    most = max(len(launched(ledger)) for ledger in shown)
    with rc_context(dict(_SETTINGS)):
        figure = FigureCanvasAgg(Figure((_WIDTH, lines * (most * _BAR + _AROUND)), dpi=150)).figure
        panels = list(figure.subplots(lines, _COLUMNS, squeeze=False).flat)
        for axes, ledger in zip(panels, shown, strict=False):
            _panel(axes, ledger, kind.panel(ledger), most)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        _legend(figure, kind.legend)
        figure.tight_layout(w_pad=2.5, h_pad=1.8, rect=(0, 0.3 / figure.get_figheight(), 1, 1))
        return png(figure)


def _legend(figure: "Figure", meanings: Mapping[str, str]) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(facecolor=_INK[name], label=meaning) for name, meaning in meanings.items()]
    figure.legend(handles=patches, loc="lower center", ncols=3, frameon=False, fontsize=8.5)


def _panel(axes: "Axes", ledger: ChainLedger, panel: Panel, most: int) -> None:
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


def _bar(axes: "Axes", place: int, bar: StageBars | None) -> None:
    right_of: dict[str, Any] = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
    if bar is None:
        axes.annotate("not measured", (0, place), color=_INK["muted"], **right_of)
        return
    for length, colour in bar.lengths:
        axes.barh(place, length, 0.72 if colour == "pale" else 0.46, color=_INK[colour], linewidth=0)
    axes.annotate(bar.words, (bar.lengths[0][0], place), fontsize=8.5, **right_of)


def _launches(row: StageRow) -> str:
    return f"{row.plan.launches} launch{'' if row.plan.launches == 1 else 'es'}"


# A chain before and after as bars: one for each stage, and between them where the saved time went.
#
# Where no record has times, the bytes that the stages move are shown instead.

_PARTS = (
    ("launches", "fewer launches", "second"),
    ("traffic", "fewer bytes", "third"),
    ("rest", "unexplained", "warm"),
)


@dataclass(frozen=True)
class _WaterfallBar:
    """A bar from `start` to `end`, with its name, the name of its ink, and words next to it."""

    name: str
    start: float
    end: float
    ink: str
    words: str


class Waterfall(TypedDict):
    """`unit` (`s` or `B`) and the `bars`: separate launches, what each cause takes off, the fused stage."""

    unit: str
    bars: list[dict[str, Any]]


def waterfall(ledger: ChainLedger) -> Waterfall:
    """Return the bars of a chain, fewer than two where there are no separate launches, or nothing fused."""
    timed = list(_timed(ledger))
    unit, bars = ("s", timed) if len(timed) > 1 else ("B", list(_moved(ledger)))
    return {"unit": unit, "bars": [asdict(bar) for bar in bars]}


def _timed(ledger: ChainLedger) -> Iterator[_WaterfallBar]:
    before = ledger.row("baseline")
    base = before.value("cold_time") if before else None
    if base is None:
        return
    yield _WaterfallBar("separate launches", 0.0, base, "ink", time_text(base))
    for row in ledger.rows:
        cold = row.value("cold_time")
        if row is not before and cold:
            yield from _stage(row, base, cold)


def _stage(row: StageRow, base: float, cold: float) -> Iterator[_WaterfallBar]:
    saved, place = row.savings.get("cold_time"), base
    for attribute, meaning, ink in _PARTS if saved and saved.rest is not None else ():
        part = getattr(saved, attribute)
        yield _WaterfallBar(meaning, place, place - part, ink, ("−" if part >= 0 else "+") + time_text(abs(part)))
        place -= part
    ratio = row.speedups.get("cold_time")
    times = f", {ratio.ratio:.2f}x" if ratio and ratio.ratio else ""
    yield _WaterfallBar(row.stage, 0.0, cold, "accent", f"{time_text(cold)}{times}")


def _moved(ledger: ChainLedger) -> Iterator[_WaterfallBar]:
    """Yield the bytes of each stage, from where those of all stages are known."""
    rows = launched(ledger)
    _, moved = Moved().moved(rows)
    for row, own_bytes in zip(rows, moved, strict=True):
        first, count = row.stage == "baseline", row.plan.launches
        label = f"{bytes_text(own_bytes)}, {count} launch{'es' if count > 1 else ''}"
        yield _WaterfallBar(
            "separate launches" if first else row.stage, 0.0, own_bytes, "ink" if first else "accent", label
        )


# Fusion: each chain before and after, where the saving comes from, and the published figures next to ours.

_ASKED = {"dram_bytes": "bytes through DRAM", "cold_time": "cold time", "hot_time": "hot time",
          "launch_time": "the host's time", "issued": "issued time", "energy": "energy", "error": "error"}  # fmt: skip


class ChainSaving(TypedDict):
    """What a fused stage saves of a chain, in seconds: `rest` is unexplained, `share` is its share of the saving."""

    chain: str
    label: str
    stage: str
    ratio: float | None
    seconds: float
    launches: float | None
    traffic: float | None
    rest: float | None
    cached: bool
    share: float | None


def page(context: SiteContext) -> Page:
    """Return the page of the chains of the catalogue."""
    chains = _chains(context)
    if not chains:
        nothing = {"ledgers": (), "savings": (), "timed": False, "answer": ""}
        return Page("fusion", "Fusion", {"chains": [], "source": None}, nothing, empty=True)
    sources = _sources(context, {spec.name for spec, _ in chains})
    ledgers = fusion.ledgers(chains, LABELS, sources)
    table = fusion.compared(ledgers)
    kernels = {chain.name: f"{kernel_page(spec.name)}.html" for spec, chain in chains}
    falls = [waterfall(ledger) for ledger in ledgers]
    known, savings = _known(ledgers), saved(ledgers)
    shown = {
        "ledgers": ledgers,
        "table": table,
        "waterfalls": falls,
        "kernels": kernels,
        "legend": LEGEND,
        "verdict": verdict,
        "quantity_text": quantity_text,
        "timed": sources.record is not None,
        "savings": savings,
        "answer": answer(savings),
        "prices": sources.prices(),
        "signed": signed,
        "known": known,
        "absent": [meaning for name, meaning in _ASKED.items() if name not in known],
    }
    view = fusion_json(ledgers, table, sources)
    scripts = ("plot.js", "pictures.js")
    return Page("fusion", "Fusion", view, shown, scripts=scripts, empty=sources.record is None)


def answer(savings: Sequence[ChainSaving]) -> str:
    """Return in how many chains the best fused stage is faster than separate launches, and by how much."""
    ratios = sorted(saving["ratio"] for saving in savings if saving["ratio"])
    faster = [ratio for ratio in ratios if ratio > 1]
    if not ratios:
        return ""
    if not faster:
        return f"Fusing makes none of {count_text(len(ratios), 'chain')} faster."
    reach = times_text(faster[0]) if len(faster) == 1 else f"{times_text(faster[0])} to {times_text(faster[-1])}"
    return f"The fused form is faster in {len(faster)} of {count_text(len(ratios), 'chain')} at their sizes: {reach}."


def saved(ledgers: Iterable[ChainLedger]) -> list[ChainSaving]:
    """Return what the fastest fused stage of each chain saves, the largest saving first."""
    savings = [saving for saving in map(_saved, ledgers) if saving]
    return sorted(savings, key=lambda saving: -saving["seconds"])


def _saved(ledger: ChainLedger) -> ChainSaving | None:
    rows = [row for row in ledger.rows if row.savings.get("cold_time") and row.value("cold_time")]
    best = min(rows, key=lambda row: row.value("cold_time") or 0.0, default=None)
    saving = best.savings.get("cold_time") if best else None
    if best is None or saving is None:
        return None
    ratio = best.speedups.get("cold_time")
    known = saving.rest is not None and saving.seconds > 0
    return {
        "chain": ledger.chain,
        "label": ledger.label,
        "stage": best.stage,
        "ratio": ratio.ratio if ratio else None,
        "seconds": saving.seconds,
        "launches": saving.launches,
        "traffic": saving.traffic,
        "rest": saving.rest,
        "cached": saving.cached,
        "share": (saving.rest or 0.0) / saving.seconds if known else None,
    }


def _known(ledgers: Iterable[ChainLedger]) -> set[str]:
    """Return the figures that any stage of any chain has: an empty column is left out."""
    return {name for ledger in ledgers for row in ledger.rows for name in _ASKED if row.value(name) is not None}


def _chains(context: SiteContext) -> list[tuple[KernelSpec, Chain]]:
    try:
        return fusion.chains_of(context.catalogue) if context.catalogue else []
    except UsageError:
        return []  # a catalogue without chains, which the page reports


def _sources(context: SiteContext, kernels: Set[str]) -> Sources:
    """Return the newest record of this machine that timed a chain."""
    measured = [case for case in context.cases.values() if case.case.kernel in kernels and case.case.measurements]
    newest = max(measured, key=lambda case: case.created, default=None)
    return Sources(
        newest.reading.record if newest else None,
        missing="no record of this machine timed a chain",
        uncounted="'prism-bench fuse --backend emulator' counts it",
        latencies=_latencies(context),
        counters=counters(str(context.places.profiles), context.machine),
    )


def _latencies(context: SiteContext) -> "LatencyRecord | None":
    """Return the newest times of served items; None if there are none that can be read."""
    try:
        return read_times(context.places.items)
    except ResultsError:
        return None

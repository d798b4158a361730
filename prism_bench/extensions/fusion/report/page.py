"""Fusion: each chain before and after, where the saving comes from, and the published figures next to ours."""

from collections.abc import Iterable, Sequence, Set
from typing import TYPE_CHECKING, TypedDict

from prism_bench.errors import ResultsError, UsageError
from prism_bench.extensions.fusion import benefit as fusion
from prism_bench.extensions.fusion.benefit import ChainLedger, Sources
from prism_bench.extensions.fusion.benefit.answers import read_times
from prism_bench.extensions.fusion.report.json_view import fusion_json
from prism_bench.extensions.fusion.report.waterfall import waterfall
from prism_bench.extensions.fusion.report.words import LEGEND, quantity_text, signed, verdict
from prism_bench.report.cells import times_text
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.counted import counters
from prism_bench.report.site.page import Page, kernel_page
from prism_bench.spec.kernel import Chain, KernelSpec
from prism_bench.spec.workload import LABELS
from prism_bench.units import count_text

if TYPE_CHECKING:
    from prism_bench.extensions.persistent.record import LatencyRecord

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
        empty = {"ledgers": (), "savings": (), "timed": False, "answer": ""}
        return Page("fusion", "Fusion", {"chains": [], "source": None}, empty)
    sources = _sources(context, {spec.name for spec, _ in chains})
    found = fusion.ledgers(chains, LABELS, sources)
    table = fusion.compared(found)
    kernels = {chain.name: f"{kernel_page(spec.name)}.html" for spec, chain in chains}
    falls = [waterfall(one) for one in found]
    known, savings = _known(found), saved(found)
    shown = {"ledgers": found, "table": table, "waterfalls": falls, "kernels": kernels, "legend": LEGEND,
             "verdict": verdict, "quantity_text": quantity_text, "timed": sources.record is not None,
             "savings": savings, "answer": answer(savings), "prices": sources.prices(), "signed": signed,
             "known": known, "absent": [words for name, words in _ASKED.items() if name not in known]}  # fmt: skip
    return Page("fusion", "Fusion", fusion_json(found, table, sources), shown, scripts=("plot.js", "pictures.js"))


def answer(savings: Sequence[ChainSaving]) -> str:
    """Return in how many chains the best fused stage is faster than separate launches, and by how much."""
    ratios = sorted(one["ratio"] for one in savings if one["ratio"])
    faster = [ratio for ratio in ratios if ratio > 1]
    if not ratios:
        return ""
    if not faster:
        return f"Fusing makes none of {count_text(len(ratios), 'chain')} faster."
    reach = times_text(faster[0]) if len(faster) == 1 else f"{times_text(faster[0])} to {times_text(faster[-1])}"
    return f"The fused form is faster in {len(faster)} of {count_text(len(ratios), 'chain')} at their sizes: {reach}."


def saved(ledgers: Iterable[ChainLedger]) -> list[ChainSaving]:
    """Return what the fastest fused stage of each chain saves, the largest saving first."""
    found = [one for one in map(_saved, ledgers) if one]
    return sorted(found, key=lambda one: -one["seconds"])


def _saved(ledger: ChainLedger) -> ChainSaving | None:
    rows = [row for row in ledger.rows if row.savings.get("cold_time") and row.value("cold_time")]
    best = min(rows, key=lambda row: row.value("cold_time") or 0.0, default=None)
    saving = best.savings.get("cold_time") if best else None
    if best is None or saving is None:
        return None
    ratio = best.speedups.get("cold_time")
    known = saving.rest is not None and saving.seconds > 0
    return {"chain": ledger.chain, "label": ledger.label, "stage": best.stage,
            "ratio": ratio.ratio if ratio else None, "seconds": saving.seconds,
            "launches": saving.launches, "traffic": saving.traffic, "rest": saving.rest, "cached": saving.cached,
            "share": (saving.rest or 0.0) / saving.seconds if known else None}  # fmt: skip


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
    measured = [one for one in context.cases.values() if one.case.kernel in kernels and one.case.measurements]
    newest = max(measured, key=lambda one: one.created, default=None)
    return Sources(newest.reading.record if newest else None, missing="no record of this machine timed a chain",
                   uncounted="'prism-bench fusion --emulate' counts it", latencies=_latencies(context),
                   counters=counters(str(context.places.profiles), context.machine))  # fmt: skip


def _latencies(context: SiteContext) -> "LatencyRecord | None":
    """Return the newest times of served items; None where there are none that can be read."""
    try:
        return read_times(None, context.places.items)
    except ResultsError:
        return None

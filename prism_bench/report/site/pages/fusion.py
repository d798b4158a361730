"""Fusion: each chain before and after, where the saving comes from, and the published figures beside ours."""

from markupsafe import Markup

from prism_bench.analysis import fusion
from prism_bench.analysis.fusion import Sources
from prism_bench.errors import ResultsError, UsageError
from prism_bench.report.fusion_json import fusion_json
from prism_bench.report.fusion_words import LEGEND, quantity_text, verdict
from prism_bench.report.site.chronicle import Chronicle
from prism_bench.report.site.figures import Figure
from prism_bench.report.site.page import Page, kernel_page
from prism_bench.workload import LABELS


def page(chronicle: Chronicle) -> Page:
    chains = _chains(chronicle)
    if not chains:
        return Page("fusion", "Fusion", {"chains": [], "source": None}, {"ledgers": ()})
    sources = _sources(chronicle, {spec.name for spec, _ in chains})
    found = fusion.ledgers(chains, LABELS, sources)
    table = fusion.compared(found)
    kernels = {chain.name: f"{kernel_page(spec.name)}.html" for spec, chain in chains}
    shown = {"ledgers": found, "table": table, "figures": _figures(found), "kernels": kernels, "legend": LEGEND,
             "verdict": verdict, "quantity_text": quantity_text, "timed": sources.record is not None}  # fmt: skip
    return Page("fusion", "Fusion", fusion_json(found, table, sources), shown)


def _chains(chronicle):
    try:
        return fusion.chains_of(chronicle.catalogue) if chronicle.catalogue else []
    except UsageError:
        return []  # a catalogue without chains: the page says so


def _sources(chronicle, kernels) -> Sources:
    """The newest record of this machine that timed a chain."""
    told = [one for one in chronicle.told.values() if one.case.kernel in kernels and one.case.measurements]
    newest = max(told, key=lambda one: one.created, default=None)
    if newest is None:
        return Sources(missing="no record of this machine timed a chain")
    return Sources(newest.reading.record)


def _figures(ledgers):
    """The picture of each ledger that has times, by chain and label; Matplotlib is not loaded for none."""
    timed = [one for one in ledgers if any(row.value("cold_time") for row in one.rows)]
    if not timed:
        return {}
    from prism_bench.report.site.fusion_figure import fusion_figure

    found = {}
    for one in timed:
        try:
            svg = fusion_figure(one)
        except ResultsError:
            continue
        found[one.chain, one.label] = Figure(f"fusion-{one.chain}-{one.label}", Markup(svg))
    return found

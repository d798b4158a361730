"""Kernel against CPU and library, all of them measured, as a status report would claim it."""

from collections.abc import Hashable, Mapping, Sequence
from statistics import geometric_mean, median
from typing import Any

from prism_bench.analysis.speedup import compared
from prism_bench.analysis.summary import number
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.report.site.pages.overview import case_link

_NUMBERS = ("cold_time", "end_to_end_time", "cpu", "cpu_ratio", "cpu_ratio_end_to_end", "best_peer_time", "peer_ratio")


def page(context: SiteContext) -> Page:
    """Return the page that compares kernels with the CPU and with libraries."""
    rows = compared(context.reading)
    cases = [_row(context, row) for row in rows.to_dict("records")]
    cases.sort(key=lambda row: -(row["cpu_ratio"] or 0))
    view = {"night": context.record.created, "device": bool(rows["cold_time"].notna().any()),
            "summary": _summary(cases), "cases": cases}  # fmt: skip
    return Page("speedup", "Speedup", view, scripts=("plot.js", "pictures.js"))


def _row(context: SiteContext, row: Mapping[Hashable, Any]) -> dict[str, Any]:
    return {"case": row["case"], "implementation": row["implementation"], "label": row["label"],
            "workload": row["workload"], "best_peer": row["best_peer"], "link": case_link(context, row["case"]),
            **{name: number(row[name]) for name in _NUMBERS}}  # fmt: skip


def _summary(cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return typical ratios: the median over the CPU, the geometric mean over libraries.

    A ratio is None where nothing was compared.
    """
    cpu, whole, peer = ([row[name] for row in cases if row[name]]
                        for name in ("cpu_ratio", "cpu_ratio_end_to_end", "peer_ratio"))  # fmt: skip
    return {"cpu": median(cpu) if cpu else None, "cpu_cases": len(cpu),
            "end_to_end": median(whole) if whole else None, "end_to_end_cases": len(whole),
            "slower_end_to_end": sum(ratio < 1 for ratio in whole),
            "peer": geometric_mean(peer) if peer else None, "peer_cases": len(peer),
            "faster_than_peer": sum(ratio >= 1 for ratio in peer)}  # fmt: skip

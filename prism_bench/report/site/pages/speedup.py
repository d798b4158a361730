"""Kernel against peers and the CPU, all of them measured: by class of peer, case by case, and by label."""

from collections.abc import Hashable, Mapping, Sequence
from statistics import median
from typing import Any

from prism_bench.analysis import peers as rivals
from prism_bench.analysis.run_analysis import compared, middle
from prism_bench.analysis.summary import number
from prism_bench.record.run_record import CaseResult
from prism_bench.report.headline import headline_text
from prism_bench.report.site.answers import case_link, speedup_answer
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import Page
from prism_bench.report.site.pages.overview import peer_links

_NUMBERS = ("cold_time", "end_to_end_time", "cpu", "cpu_ratio", "cpu_ratio_end_to_end", "best_peer_time", "peer_ratio")
_PICTURED = ("case", "implementation", "label", "cold_time", "best_peer_time")
PICTURED = 15  # cases of a label in its picture


def page(context: SiteContext) -> Page:
    """Return the page that compares kernels with their peers and with the CPU."""
    rows = compared(context.reading)
    results = {case.name: case for case in context.reading.cases}
    cases = [_row(context, row, results[row["case"]]) for row in rows.to_dict("records")]
    cases.sort(key=_order)
    peers = headline_text(context.reading.against_peers)
    answer = speedup_answer(context.reading.against_peers)
    view = {
        "night": context.record.created,
        "answer": answer,
        "device": bool(rows["cold_time"].notna().any()),
        "against_peers": context.reading.against_peers,
        "cpu": _against_cpu(cases),
        "cases": cases,
    }
    shown = {"most": PICTURED, "peers": peers, "peer_links": peer_links(context, peers.rows)}
    return Page(
        "speedup",
        "Speedup",
        view,
        shown,
        scripts=("plot.js", "pictures.js"),
        drawn={"cases": _pictured(cases)},
        empty=not any(row["peer_ratio"] or row["cpu_ratio"] for row in cases),
    )


def _order(row: Mapping[str, Any]) -> tuple[bool, float]:
    """Sort cases with a peer first, those furthest behind it ahead; the others by their ratio to the CPU."""
    return row["peer_ratio"] is None, row["peer_ratio"] or row["cpu_ratio"] or 0.0


def _pictured(cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the first cases of each label as the picture draws them: without the CPU where a peer has a time."""
    labels = dict.fromkeys(row["label"] for row in cases)
    first = [row for label in labels for row in [case for case in cases if case["label"] == label][:PICTURED]]
    return [
        {**{name: row[name] for name in _PICTURED}, "cpu": None if row["best_peer_time"] else row["cpu"]}
        for row in first
    ]


def _row(context: SiteContext, row: Mapping[Hashable, Any], case: CaseResult) -> dict[str, Any]:
    best = next(iter(rivals.peers(case)), None)
    peer = ", ".join(filter(None, [best.name, best.unstable_text])) if best else None
    return {
        "case": row["case"],
        "implementation": row["implementation"],
        "label": row["label"],
        "workload": row["workload"],
        "best_peer": row["best_peer"],
        "peer_words": peer,
        "link": case_link(context, row["case"]),
        **{name: number(row[name]) for name in _NUMBERS},
    }


def _against_cpu(cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return for each label how many cases have a time on the CPU, and the medians of both ratios to it."""
    rows = []
    for label in dict.fromkeys(row["label"] for row in sorted(cases, key=lambda row: row["label"])):
        compared = [row for row in cases if row["label"] == label and row["cpu_ratio"]]
        copied = [row["cpu_ratio_end_to_end"] for row in compared if row["cpu_ratio_end_to_end"]]
        if compared:
            rows.append(
                {
                    "label": label,
                    "cases": len(compared),
                    "cold": median(row["cpu_ratio"] for row in compared),
                    "end_to_end": middle(copied),
                    "copied": len(copied),
                    "slower": sum(ratio < 1 for ratio in copied),
                }
            )
    return rows

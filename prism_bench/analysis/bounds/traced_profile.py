"""Profiles of cases from a tracer (CUPTI, nsys): launches, gaps and copies of one call, and no counters."""

from prism_bench.analysis.bounds.ledger import LaunchLedger, LedgerRow
from prism_bench.profilers.metrics import LOGICAL
from prism_bench.record.run_record import JsonTable


def profiles(ledger: LaunchLedger, repeats: int = 1) -> dict[str, JsonTable]:
    """Return the profile part by case, from the ledger's range of its name, with `repeats` calls."""
    reason = f"{ledger.tool} traces and counts no hardware events; the tool ncu does"
    facts: JsonTable = {
        "tool": ledger.tool, "version": ledger.version, "set": "traced", "clock_control": "none",
        "cache_control": "none", "passes": 1, "kernels": [],
    }  # fmt: skip
    uncounted = {name: {"value": None, "unit": metric.unit, "reason": reason} for name, metric in LOGICAL.items()}
    return {
        row.name: {**facts, "values": uncounted | _traced(row, ledger.tool, repeats)}
        for row in ledger.ranges
        if row.name is not None
    }


def _traced(row: LedgerRow, tool: str, repeats: int) -> JsonTable:
    counted = {
        "profiler_duration": (row.kernel_seconds / repeats, "s"),
        "launches": (row.kernels / repeats, "1"),
        "launch_calls": (row.launch_calls / repeats, "1"),
        "gaps": (row.gap_count / repeats, "1"),
        "gap_seconds": (row.idle / repeats, "s"),
        "copies": (row.copies / repeats, "1"),
        "copied_bytes": (row.copied_bytes / repeats, "B"),
    }
    source = f"activity records of {tool}"
    return {name: {"value": number, "unit": unit, "source": source} for name, (number, unit) in counted.items()}

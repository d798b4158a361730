"""Nsight Systems' command lines: a capture between profiler marks, and its export as SQLite."""

from collections.abc import Sequence
from pathlib import Path

from prism_bench.profilers.tools import Tool


def capture(tool: Tool, report: Path, program: Sequence[str]) -> list[str]:
    """Return the command that traces what `program` does between its profiler marks into `report` (.nsys-rep)."""
    return [
        tool.program, "profile", "--trace", "cuda,nvtx", "--capture-range", "cudaProfilerApi",
        "--capture-range-end", "stop", "--cuda-graph-trace", "node", "--sample", "none", "--cpuctxsw", "none",
        "--force-overwrite", "true", "--output", str(report.with_suffix("")), *program,
    ]  # fmt: skip


def export(tool: Tool, report: Path, database: Path) -> list[str]:
    """Return the command that writes a report as an SQLite database."""
    return [
        tool.program,
        "export",
        "--type",
        "sqlite",
        "--force-overwrite",
        "true",
        "--output",
        str(database),
        str(report),
    ]

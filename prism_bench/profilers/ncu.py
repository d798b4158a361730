"""Nsight Compute's command lines, and its messages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prism_bench.profilers.tools import Tool

_PASSES = re.compile(
    r'==PROF== Profiling "(?P<kernel>[^"]*)".*?(?P<passes>\d{1,9}) pass(?:es)?\s*$', re.MULTILINE | re.ASCII
)
# Both are computed from the launch, without a pass except that of the occupancy counter.
_SECTIONS = ("LaunchStats", "Occupancy")
_SOURCE = "SourceCounters"  # samples where warps wait, and what each instruction did


@dataclass(frozen=True)
class Counting:
    """How ncu counts: which metrics, whether it flushes caches before each pass, and what it does to clocks.

    With `lines` it samples where warps wait as well, and keeps the source with the report. Clocks are left alone unless
    asked for: a card is shared, and a killed ncu leaves them locked.
    """

    metrics: tuple[str, ...]
    sections: tuple[str, ...] = _SECTIONS
    clock_control: str = "none"
    cache_control: str = "all"
    lines: bool = False


def capture(tool: Tool, counting: Counting, report: Path, program: Sequence[str]) -> list[str]:
    """Return the command that profiles what `program` launches between its profiler marks into `report` (.ncu-rep)."""
    wanted = (*counting.sections, *([_SOURCE] if counting.lines else []))
    sections = [word for section in wanted for word in ("--section", section)]
    sections += ["--import-source", "yes"] if counting.lines else []
    return [
        tool.program, "--config-file", "off", "--clock-control", counting.clock_control,
        "--cache-control", counting.cache_control, "--replay-mode", "kernel", "--profile-from-start", "off", "--nvtx",
        "--target-processes", "application-only", "--metrics", ",".join(counting.metrics), *sections,
        "--force-overwrite", "--export", str(report), *program,
    ]  # fmt: skip


def exports(tool: Tool, report: Path) -> list[list[str]]:
    """Return the commands that print a report as a wide table in base units, the best first.

    The second is for an ncu that refuses to print ranges.
    """
    plain = ["--config-file", "off", "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]
    return [[tool.program, *plain, "--nvtx"], [tool.program, *plain]]


def source_export(tool: Tool, report: Path, launch: int) -> list[str]:
    """Return the command that prints the source page of one launch of a report, counted from 0.

    The page names no launch, so each is printed by itself.
    """
    return [
        tool.program, "--config-file", "off", "--import", str(report), "--launch-skip", str(launch),
        "--launch-count", "1", "--csv", "--page", "source", "--print-source", "cuda,sass",
    ]  # fmt: skip


def passes(log: str) -> int | None:
    """How often ncu ran each launch, at most, as its progress lines say; None where they say nothing."""
    found = [int(match["passes"]) for match in _PASSES.finditer(log)]
    return max(found, default=None)

"""Source lines at which a kernel's warps wait, from the source counters of a profile."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prism_bench.record.run_record import CaseResult

MOST = 3


@dataclass(frozen=True)
class SourceLine:
    """One line: its file, its number from 1, its text where it is known, and its share of all samples of warps.

    `stall` is what most of the line's samples waited for.
    """

    file: str
    line: int
    share: float
    text: str | None = None
    stall: str | None = None


def hot_lines(case: CaseResult, most: int = MOST) -> tuple[SourceLine, ...]:
    """Return the lines with the most samples, the hottest first; empty where no source counters were collected."""
    listed: Sequence[dict[str, Any]] = case.profile.get("lines") or ()
    total = sum(one["samples"] for one in listed)
    hottest = sorted(listed, key=lambda one: -one["samples"])[:most]
    return tuple(
        SourceLine(one["file"], one["line"], one["samples"] / total, one.get("text"), one.get("stall"))
        for one in hottest if one["samples"]
    )  # fmt: skip

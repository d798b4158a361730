"""Bottleneck of a kernel, read from counters, and a check of its DRAM bytes.

The busiest part of the device is the bottleneck where it is busy at least 60 % of the time, the limit from which
NVIDIA's own guided analysis (Nsight Compute, SOLBottleneck rule) speaks of one. Below it nothing is full: a launch
as short as an empty kernel is launch-bound, any other latency-bound, and issue slots and occupancy show how far the
warps hide it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from prism_bench.record.run_record import CaseResult
from prism_bench.units import bytes_text, share_text, time_text

BUSY = 0.6
LIKE_EMPTY = 1.5  # times the empty kernel's duration under the same profiler
SAME_BYTES = 0.03
# The share that shows each bottleneck, and its words.
PARTS = {
    "dram": ("dram_share", "DRAM"),
    "l2": ("l2_share", "L2"),
    "l1": ("l1_share", "L1 and shared memory"),
    "fp32": ("fp32_share", "FP32 pipe"),
    "tensor": ("tensor_share", "tensor pipe"),
    "sfu": ("sfu_share", "special function pipe"),
    "issue": ("issue_share", "issue slots"),
}


@dataclass(frozen=True)
class Bound:
    """Bottleneck: `by` one of PARTS, `latency` or `launch`, None without counters; `evidence` its figures in words."""

    by: str | None
    evidence: str


@dataclass(frozen=True)
class BytesCheck:
    """Counted DRAM bytes against the compulsory ones: `verdict` is `agrees`, `more`, `less` or `unknown`."""

    verdict: Literal["agrees", "more", "less", "unknown"]
    counted: float | None
    compulsory: int
    words: str

    @property
    def ratio(self) -> float | None:
        """Counted over compulsory bytes."""
        return self.counted / self.compulsory if self.counted is not None and self.compulsory else None


def value(case: CaseResult, name: str) -> float | None:
    """Return a logical metric of the case's profile; None where it was not counted."""
    return case.profile.get("values", {}).get(name, {}).get("value")


def dram_bytes(case: CaseResult) -> float | None:
    """Return bytes through DRAM: read, written, and written back after the kernel where that was followed."""
    moved = _read_and_written(case)
    return None if moved is None else moved + (value(case, "write_back_bytes") or 0.0)


def _read_and_written(case: CaseResult) -> float | None:
    read, written = value(case, "dram_read_bytes"), value(case, "dram_write_bytes")
    return None if read is None or written is None else read + written


def empty_duration(cases: Iterable[CaseResult]) -> float | None:
    """Return seconds that the catalogue's empty kernel took under the same profiler; None where no case is it."""
    found = [value(case, "profiler_duration") for case in cases if case.ceiling == "launch"]
    return min((one for one in found if one), default=None)


def bound_of(case: CaseResult, empty: float | None = None) -> Bound:
    """Return the bottleneck of the case; `empty` is the duration of an empty kernel in the same capture."""
    duration = value(case, "profiler_duration")
    shares = {part: value(case, metric) for part, (metric, _) in PARTS.items()}
    known = {part: share for part, share in shares.items() if share is not None}
    if not known or duration is None:
        return Bound(None, case.reason or "nothing was counted")
    launches = value(case, "launches") or 1
    if empty and duration <= LIKE_EMPTY * empty * launches:
        return Bound("launch", f"{time_text(duration / launches)} a launch, an empty kernel {time_text(empty)}")
    busiest = max(known, key=known.__getitem__)
    if known[busiest] >= BUSY:
        return Bound(busiest, _shares(known))
    return Bound("latency", f"nothing is busy: {_shares(known)}{_hiding(case)}")


def _shares(known: Mapping[str, float]) -> str:
    """Return the busiest parts, busiest first: `DRAM 92 %, L2 41 %`."""
    top = sorted(known, key=known.__getitem__, reverse=True)[:3]
    return ", ".join(f"{PARTS[part][1]} {share_text(known[part])}" for part in top)


def _hiding(case: CaseResult) -> str:
    occupancy, limit, waves = (value(case, name) for name in ("occupancy", "occupancy_limit", "waves"))
    words = f"; occupancy {share_text(occupancy)} of {share_text(limit)}" if occupancy is not None else ""
    return words + (f"; {waves:.2g} waves" if waves is not None else "")


def check_bytes(case: CaseResult, l2_bytes: int) -> BytesCheck:
    """Compare the case's DRAM bytes with its compulsory ones, within 3 %.

    Unless the write-back was followed, up to a whole L2 of written bytes may still be there when the kernel ends, so
    that as much less is counted; and what is no larger than L2 shows nothing.
    """
    counted = dram_bytes(case)
    if counted is None or not case.bytes:
        return BytesCheck("unknown", counted, case.bytes, "no DRAM bytes were counted")
    kept = 0 if value(case, "write_back_bytes") is not None else l2_bytes
    if kept and case.bytes <= 2 * kept:
        return BytesCheck("unknown", counted, case.bytes, f"fits twice in L2 ({bytes_text(l2_bytes)})")
    least, most = (case.bytes - kept) * (1 - SAME_BYTES), case.bytes * (1 + SAME_BYTES)
    verdict = "less" if counted < least else "more" if counted > most else "agrees"
    return BytesCheck(verdict, counted, case.bytes, f"{bytes_text(counted)} of {bytes_text(case.bytes)}")


def peak_rates(cases: Iterable[CaseResult]) -> list[float]:
    """Return the DRAM peak that each busy case implies, bytes per second: its rate over its share.

    All must be equal: a disagreement shows figures of different clocks, or a locale misread.
    """
    found: list[float] = []
    for case in cases:
        share, duration = value(case, "dram_share"), value(case, "profiler_duration")
        moved = _read_and_written(case)
        if share and share > BUSY / 2 and duration and moved is not None:
            found.append(moved / duration / share)
    return found

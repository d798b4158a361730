"""What bounds a kernel, read from counters, with the numbers that say so; and are its DRAM bytes what they must be?

The busiest part of the device is the bound where it is busy at least 60 % of the time, the limit from which NVIDIA's
own guided analysis (Nsight Compute, SOLBottleneck rule) speaks of one. Below it nothing is full: a launch as short as
an empty kernel is bound by launching, any other by latency, and issue slots and occupancy tell how far the warps hide
it.
"""

from dataclasses import dataclass

from prism_bench.run_record import CaseResult
from prism_bench.units import bytes_text, share_text, time_text

BUSY = 0.6
LIKE_EMPTY = 1.5  # times the empty kernel's duration under the same profiler
SAME_BYTES = 0.03
# The share that shows each bound, and its words.
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
    """`by` is one of PARTS, `latency` or `launch`; `evidence` the figures in words. None where nothing was counted."""

    by: str | None
    evidence: str


@dataclass(frozen=True)
class BytesCheck:
    """Counted DRAM bytes against the compulsory ones: `verdict` is `agrees`, `more`, `less` or `unknown`."""

    verdict: str
    counted: float | None
    compulsory: int
    words: str

    @property
    def ratio(self) -> float | None:
        """Counted over compulsory bytes."""
        return self.counted / self.compulsory if self.counted is not None and self.compulsory else None


def value(case: CaseResult, name: str) -> float | None:
    """A logical metric of the case's profile; None where it was not counted."""
    return case.profile.get("values", {}).get(name, {}).get("value")


def dram_bytes(case: CaseResult) -> float | None:
    """Bytes through DRAM: read, written, and written back after the kernel where that was followed."""
    parts = [value(case, name) for name in ("dram_read_bytes", "dram_write_bytes")]
    return None if None in parts else sum(parts) + (value(case, "write_back_bytes") or 0.0)


def empty_duration(cases) -> float | None:
    """Seconds that the catalogue's empty kernel took under the same profiler; None where it is not among the cases."""
    found = [value(case, "profiler_duration") for case in cases if case.ceiling == "launch"]
    return min((one for one in found if one), default=None)


def bound_of(case: CaseResult, empty: float | None = None) -> Bound:
    """What bounds the case; `empty` is the duration of an empty kernel in the same capture."""
    duration = value(case, "profiler_duration")
    shares = {part: value(case, metric) for part, (metric, _) in PARTS.items()}
    known = {part: share for part, share in shares.items() if share is not None}
    if not known or duration is None:
        return Bound(None, case.reason or "nothing was counted")
    launches = value(case, "launches") or 1
    if empty and duration <= LIKE_EMPTY * empty * launches:
        return Bound("launch", f"{time_text(duration / launches)} a launch, an empty kernel {time_text(empty)}")
    busiest = max(known, key=known.get)
    if known[busiest] >= BUSY:
        return Bound(busiest, _shares(known))
    return Bound("latency", f"nothing is busy: {_shares(known)}{_hiding(case)}")


def _shares(known):
    """The busiest parts, busiest first: `DRAM 92 %, L2 41 %`."""
    top = sorted(known, key=known.get, reverse=True)[:3]
    return ", ".join(f"{PARTS[part][1]} {share_text(known[part])}" for part in top)


def _hiding(case):
    occupancy, limit, waves = (value(case, name) for name in ("occupancy", "occupancy_limit", "waves"))
    words = f"; occupancy {share_text(occupancy)} of {share_text(limit)}" if occupancy is not None else ""
    return words + (f"; {waves:.2g} waves" if waves is not None else "")


def check_bytes(case: CaseResult, l2_bytes: int) -> BytesCheck:
    """The case's DRAM bytes against its compulsory ones, within 3 %.

    Unless the write-back was followed, up to a whole L2 of written bytes may still be there when the kernel ends, so
    that as much less is counted; and what is no larger than L2 tells nothing.
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


def peak_rates(cases) -> list[float]:
    """The DRAM peak that each busy case implies, bytes per second: its rate over its share. All must be the same
    number.

    A disagreement shows figures of different clocks, or a locale misread, before anybody believes them.
    """
    found = []
    for case in cases:
        share, duration = value(case, "dram_share"), value(case, "profiler_duration")
        parts = [value(case, name) for name in ("dram_read_bytes", "dram_write_bytes")]
        if share and share > BUSY / 2 and duration and None not in parts:
            found.append(sum(parts) / duration / share)
    return found

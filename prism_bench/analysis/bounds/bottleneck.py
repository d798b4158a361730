"""Bottleneck of a kernel: from its counters, from the ceilings of its record, and the source lines that wait."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from prism_bench.measure.plausibility import Limits, is_bandwidth
from prism_bench.record.run_record import CaseResult
from prism_bench.spec.workload import LABELS
from prism_bench.units import bytes_text, share_text, time_text

if TYPE_CHECKING:
    import pandas


# Bottleneck of a kernel from counters, and a check of its DRAM bytes.
#
# The busiest part of the device is the bottleneck if it is busy at least 60 % of the time, the limit of NVIDIA's guided
# analysis (Nsight Compute, SOLBottleneck rule). Otherwise a launch as short as an empty kernel is launch-bound, any
# other is latency-bound, and issue slots and occupancy show how far the warps hide the latency.

BUSY = 0.6
_LIKE_EMPTY = 1.5  # times the empty kernel's duration under the same profiler
_SAME_BYTES = 0.03
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
    """Bottleneck: `by` one of PARTS, `latency` or `launch`, None without counters; `evidence` its figures as text."""

    by: str | None
    evidence: str


@dataclass(frozen=True)
class BytesCheck:
    """Counted DRAM bytes against the compulsory bytes: `verdict` is `agrees`, `more`, `less` or `unknown`."""

    verdict: Literal["agrees", "more", "less", "unknown"]
    counted: float | None
    compulsory: int
    words: str

    @property
    def ratio(self) -> float | None:
        """Counted over compulsory bytes."""
        return self.counted / self.compulsory if self.counted is not None and self.compulsory else None


def value(case: CaseResult, name: str) -> float | None:
    """Return a logical metric of the case's profile, or None."""
    return case.profile.get("values", {}).get(name, {}).get("value")


def dram_bytes(case: CaseResult) -> float | None:
    """Return bytes through DRAM: read, written, and written back after the kernel if that was counted."""
    moved = _read_and_written(case)
    return None if moved is None else moved + (value(case, "write_back_bytes") or 0.0)


def _read_and_written(case: CaseResult) -> float | None:
    read, written = value(case, "dram_read_bytes"), value(case, "dram_write_bytes")
    return None if read is None or written is None else read + written


def empty_duration(cases: Iterable[CaseResult]) -> float | None:
    """Return the seconds of the catalogue's empty kernel under the same profiler, or None."""
    durations = [value(case, "profiler_duration") for case in cases if case.ceiling == "launch"]
    return min((duration for duration in durations if duration), default=None)


def bound_of(case: CaseResult, empty: float | None = None) -> Bound:
    """Return the bottleneck of the case; `empty` is the duration of an empty kernel in the same capture."""
    duration = value(case, "profiler_duration")
    shares = {part: value(case, metric) for part, (metric, _) in PARTS.items()}
    known = {part: share for part, share in shares.items() if share is not None}
    if not known or duration is None:
        return Bound(None, case.reason or "nothing was counted")
    launches = value(case, "launches") or 1
    if empty and duration <= _LIKE_EMPTY * empty * launches:
        return Bound("launch", f"{time_text(duration / launches)} a launch, an empty kernel {time_text(empty)}")
    busiest = max(known, key=known.__getitem__)
    if known[busiest] >= BUSY:
        return Bound(busiest, _shares(known))
    occupancy, limit, waves = (value(case, name) for name in ("occupancy", "occupancy_limit", "waves"))
    hiding = f"; occupancy {share_text(occupancy)} of {share_text(limit)}" if occupancy is not None else ""
    hiding += f"; {waves:.2g} waves" if waves is not None else ""
    return Bound("latency", f"nothing is busy: {_shares(known)}{hiding}")


def _shares(known: Mapping[str, float]) -> str:
    """Return the busiest parts, busiest first: `DRAM 92 %, L2 41 %`."""
    top = sorted(known, key=known.__getitem__, reverse=True)[:3]
    return ", ".join(f"{PARTS[part][1]} {share_text(known[part])}" for part in top)


def check_bytes(case: CaseResult, l2_bytes: int) -> BytesCheck:
    """Compare the case's DRAM bytes with its compulsory bytes, within 3 %.

    Unless the write-back was counted, up to a whole L2 of written bytes may still be there when the kernel ends, and is
    not counted; bytes that fit in L2 show nothing.
    """
    counted = dram_bytes(case)
    if counted is None or not case.bytes:
        return BytesCheck("unknown", counted, case.bytes, "no DRAM bytes were counted")
    kept = 0 if value(case, "write_back_bytes") is not None else l2_bytes
    if kept and case.bytes <= 2 * kept:
        return BytesCheck("unknown", counted, case.bytes, f"fits twice in L2 ({bytes_text(l2_bytes)})")
    least, most = (case.bytes - kept) * (1 - _SAME_BYTES), case.bytes * (1 + _SAME_BYTES)
    verdict = "less" if counted < least else "more" if counted > most else "agrees"
    return BytesCheck(verdict, counted, case.bytes, f"{bytes_text(counted)} of {bytes_text(case.bytes)}")


def peak_rates(cases: Iterable[CaseResult]) -> list[float]:
    """Return the DRAM peak that each busy case implies, bytes per second: its rate over its share.

    All must be equal: a disagreement shows figures of different clocks, or a misread locale.
    """
    peaks: list[float] = []
    for case in cases:
        share, duration = value(case, "dram_share"), value(case, "profiler_duration")
        moved = _read_and_written(case)
        if share and share > BUSY / 2 and duration and moved is not None:
            peaks.append(moved / duration / share)
    return peaks


# Roofline: the rate that the measured ceilings allow, and the limit that binds a case.
#
# S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.

# Kinds of arithmetic with a ceiling, and their names. The ceiling of tensor cores is measured with half; in old records
# `tensor` is any product on tensor cores.
ARITHMETIC = {"fp32": "FP32", "tensor": "tensor cores", "fp64": "FP64"}
PRODUCTS = {
    "tf32": "TF32 on tensor cores",
    "float8": "FP8 on tensor cores",
    "three_tf32": "FP32 as three TF32 products",
    "three_bfloat16": "FP32 as six bfloat16 products",
}
# Kinds whose every product is several of another kind; bfloat16 has the rate of half.
_AS_MANY = {"three_tf32": ("tf32", 3), "three_bfloat16": ("tensor", 6)}

# Most operations of a multiprocessor in a clock, by compute capability, kind of arithmetic and title; a fused
# multiply-add is two. NVIDIA's white papers on the A100 and H100, from their rates, multiprocessors and boost clocks.
_PER_CLOCK = {
    80: {"fp64": {"FP64": 64}, "tensor": {"TF32 tensor": 1024, "FP16 tensor": 2048}, "tf32": {"TF32 tensor": 1024}},
    90: {"fp64": {"FP64": 128}, "tensor": {"TF32 tensor": 2048, "FP16 tensor": 4096, "FP8 tensor": 8192},
         "tf32": {"TF32 tensor": 2048}, "float8": {"FP8 tensor": 8192}},
}  # fmt: skip


def intensity(flops: int | None, bytes_moved: int | None) -> float | None:
    """Return operations per compulsory byte; None if either is unknown."""
    return flops / bytes_moved if flops and bytes_moved else None


def attainable(per_byte: float, bandwidth: float, peak: float) -> float:
    """Return operations per second that a kernel of `per_byte` operations per byte can reach at most."""
    return min(per_byte * bandwidth, peak)


def ridge(bandwidth: float, peak: float) -> float:
    """Return operations per byte from which arithmetic is the limit instead of memory."""
    return peak / bandwidth


def peak_of(case: CaseResult, limits: Limits) -> float | None:
    """Return the measured ceiling of the case's arithmetic, or None."""
    return ceiling_of(case.arithmetic, limits)


def ceiling_of(arithmetic: str, limits: Limits) -> float | None:
    """Return the measured ceiling of a kind of arithmetic in operations per second, or None."""
    kind, products = _AS_MANY.get(arithmetic, (arithmetic, 1))
    peak = limits.ceilings.get(kind)
    return peak / products if peak else None


def least_times(case: CaseResult, limits: Limits) -> dict[str, float]:
    """Return the least seconds of the case by known limits: `memory`, `compute`, `launch`."""
    bandwidth, peak = limits.ceilings.get("bandwidth"), peak_of(case, limits)
    times = {
        "memory": case.bytes / bandwidth if bandwidth and case.bytes else None,
        "compute": case.flops / peak if peak and case.flops else None,
        "launch": limits.floors.get("cold_time"),
    }
    return {name: seconds for name, seconds in times.items() if seconds}


def binding(case: CaseResult, limits: Limits) -> tuple[str, float] | None:
    """Return the limit that binds the case and its seconds: the largest of `least_times`.

    None if the run did not measure a limit that might be the largest.
    """
    times = least_times(case, limits)
    needed = {"memory", "launch", "compute"} if case.flops else {"memory", "launch"}
    return max(times.items(), key=lambda item: item[1]) if needed <= set(times) else None


def missing_limits(case: CaseResult, limits: Limits) -> list[str]:
    """Return the limits of `binding` that the run did not measure."""
    known = {"launch overhead": limits.floors.get("cold_time"), "bandwidth ceiling": limits.ceilings.get("bandwidth")}
    if case.flops:
        known[f"{case.arithmetic} ceiling"] = peak_of(case, limits)
    return [name for name, limit in known.items() if not limit]


def roofs(limits: Limits) -> Mapping[str, float]:
    """Return the horizontal roofs, operations per second by name: every ceiling except those of memory."""
    return {name: rate for name, rate in limits.ceilings.items() if not is_bandwidth(name)}


def unmeasured_peaks(machine: Mapping[str, Any], limits: Limits, kinds: Collection[str]) -> dict[str, float]:
    """Return the peaks by the device's clock and width, operations per second by title.

    Only of the `kinds` of arithmetic whose ceiling the run did not measure; empty for an unknown device.
    """
    clocks = float(machine.get("sm_count") or 0) * float(machine.get("highest_sm_clock") or 0)
    known = _PER_CLOCK.get(machine.get("compute_capability") or 0, {}) if clocks else {}
    wanted = [kind for kind in known if kind in kinds and kind not in limits.ceilings]
    return {title: clocks * count for kind in wanted for title, count in known[kind].items()}


def plotted(frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """Return the rows of a summary with operations and a rate, without ceiling benchmarks."""
    return frame[frame["intensity"].notna() & frame["flop_rate"].notna() & frame["ceiling"].isna()]


# Source lines at which a kernel's warps wait, from the source counters of a profile.

MOST = 3


@dataclass(frozen=True)
class SourceLine:
    """One line: its file, its number from 1, its text if known, and its share of all samples of warps.

    `stall` is the most frequent reason of waiting among the line's samples.
    """

    file: str
    line: int
    share: float
    text: str | None = None
    stall: str | None = None


def hot_lines(case: CaseResult, most: int = MOST) -> tuple[SourceLine, ...]:
    """Return the lines with the most samples, the hottest first; empty without source counters."""
    lines: Sequence[dict[str, Any]] = case.profile.get("lines") or ()
    total = sum(line["samples"] for line in lines)
    hottest = sorted(lines, key=lambda line: -line["samples"])[:most]
    return tuple(
        SourceLine(line["file"], line["line"], line["samples"] / total, line.get("text"), line.get("stall"))
        for line in hottest
        if line["samples"]
    )


# Representative cases of a kernel: its largest case, and the largest counted case next to a case without counters.


def size(case: CaseResult) -> tuple[int, int]:
    """Return the key that sorts workloads of a kernel: by label, then by the bytes that must move."""
    return LABELS.index(case.label) if case.label in LABELS else -1, case.bytes


def largest(cases: Sequence[CaseResult]) -> CaseResult | None:
    """Return the largest timed workload of the kernel without a variant; else of its variants, else without a time."""
    timed = [case for case in cases if is_timed(case)]
    candidates = [case for case in timed if case.variant is None] or timed or list(cases)
    return max(candidates, key=size, default=None)


def is_timed(case: CaseResult) -> bool:
    """Return whether the kernel has samples."""
    return any(measured.samples for measured in case.measurements if measured.subject == "kernel")


def counted_near(case: CaseResult, others: Iterable[CaseResult], counted: Collection[str]) -> CaseResult | None:
    """Return the largest other workload of the same implementation whose name is in `counted`, or None."""
    same = [other for other in others if (other.kernel, other.variant) == (case.kernel, case.variant)]
    candidates = [other for other in same if not other.is_edge and other.name in counted and other.name != case.name]
    return max(candidates, key=size, default=None)

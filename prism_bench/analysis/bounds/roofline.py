"""Roofline: what rate the measured ceilings allow, and which limit a case meets first.

S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from prism_bench.measure.limits import Limits, is_bandwidth
from prism_bench.record.run_record import CaseResult

if TYPE_CHECKING:
    import pandas

# The kinds of arithmetic that each have a ceiling, and their words. What tensor cores reach is measured with half; in
# records from before there were other kinds of products, `tensor` is all that they do.
ARITHMETIC = {"fp32": "FP32", "tensor": "tensor cores", "fp64": "FP64"}
PRODUCTS = {
    "tf32": "TF32 on tensor cores", "float8": "FP8 on tensor cores", "three_tf32": "FP32 as three TF32 products",
    "three_bfloat16": "FP32 as six bfloat16 products",
}  # fmt: skip
# Kinds whose every product is so many of another kind; bfloat16 has the rate of half.
_AS_MANY = {"three_tf32": ("tf32", 3), "three_bfloat16": ("tensor", 6)}

# Operations that a multiprocessor does in a clock at most, by compute capability, kind of arithmetic and title; a fused
# multiply-add is two. NVIDIA's white papers on the A100 and H100, from their rates, multiprocessors and boost clocks.
_PER_CLOCK = {
    80: {"fp64": {"FP64": 64}, "tensor": {"TF32 tensor": 1024, "FP16 tensor": 2048}, "tf32": {"TF32 tensor": 1024}},
    90: {"fp64": {"FP64": 128}, "tensor": {"TF32 tensor": 2048, "FP16 tensor": 4096, "FP8 tensor": 8192},
         "tf32": {"TF32 tensor": 2048}, "float8": {"FP8 tensor": 8192}},
}  # fmt: skip


def intensity(flops: int | None, bytes_moved: int | None) -> float | None:
    """Return operations per compulsory byte; None where either is unknown."""
    return flops / bytes_moved if flops and bytes_moved else None


def attainable(per_byte: float, bandwidth: float, peak: float) -> float:
    """Return operations per second that a kernel of `per_byte` operations per byte can reach at most."""
    return min(per_byte * bandwidth, peak)


def ridge(bandwidth: float, peak: float) -> float:
    """Return operations per byte from which arithmetic is the limit, and no longer memory."""
    return peak / bandwidth


def peak_of(case: CaseResult, limits: Limits) -> float | None:
    """Return the measured ceiling of the arithmetic that the case does; None where the run did not measure it."""
    return ceiling_of(case.arithmetic, limits)


def ceiling_of(arithmetic: str, limits: Limits) -> float | None:
    """Return operations per second that a kind of arithmetic reaches at most; None where that was not measured."""
    kind, products = _AS_MANY.get(arithmetic, (arithmetic, 1))
    peak = limits.ceilings.get(kind)
    return peak / products if peak else None


def least_times(case: CaseResult, limits: Limits) -> dict[str, float]:
    """Return seconds that the case takes at least, by what demands it: `memory`, `compute`, `launch`, where known."""
    bandwidth, peak = limits.ceilings.get("bandwidth"), peak_of(case, limits)
    times = {
        "memory": case.bytes / bandwidth if bandwidth and case.bytes else None,
        "compute": case.flops / peak if peak and case.flops else None,
        "launch": limits.floors.get("cold_time"),
    }
    return {name: seconds for name, seconds in times.items() if seconds}


def binding(case: CaseResult, limits: Limits) -> tuple[str, float] | None:
    """Return what limits the case and the seconds it demands: the largest of `least_times`.

    None where the run did not measure a limit that might have been the largest.
    """
    times = least_times(case, limits)
    needed = {"memory", "launch", "compute"} if case.flops else {"memory", "launch"}
    return max(times.items(), key=lambda item: item[1]) if needed <= set(times) else None


def missing_limits(case: CaseResult, limits: Limits) -> list[str]:
    """Return the limits of `binding` that the run did not measure."""
    known = {"launch overhead": limits.floors.get("cold_time"), "bandwidth ceiling": limits.ceilings.get("bandwidth")}
    if case.flops:
        known[f"{case.arithmetic} ceiling"] = peak_of(case, limits)
    return [name for name, found in known.items() if not found]


def roofs(limits: Limits) -> Mapping[str, float]:
    """Return the horizontal roofs, operations per second by name: every ceiling but those of memory."""
    return {name: rate for name, rate in limits.ceilings.items() if not is_bandwidth(name)}


def unmeasured_peaks(machine: Mapping[str, Any], limits: Limits, kinds: Collection[str]) -> dict[str, float]:
    """Return the most that the device's clock and width allow, operations per second by title.

    Those of the `kinds` of arithmetic whose ceiling the run did not measure; empty for a device that is not known.
    """
    clocks = float(machine.get("sm_count") or 0) * float(machine.get("highest_sm_clock") or 0)
    known = _PER_CLOCK.get(machine.get("compute_capability") or 0, {}) if clocks else {}
    wanted = [kind for kind in known if kind in kinds and kind not in limits.ceilings]
    return {title: clocks * count for kind in wanted for title, count in known[kind].items()}


def plotted(frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """Return the rows of a summary with operations and a rate, without ceiling benchmarks."""
    return frame[frame["intensity"].notna() & frame["flop_rate"].notna() & frame["ceiling"].isna()]

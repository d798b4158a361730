"""Plausibility of times: reject less than an empty launch takes, and higher rates than the device allows.

Launch overhead and ceilings are those of the same run, peaks follow from the device's clocks and widths
(`limits.py`), so a wrong clock shows whatever the device is. Faster than a ceiling but not than the peak is possible,
and noted. Where a record has no peaks, the ceilings are the bound.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from prism_bench.measure.limits import Limits, is_bandwidth, peak_of_ceiling
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult
from prism_bench.units import bytes_text, rate_text, time_text

# How far above a ceiling a rate may be before it is reported: the ceilings are medians of noisy times themselves.
BANDWIDTH_ALLOWANCE = 0.03
FLOP_ALLOWANCE = 0.05


@dataclass(frozen=True)
class LaunchWork:
    """What a launch moves and computes: `bytes`, those of them `written`, FP32 operations; None where unknown."""

    bytes: int | None = None
    flops: int | None = None
    written: int | None = None

    def carried(self, metric: str, cache_bytes: int) -> int:
        """Return the bytes that a launch cannot but move over the memory bus.

        Cold, everything that is read; up to a cache of what is written may still be there when the launch ends. Hot,
        the cache may hold what is read and take what is written.
        """
        moved = self.bytes or 0
        if metric == "hot_time":
            return max(0, moved - 2 * cache_bytes)
        written = moved if self.written is None else self.written
        return max(0, moved - min(written, cache_bytes))


@dataclass(frozen=True)
class Plausibility:
    """Why a time cannot be true (`refusal`), and what else is to be known of it (`remark`)."""

    refusal: str | None = None
    remark: str | None = None


def judge(metric: str, seconds: float, work: LaunchWork, limits: Limits) -> Plausibility:
    """Return how a median of `seconds` compares with the run's limits, with both numbers."""
    if seconds <= 0:
        return Plausibility(f"{metric} is {time_text(seconds)}; a launch takes time")
    below = _below_floor(metric, seconds, limits.lowest)
    if below or metric not in ("cold_time", "hot_time"):
        return Plausibility(below)
    answers = [_bandwidth(metric, seconds, work, limits), _arithmetic(seconds, work, limits)]
    refusals, remarks = [one.refusal for one in answers], [one.remark for one in answers]
    return Plausibility(next(filter(None, refusals), None), "; ".join(filter(None, remarks)) or None)


def _below_floor(metric: str, seconds: float, floors: Mapping[str, float]) -> str | None:
    floor = floors.get(metric)
    if floor is None or seconds >= floor:
        return None
    took = f"{metric} {time_text(seconds)}"
    return f"{took} is below the launch overhead of this run: an empty kernel takes {time_text(floor)}"


def _bandwidth(metric: str, seconds: float, work: LaunchWork, limits: Limits) -> Plausibility:
    """Only cold times are held against ceilings: hot ones may live in the cache."""
    peak, moved = limits.peaks.get("bandwidth"), work.bytes or 0
    carried = work.carried(metric, limits.cache_bytes)
    if peak and carried / seconds > peak_of_ceiling("bandwidth", limits.peaks):
        what = bytes_text(moved) if carried == moved else f"{bytes_text(carried)} of {bytes_text(moved)}"
        return Plausibility(
            f"{what} in {time_text(seconds)} are {rate_text(carried / seconds, 'B/s')}; the memory bus carries "
            f"{rate_text(peak, 'B/s')}"
        )
    best = max((rate for name, rate in limits.ceilings.items() if is_bandwidth(name)), default=None)
    rate = moved / seconds
    if metric != "cold_time" or not best or rate <= best * (1 + BANDWIDTH_ALLOWANCE):
        return Plausibility()
    which = "the read ceiling" if best != limits.ceilings.get("bandwidth") else "the copy ceiling"
    beyond = f"{rate_text(rate, 'B/s')} is more than {BANDWIDTH_ALLOWANCE * 100:.0f} % above {which} of "
    beyond += f"this run, {rate_text(best, 'B/s')}"
    return (
        Plausibility(remark=f"{beyond}; the memory bus carries {rate_text(peak, 'B/s')}")
        if peak
        else Plausibility(beyond)
    )


def _arithmetic(seconds: float, work: LaunchWork, limits: Limits) -> Plausibility:
    ceiling, peak = limits.ceilings.get("fp32"), limits.peaks.get("fp32")
    rate = (work.flops or 0) / seconds
    if peak and rate > peak_of_ceiling("fp32", limits.peaks):
        most = rate_text(peak, "FLOP/s")
        return Plausibility(f"{rate_text(rate, 'FLOP/s')}; the device's FP32 lanes do {most} at most")
    if not ceiling or rate <= ceiling * (1 + FLOP_ALLOWANCE):
        return Plausibility()
    beyond = (
        f"{rate_text(rate, 'FLOP/s')} is more than {FLOP_ALLOWANCE * 100:.0f} % above the FP32 ceiling of this run, "
    )
    beyond += rate_text(ceiling, "FLOP/s")
    return (
        Plausibility(remark=f"{beyond}; the device can do {rate_text(peak, 'FLOP/s')}")
        if peak
        else Plausibility(beyond)
    )


def judged(
    cases: Iterable[CaseResult], limits: Limits, written: Mapping[str, int] | None = None
) -> tuple[CaseResult, ...]:
    """Return the cases, with every impossible measurement marked invalid and its reason given; the samples stay.

    `written` are the bytes that a case writes, by name, where they are known. A measurement that is faster than a
    ceiling, and possible, has a note.
    """
    known = written or {}
    return tuple(
        replace(case, measurements=tuple(_judged(one, case, limits, known) for one in case.measurements))
        for case in cases
    )


def _judged(one: Measurement, case: CaseResult, limits: Limits, written: Mapping[str, int]) -> Measurement:
    if one.median is None or not one.valid:
        return one
    if limits.cold_doubt and one.metric == "cold_time":
        return replace(one, valid=False, reason=limits.cold_doubt)
    flops = case.flops if one.subject == "kernel" and is_fp32(case) else None
    found = judge(one.metric, one.median, LaunchWork(case.bytes or None, flops, written.get(case.name)), limits)
    if found.refusal:
        return replace(one, valid=False, reason=found.refusal)
    if not found.remark:
        return one
    whose = "" if one.subject == "kernel" else f"{one.subject.replace(':', ' ')}, "
    return replace(one, notes=(*one.notes, f"{case.name}: {whose}{one.metric}: {found.remark}"))


def is_fp32(case: CaseResult) -> bool:
    """Return whether the FP32 ceiling bounds the case's operations, by its spec."""
    return case.arithmetic == "fp32"

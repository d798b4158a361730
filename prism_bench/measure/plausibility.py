"""Refuses the impossible: less time than an empty launch, more bandwidth or arithmetic than the device can have.

Floors and ceilings are those of the same run, peaks follow from the device's clocks and widths (`limits.py`), so a
wrong clock shows whatever the device is. Faster than a ceiling but not than the peak is possible, and noted. Where a
record has no peaks, the ceilings are the bound.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from prism_bench.measure.limits import Limits, is_bandwidth, peak_of_ceiling
from prism_bench.measurement import Measurement
from prism_bench.run_record import CaseResult
from prism_bench.units import bytes_text, rate_text, time_text

# How far above a ceiling a rate may be before it is told: the ceilings are medians of noisy times themselves.
BANDWIDTH_ALLOWANCE = 0.03
FLOP_ALLOWANCE = 0.05


@dataclass(frozen=True)
class Work:
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
class Judgement:
    """Why a time cannot be true (`refusal`), and what else is to be known of it (`remark`)."""

    refusal: str | None = None
    remark: str | None = None


def judge(metric: str, seconds: float, work: Work, limits: Limits) -> Judgement:
    """Return what the run's limits say to a median of `seconds`, with both numbers."""
    if seconds <= 0:
        return Judgement(f"{metric} is {time_text(seconds)}; a launch takes time")
    below = _below_floor(metric, seconds, limits.lowest)
    if below or metric not in ("cold_time", "hot_time"):
        return Judgement(below)
    answers = [_bandwidth(metric, seconds, work, limits), _arithmetic(seconds, work, limits)]
    refusals, remarks = [one.refusal for one in answers], [one.remark for one in answers]
    return Judgement(next(filter(None, refusals), None), "; ".join(filter(None, remarks)) or None)


def _below_floor(metric: str, seconds: float, floors: Mapping[str, float]) -> str | None:
    floor = floors.get(metric)
    if floor is None or seconds >= floor:
        return None
    return f"{metric} {time_text(seconds)} is below the floor of this run: an empty kernel takes {time_text(floor)}"


def _bandwidth(metric: str, seconds: float, work: Work, limits: Limits) -> Judgement:
    """Only cold times are held against ceilings: hot ones may live in the cache."""
    peak = limits.peaks.get("bandwidth")
    carried = work.carried(metric, limits.cache_bytes)
    if peak and carried / seconds > peak_of_ceiling("bandwidth", limits.peaks):
        what = bytes_text(work.bytes) if carried == work.bytes else f"{bytes_text(carried)} of {bytes_text(work.bytes)}"
        return Judgement(
            f"{what} in {time_text(seconds)} are {rate_text(carried / seconds, 'B/s')}; the memory bus carries "
            f"{rate_text(peak, 'B/s')}"
        )
    best = max((rate for name, rate in limits.ceilings.items() if is_bandwidth(name)), default=None)
    if metric != "cold_time" or not _above(work.bytes, seconds, best, BANDWIDTH_ALLOWANCE):
        return Judgement()
    which = "the read ceiling" if best != limits.ceilings.get("bandwidth") else "the copy ceiling"
    beyond = (
        f"{rate_text(work.bytes / seconds, 'B/s')} is more than {BANDWIDTH_ALLOWANCE * 100:.0f} % above {which} of "
    )
    beyond += f"this run, {rate_text(best, 'B/s')}"
    return Judgement(remark=f"{beyond}; the memory bus carries {rate_text(peak, 'B/s')}") if peak else Judgement(beyond)


def _arithmetic(seconds: float, work: Work, limits: Limits) -> Judgement:
    ceiling, peak = limits.ceilings.get("fp32"), limits.peaks.get("fp32")
    rate = (work.flops or 0) / seconds
    if peak and rate > peak_of_ceiling("fp32", limits.peaks):
        return Judgement(f"{rate_text(rate, 'FLOP/s')}; the device's FP32 lanes do {rate_text(peak, 'FLOP/s')} at most")
    if not _above(work.flops, seconds, ceiling, FLOP_ALLOWANCE):
        return Judgement()
    beyond = (
        f"{rate_text(rate, 'FLOP/s')} is more than {FLOP_ALLOWANCE * 100:.0f} % above the FP32 ceiling of this run, "
    )
    beyond += rate_text(ceiling, "FLOP/s")
    return Judgement(remark=f"{beyond}; the device can do {rate_text(peak, 'FLOP/s')}") if peak else Judgement(beyond)


def _above(work: int | None, seconds: float, ceiling: float | None, allowance: float) -> bool:
    return bool(work and ceiling) and work / seconds > ceiling * (1 + allowance)


def judged(
    cases: Iterable[CaseResult], limits: Limits, written: Mapping[str, int] | None = None
) -> tuple[CaseResult, ...]:
    """The cases, with every impossible measurement marked invalid and its reason given; the samples stay.

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
    if limits.warm and one.metric == "cold_time":
        return replace(one, valid=False, reason=limits.warm)
    flops = case.flops if one.subject == "kernel" and is_fp32(case) else None
    found = judge(one.metric, one.median, Work(case.bytes or None, flops, written.get(case.name)), limits)
    if found.refusal:
        return replace(one, valid=False, reason=found.refusal)
    if not found.remark:
        return one
    whose = "" if one.subject == "kernel" else f"{one.subject.replace(':', ' ')}, "
    return replace(one, notes=(*one.notes, f"{case.name}: {whose}{one.metric}: {found.remark}"))


def is_fp32(case: CaseResult) -> bool:
    """Whether the FP32 ceiling bounds the case's operations, as its spec says."""
    return case.arithmetic == "fp32"

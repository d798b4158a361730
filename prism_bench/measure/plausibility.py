"""Refuses the impossible: less time than an empty launch, more bandwidth or arithmetic than the machine has.

The limits are those of the same run (`limits.py`), so a wrong clock shows whatever the device is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from prism_bench.measure.limits import Limits, is_bandwidth
from prism_bench.measurement import Measurement
from prism_bench.run_record import CaseResult
from prism_bench.units import rate_text, time_text

# How far above a ceiling a rate may be before it is refused: the ceilings are medians of noisy times themselves.
BANDWIDTH_ALLOWANCE = 0.03
FLOP_ALLOWANCE = 0.05


def implausible(
    metric: str,
    seconds: float,
    bytes: int | None,
    flops: int | None,
    *,
    floors: Mapping[str, float],
    ceilings: Mapping[str, float],
) -> str | None:
    """Why a median of `seconds` cannot be true, with both numbers; None where nothing speaks against it.

    `floors` are seconds by metric with the spread already taken off (`Limits.lowest`); `ceilings` are bytes per second
    (`bandwidth`, `read_bandwidth`: the higher one counts) and operations per second (`fp32`). `bytes` is None where
    unknown, `flops` where it is not FP32 work. Only cold times speak about memory: hot ones may live in the cache.
    """
    if seconds <= 0:
        return f"{metric} is {time_text(seconds)}; a launch takes time"
    return (
        _below_floor(metric, seconds, floors)
        or (metric == "cold_time" and _above_bandwidth(bytes, seconds, ceilings))
        or (metric in ("cold_time", "hot_time") and _above_fp32(flops, seconds, ceilings))
        or None
    )


def _below_floor(metric, seconds, floors):
    floor = floors.get(metric)
    if floor is None or seconds >= floor:
        return None
    return f"{metric} {time_text(seconds)} is below the floor of this run: an empty kernel takes {time_text(floor)}"


def _above_bandwidth(moved, seconds, ceilings):
    best = max((rate for name, rate in ceilings.items() if is_bandwidth(name)), default=None)
    words = "the read ceiling" if best and best != ceilings.get("bandwidth") else "the copy ceiling"
    return _above(moved, seconds, best, BANDWIDTH_ALLOWANCE) and (
        f"{rate_text(moved / seconds, 'B/s')} is more than {BANDWIDTH_ALLOWANCE * 100:.0f} % above {words} of this "
        f"run, {rate_text(best, 'B/s')}"
    )


def _above_fp32(flops, seconds, ceilings):
    peak = ceilings.get("fp32")
    return _above(flops, seconds, peak, FLOP_ALLOWANCE) and (
        f"{rate_text(flops / seconds, 'FLOP/s')} is more than {FLOP_ALLOWANCE * 100:.0f} % above the FP32 ceiling of "
        f"this run, {rate_text(peak, 'FLOP/s')}"
    )


def _above(work, seconds, ceiling, allowance):
    return bool(work and ceiling) and work / seconds > ceiling * (1 + allowance)


def judged(cases: Iterable[CaseResult], limits: Limits) -> tuple[CaseResult, ...]:
    """The cases, with every impossible measurement marked invalid and its reason given; the samples stay."""
    return tuple(
        replace(case, measurements=tuple(_judged(one, case, limits) for one in case.measurements)) for case in cases
    )


def _judged(one: Measurement, case, limits):
    if one.median is None or not one.valid:
        return one
    flops = case.flops if one.subject == "kernel" and is_fp32(case) else None
    if limits.warm and one.metric == "cold_time":
        return replace(one, valid=False, reason=limits.warm)
    reason = implausible(
        one.metric, one.median, case.bytes or None, flops, floors=limits.lowest, ceilings=limits.ceilings
    )
    return replace(one, valid=False, reason=reason) if reason else one


def is_fp32(case: CaseResult) -> bool:
    """Whether the FP32 ceiling bounds the case's operations, as its spec says."""
    return case.arithmetic == "fp32"

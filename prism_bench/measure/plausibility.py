"""Refuses the impossible: less time than an empty launch, more bandwidth or arithmetic than the machine has.

The limits are those of the same run (`limits.py`), so a wrong clock shows whatever the device is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from prism_bench.measure.limits import Limits
from prism_bench.measurement import Measurement
from prism_bench.run_record import CaseResult
from prism_bench.units import rate_text, time_text

# How far above a ceiling a rate may be before it is refused: the ceilings are medians of noisy times themselves,
# and traffic that is all reads runs a little faster than a copy.
BANDWIDTH_ALLOWANCE = 0.03
FLOP_ALLOWANCE = 0.05

# Arithmetic that the FP32 ceiling does not bound, as variants and ceilings call it.
_OTHER_ARITHMETIC = ("tensor", "tf32", "f16", "fp16", "bf16", "fp8", "wmma", "mma")


def implausible(
    metric: str,
    seconds: float,
    bytes: int | None,
    flops: int | None,
    floors: Mapping[str, float],
    ceilings: Mapping[str, float],
) -> str | None:
    """Why a median of `seconds` cannot be true, with both numbers; None where nothing speaks against it.

    `floors` are seconds by metric with the spread already taken off (`Limits.lowest`); `ceilings` are bytes per second
    (`bandwidth`) and operations per second (`fp32`). `bytes` is None where unknown, `flops` where it is not FP32 work.
    Only cold times speak about memory: hot ones may live in the cache.
    """
    if seconds <= 0:
        return f"{metric} is {time_text(seconds)}; a launch takes time"
    return (
        _below_floor(metric, seconds, floors)
        or (metric == "cold_time" and _above(bytes, seconds, ceilings, *_BANDWIDTH))
        or (metric in ("cold_time", "hot_time") and _above(flops, seconds, ceilings, *_FLOPS))
        or None
    )


_BANDWIDTH = ("bandwidth", "B/s", BANDWIDTH_ALLOWANCE, "the copy ceiling")
_FLOPS = ("fp32", "FLOP/s", FLOP_ALLOWANCE, "the FP32 ceiling")


def _below_floor(metric, seconds, floors):
    floor = floors.get(metric)
    if floor is None or seconds >= floor:
        return None
    return f"{metric} {time_text(seconds)} is below the floor of this run: an empty kernel takes {time_text(floor)}"


def _above(work, seconds, ceilings, name, unit, allowance, words):
    ceiling = ceilings.get(name)
    if not work or not ceiling or work / seconds <= ceiling * (1 + allowance):
        return None
    rate, limit = rate_text(work / seconds, unit), rate_text(ceiling, unit)
    return f"{rate} is more than {allowance * 100:.0f} % above {words} of this run, {limit}"


def judged(cases: Iterable[CaseResult], limits: Limits) -> tuple[CaseResult, ...]:
    """The cases, with every impossible measurement marked invalid and its reason given; the samples stay."""
    return tuple(
        replace(case, measurements=tuple(_judged(one, case, limits) for one in case.measurements)) for case in cases
    )


def _judged(one: Measurement, case, limits):
    if one.median is None or not one.valid:
        return one
    flops = case.flops if one.subject == "kernel" and is_fp32(case) else None
    reason = implausible(one.metric, one.median, case.bytes or None, flops, limits.lowest, limits.ceilings)
    return replace(one, valid=False, reason=reason) if reason else one


def is_fp32(case: CaseResult) -> bool:
    """Whether the FP32 ceiling bounds the case: not for tensor-core and half-precision work, nor for their ceilings."""
    words = f"{case.variant or ''} {case.ceiling or ''}".lower()
    return case.family != "tensor_core" and not any(word in words for word in _OTHER_ARITHMETIC)

"""Plausibility of times: the machine's measured limits, proof of cold caches, and impossibly fast times."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult
from prism_bench.spec.metric import ELSEWHERE
from prism_bench.units import bytes_text, rate_text, time_text

# Proof that the caches were cold: reads that fit in them and take longer after the caches were cleared.
#
# A read that gains from the cache proves it, however slow it is. A read without a gain proves that the caches were warm
# only if it reads much faster from the cache than memory delivers: a slower read may wait for something else.

COLD_PROOF_BYTES = 8 << 20  # a smaller cold read is mostly latency and proves nothing
_COLD_GAIN = 1.15  # cold over hot of a read from cache; an H200 shows 1.3
_WARM, _UNPROVEN = "the caches were warm", "no proof that the caches were cold"


@dataclass(frozen=True)
class _CachedRead:
    """A read that fits in the cache: seconds after clearing (`cold`) and without (`hot`), and the launch overheads."""

    case: CaseResult
    cold: float
    hot: float
    floors: Mapping[str, float]

    @property
    def net_hot(self) -> float:
        return max(self.hot - self.floors["hot_time"], 1e-9)

    @property
    def gain(self) -> float:
        return (self.cold - self.floors["cold_time"]) / self.net_hot

    @property
    def rate(self) -> float:
        """Bytes per second from the cache."""
        return self.case.bytes / self.net_hot

    @property
    def text(self) -> str:
        """Both times in a sentence."""
        return (
            f"{self.case.name} read {bytes_text(self.case.bytes)} in {time_text(self.cold)} after clearing, "
            f"in {time_text(self.hot)} without"
        )


def cold_doubt(
    cases: Iterable[CaseResult], floors: Mapping[str, float], bandwidth: float, cache_bytes: int
) -> str | None:
    """Return why cold times cannot be trusted; None if a read proves them and no read contradicts.

    `bandwidth` is the highest rate of a read or copy of memory in this run, 0 if not measured. The answer is None, too,
    without cold times, or without a read that fits in the cache.
    """
    cases = list(cases)
    if not any(case.measurement("cold_time") for case in cases):
        return None
    reads = [
        case for case in cases if case.ceiling == "read_bandwidth" and COLD_PROOF_BYTES <= case.bytes <= cache_bytes / 2
    ]
    answers = [_cached_read(case, floors) for case in reads]
    measured = [read for read in answers if isinstance(read, _CachedRead)]
    failed = [reason for reason in answers if isinstance(reason, str)]
    flat = [read for read in measured if read.gain < _COLD_GAIN]
    for read in flat:
        if bandwidth and read.rate >= _COLD_GAIN * bandwidth:
            return f"{_WARM}: {read.text}"
    if not reads or len(measured) > len(flat):
        return None
    for reason in failed:
        if reason.startswith((_WARM, _UNPROVEN)):
            return reason
    reasons: list[str] = []
    for read in flat:
        rate = rate_text(read.rate, "B/s")
        memory = (
            f"{rate} from the cache are too slow for a proof where memory delivers {rate_text(bandwidth, 'B/s')}"
            if bandwidth
            else f"whether its {rate} are faster than memory is unknown, for no ceiling of memory was measured"
        )
        reasons.append(f"{read.text}; {memory}")
    return f"{_UNPROVEN}: {'; '.join([*reasons, *failed])}"


def _cached_read(case: CaseResult, floors: Mapping[str, float]) -> _CachedRead | str:
    """Return the read, or why it shows nothing; of a record that was judged before, the reason of that judgement."""
    medians: dict[str, float] = {}
    for metric in ("cold_time", "hot_time"):
        measured = case.measurement(metric)
        if measured and not measured.valid and (measured.reason or "").startswith((_WARM, _UNPROVEN)):
            return measured.reason or ""
        if not measured or not measured.valid or not measured.median:
            reason = measured.reason if measured and measured.reason else "it was not measured"
            return f"{case.name} has no valid {metric}: {reason}"
        if metric not in floors:
            return f"{case.name} cannot be compared, for the launch overhead was not measured"
        medians[metric] = measured.median
    return _CachedRead(case, medians["cold_time"], medians["hot_time"], floors)


# Limits of the machine as one run measured them: launch overhead and the ceilings of traffic and arithmetic.

_PEAK_ALLOWANCE = 0.01  # error of the clock that times a launch


@dataclass(frozen=True)
class Limits:
    """Launch overheads (`floors`: seconds an empty kernel takes, by metric) and `ceilings` (rates per second, by name).

    `spreads` are the relative spreads of the overheads between processes; `sources` names the case behind each ceiling,
    and behind the overhead under `launch`. An unmeasured limit is absent. `peaks` are the upper limits by the device's
    clocks and widths, under the ceilings' names `bandwidth` and `fp32`, if known; `cache_bytes` is the size of its last
    cache. `cold_doubt` is why cold times cannot be trusted: the caches were warm, or the proof that they were cold
    failed.
    """

    floors: Mapping[str, float] = field(default_factory=dict[str, float])
    spreads: Mapping[str, float] = field(default_factory=dict[str, float])
    ceilings: Mapping[str, float] = field(default_factory=dict[str, float])
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    cold_doubt: str | None = None
    peaks: Mapping[str, float] = field(default_factory=dict[str, float])
    cache_bytes: int = 0

    @property
    def lowest(self) -> dict[str, float]:
        """The launch overheads less their spread between processes: a lower limit of all times."""
        return {metric: floor * (1 - self.spreads.get(metric, 0.0)) for metric, floor in self.floors.items()}


def peaks_of(facts: Mapping[str, object]) -> dict[str, float]:
    """Return the peak rates of a device, bytes or operations per second by ceiling, as far as its facts are known.

    Two transfers a clock on every line of the memory bus; a fused multiply-add a clock in every FP32 lane.
    """
    clock, bits = _number(facts, "memory_clock"), _number(facts, "memory_bus_bits")
    lanes = _number(facts, "sm_count") * _number(facts, "fp32_lanes")
    peaks = {"bandwidth": 2 * clock * bits / 8, "fp32": 2 * lanes * _number(facts, "highest_sm_clock")}
    return {name: peak for name, peak in peaks.items() if peak > 0}


def _number(facts: Mapping[str, object], name: str) -> float:
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def measured_limits(
    cases: Iterable[CaseResult], cache_bytes: int = 0, peaks: Mapping[str, float] | None = None
) -> Limits:
    """Return the limits that the `machine/` kernels among `cases` measured; only valid measurements count.

    A copy that fits in a cache of `cache_bytes` shows nothing about memory and is no ceiling; neither is a rate beyond
    the device's `peaks`. A ceiling of only one of several boards does not count if all boards measured that kind.
    """
    peaks = peaks or {}
    cases = [case for case in cases if case.ceiling]
    shared = {case.ceiling for case in cases if case.board is None}
    cases = [case for case in cases if case.board is None or case.ceiling not in shared]
    floors: dict[str, float] = {}
    spreads: dict[str, float] = {}
    ceilings: dict[str, float] = {}
    sources: dict[str, str] = {}
    for case in cases:
        for metric in ("cold_time", "hot_time") if case.ceiling == "launch" else ():
            measured = valid(case, metric)
            if measured and measured.median and measured.median < floors.get(metric, float("inf")):
                floors[metric] = measured.median
                spreads[metric] = measured.spread or 0.0
                sources["launch"] = case.name
    for case in cases:
        rate = _rate(case, cache_bytes)
        if case.ceiling and rate and ceilings.get(case.ceiling, 0.0) < rate <= _peak_of_ceiling(case.ceiling, peaks):
            ceilings[case.ceiling] = rate
            sources[case.ceiling] = case.name
    bandwidth = max((rate for name, rate in ceilings.items() if is_bandwidth(name)), default=0.0)
    doubt = cold_doubt(cases, floors, bandwidth, cache_bytes)
    return Limits(floors, spreads, ceilings, sources, doubt, peaks, cache_bytes)


def _peak_of_ceiling(ceiling: str, peaks: Mapping[str, float]) -> float:
    """Return the peak rate with the clock's error; infinite if the device's facts do not bound it."""
    peak = peaks.get("bandwidth" if is_bandwidth(ceiling) else ceiling)
    return peak * (1 + _PEAK_ALLOWANCE) if peak else float("inf")


def _rate(case: CaseResult, cache_bytes: int) -> float | None:
    """Return the rate of a ceiling's case, in bytes or operations per second, or None."""
    if case.ceiling is None or case.ceiling == "launch":
        return None
    if is_bandwidth(case.ceiling):
        cold = valid_median(case, "cold_time")
        return case.bytes / cold if cold and case.bytes > cache_bytes else None
    times = [seconds for metric in ("cold_time", "hot_time") if (seconds := valid_median(case, metric))]
    return case.flops / min(times) if times and case.flops else None


def is_bandwidth(ceiling: str) -> bool:
    """Return whether a ceiling of that name counts bytes (`bandwidth`, `read_bandwidth`), not operations."""
    return ceiling.endswith("bandwidth")


def valid_median(case: CaseResult, metric: str, subject: str = "kernel") -> float | None:
    """Return the median of a measurement in seconds; None if it is missing, empty or invalid."""
    measured = valid(case, metric, subject)
    return measured.median if measured else None


def valid(case: CaseResult, metric: str, subject: str = "kernel") -> Measurement | None:
    """Return the measurement; None if it is missing or invalid."""
    measured = case.measurement(metric, subject)
    return measured if measured and measured.valid else None


# Plausibility of times: reject times below that of an empty launch, and rates above those of the device.
#
# Launch overhead and ceilings are those of the same run, peaks follow from the device's clocks and widths, so a wrong
# clock shows on any device. A rate between a ceiling and the peak is possible, and noted. If a record has no peaks, the
# ceilings are the bound.

# Shares by which a rate may exceed a ceiling before it is reported: ceilings are medians of noisy times.
_BANDWIDTH_ALLOWANCE = 0.03
_FLOP_ALLOWANCE = 0.05


@dataclass(frozen=True)
class LaunchWork:
    """Work of a launch: moved `bytes`, those of them `written`, and FP32 operations; None if unknown."""

    bytes: int | None = None
    flops: int | None = None
    written: int | None = None

    def carried(self, metric: str, cache_bytes: int) -> int:
        """Return the bytes that a launch must move over the memory bus.

        Cold, everything that is read; written bytes may still be in the cache when the launch ends. Hot, the cache may
        hold both the read and the written bytes.
        """
        moved = self.bytes or 0
        if metric == "hot_time":
            return max(0, moved - 2 * cache_bytes)
        written = moved if self.written is None else self.written
        return max(0, moved - min(written, cache_bytes))


@dataclass(frozen=True)
class Plausibility:
    """Why a time cannot be true (`refusal`), and a note on it (`remark`)."""

    refusal: str | None = None
    remark: str | None = None


def judge(metric: str, seconds: float, work: LaunchWork, limits: Limits) -> Plausibility:
    """Return how a median of `seconds` compares with the run's limits, with both numbers."""
    if seconds <= 0:
        return Plausibility(f"{metric} is {time_text(seconds)}; a launch takes time")
    floor = limits.lowest.get(metric)
    if floor is not None and seconds < floor:
        return Plausibility(
            f"{metric} {time_text(seconds)} is below the launch overhead of this run: an empty kernel takes "
            f"{time_text(floor)}"
        )
    if metric not in ("cold_time", "hot_time"):
        return Plausibility()
    answers = [_bandwidth(metric, seconds, work, limits), _arithmetic(seconds, work, limits)]
    refusals, remarks = [answer.refusal for answer in answers], [answer.remark for answer in answers]
    return Plausibility(next(filter(None, refusals), None), "; ".join(filter(None, remarks)) or None)


def _bandwidth(metric: str, seconds: float, work: LaunchWork, limits: Limits) -> Plausibility:
    """Compare with the peak; only cold times are compared with ceilings: hot data may be in the cache."""
    peak, moved = limits.peaks.get("bandwidth"), work.bytes or 0
    carried = work.carried(metric, limits.cache_bytes)
    if peak and carried / seconds > _peak_of_ceiling("bandwidth", limits.peaks):
        what = bytes_text(moved) if carried == moved else f"{bytes_text(carried)} of {bytes_text(moved)}"
        return Plausibility(
            f"{what} in {time_text(seconds)} are {rate_text(carried / seconds, 'B/s')}; the memory bus carries "
            f"{rate_text(peak, 'B/s')}"
        )
    best = max((rate for name, rate in limits.ceilings.items() if is_bandwidth(name)), default=None)
    rate = moved / seconds
    if metric != "cold_time" or not best or rate <= best * (1 + _BANDWIDTH_ALLOWANCE):
        return Plausibility()
    which = "the read ceiling" if best != limits.ceilings.get("bandwidth") else "the copy ceiling"
    beyond = f"{rate_text(rate, 'B/s')} is more than {_BANDWIDTH_ALLOWANCE * 100:.0f} % above {which} of "
    beyond += f"this run, {rate_text(best, 'B/s')}"
    if peak:
        return Plausibility(remark=f"{beyond}; the memory bus carries {rate_text(peak, 'B/s')}")
    return Plausibility(beyond)


def _arithmetic(seconds: float, work: LaunchWork, limits: Limits) -> Plausibility:
    ceiling, peak = limits.ceilings.get("fp32"), limits.peaks.get("fp32")
    rate = (work.flops or 0) / seconds
    if peak and rate > _peak_of_ceiling("fp32", limits.peaks):
        most = rate_text(peak, "FLOP/s")
        return Plausibility(f"{rate_text(rate, 'FLOP/s')}; the device's FP32 lanes do {most} at most")
    if not ceiling or rate <= ceiling * (1 + _FLOP_ALLOWANCE):
        return Plausibility()
    beyond = (
        f"{rate_text(rate, 'FLOP/s')} is more than {_FLOP_ALLOWANCE * 100:.0f} % above the FP32 ceiling of this run, "
    )
    beyond += rate_text(ceiling, "FLOP/s")
    if peak:
        return Plausibility(remark=f"{beyond}; the device can do {rate_text(peak, 'FLOP/s')}")
    return Plausibility(beyond)


def judged(
    cases: Iterable[CaseResult], limits: Limits, written: Mapping[str, int] | None = None
) -> tuple[CaseResult, ...]:
    """Return the cases, with every impossible measurement marked invalid with its reason; the samples stay.

    `written` are the bytes that a case writes, by name, if known. A measurement that is faster than a ceiling, but
    possible, gets a note.
    """
    known = written or {}
    return tuple(
        replace(case, measurements=tuple(_judged(measured, case, limits, known) for measured in case.measurements))
        for case in cases
    )


def _judged(measured: Measurement, case: CaseResult, limits: Limits, written: Mapping[str, int]) -> Measurement:
    if measured.median is None or not measured.valid or measured.metric in ELSEWHERE:
        return measured
    if limits.cold_doubt and measured.metric == "cold_time":
        return replace(measured, valid=False, reason=limits.cold_doubt)
    flops = case.flops if measured.subject == "kernel" and is_fp32(case) else None
    work = LaunchWork(case.bytes or None, flops, written.get(case.name))
    answer = judge(measured.metric, measured.median, work, limits)
    if answer.refusal:
        return replace(measured, valid=False, reason=answer.refusal)
    if not answer.remark:
        return measured
    whose = "" if measured.subject == "kernel" else f"{measured.subject.replace(':', ' ')}, "
    note = f"{case.name}: {whose}{measured.metric}: {answer.remark}"
    return replace(measured, notes=(*measured.notes, note))


def is_fp32(case: CaseResult) -> bool:
    """Return whether the FP32 ceiling bounds the case's operations, by its spec."""
    return case.arithmetic == "fp32"

"""Plausibility of times: the machine's measured limits, and times that are faster than they allow."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult
from prism_bench.units import bytes_text, rate_text, time_text

# Proof that the caches were cold: reads that fit in them and take longer after the caches were cleared.
#
# A read that gains from the cache proves it, however slow it is. One that gains nothing proves that the caches were
# warm only where it reads much faster from the cache than memory delivers: a slower one may wait for something else.

COLD_PROOF_BYTES = 8 << 20  # below this a cold read is mostly latency and proves nothing
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
    def own_hot(self) -> float:
        return max(self.hot - self.floors["hot_time"], 1e-9)

    @property
    def gain(self) -> float:
        return (self.cold - self.floors["cold_time"]) / self.own_hot

    @property
    def rate(self) -> float:
        """Bytes per second from the cache."""
        return self.case.bytes / self.own_hot


def cold_doubt(
    cases: Iterable[CaseResult], floors: Mapping[str, float], bandwidth: float, cache_bytes: int
) -> str | None:
    """Return why cold times cannot be trusted; None where a read proves them and none contradicts.

    `bandwidth` is the highest rate at which a read or copy of this run moved memory, 0 where none was measured. Nothing
    is doubted where nothing was measured cold, or where no read of the run fits in the cache.
    """
    cases = list(cases)
    if not any(case.measurement("cold_time") for case in cases):
        return None
    reads = [
        case for case in cases if case.ceiling == "read_bandwidth" and COLD_PROOF_BYTES <= case.bytes <= cache_bytes / 2
    ]
    found = [_cached_read(case, floors) for case in reads]
    measured = [one for one in found if isinstance(one, _CachedRead)]
    failed = [one for one in found if isinstance(one, str)]
    flat = [one for one in measured if one.gain < _COLD_GAIN]
    for one in flat:
        if bandwidth and one.rate >= _COLD_GAIN * bandwidth:
            return f"{_WARM}: {_times(one)}"
    if not reads or len(measured) > len(flat):
        return None
    return next(
        (reason for reason in failed if reason.startswith((_WARM, _UNPROVEN))),
        f"{_UNPROVEN}: {'; '.join([*(_too_slow(one, bandwidth) for one in flat), *failed])}",
    )


def _cached_read(case: CaseResult, floors: Mapping[str, float]) -> _CachedRead | str:
    """Return the read, or why it shows nothing: of a record that was judged before, the reason given then."""
    medians: dict[str, float] = {}
    for metric in ("cold_time", "hot_time"):
        one = case.measurement(metric)
        if one and not one.valid and (one.reason or "").startswith((_WARM, _UNPROVEN)):
            return one.reason or ""
        if not one or not one.valid or not one.median:
            reason = one.reason if one and one.reason else "it was not measured"
            return f"{case.name} has no valid {metric}: {reason}"
        if metric not in floors:
            return f"{case.name} cannot be compared, for the launch overhead was not measured"
        medians[metric] = one.median
    return _CachedRead(case, medians["cold_time"], medians["hot_time"], floors)


def _times(one: _CachedRead) -> str:
    return (
        f"{one.case.name} read {bytes_text(one.case.bytes)} in {time_text(one.cold)} after clearing, "
        f"in {time_text(one.hot)} without"
    )


def _too_slow(one: _CachedRead, bandwidth: float) -> str:
    """Return why a read without a gain shows nothing about the caches."""
    rate = rate_text(one.rate, "B/s")
    memory = (
        f"{rate} from the cache are too slow for a proof where memory delivers {rate_text(bandwidth, 'B/s')}"
        if bandwidth
        else f"whether its {rate} are faster than memory is unknown, for no ceiling of memory was measured"
    )
    return f"{_times(one)}; {memory}"


# Limits of the machine as one run measured them: launch overhead and the ceilings of traffic and arithmetic.

_PEAK_ALLOWANCE = 0.01  # what the clock that times a launch may be wrong by


@dataclass(frozen=True)
class Limits:
    """Launch overheads (`floors`: seconds an empty kernel takes, by metric) and `ceilings` (rates per second, by name).

    `spreads` are the relative spreads of the overheads between processes; `sources` names the case behind each ceiling,
    and behind the overhead under `launch`. A limit that was not measured is absent. `peaks` are what the device's
    clocks and widths allow at most, under the ceilings' names `bandwidth` and `fp32`, where they are known;
    `cache_bytes` is the size of its last cache. `cold_doubt` is why cold times cannot be trusted: the caches were
    warm, or the proof that they were cold failed.
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
        """The launch overheads less their spread between processes: nothing can take less time than this."""
        return {metric: floor * (1 - self.spreads.get(metric, 0.0)) for metric, floor in self.floors.items()}


def peaks_of(facts: Mapping[str, object]) -> dict[str, float]:
    """Return what a device can do at most, bytes or operations per second by ceiling; empty where its facts are silent.

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

    A copy that fits in a cache of `cache_bytes` shows nothing about memory and makes no ceiling; nor does a rate beyond
    the device's `peaks`. What one of several boards measured alone makes none where all measured another of the kind.
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
        if case.ceiling == "launch":
            _lower(case, floors, spreads, sources)
    for case in cases:
        rate = _rate(case, cache_bytes)
        if case.ceiling and rate and ceilings.get(case.ceiling, 0.0) < rate <= _peak_of_ceiling(case.ceiling, peaks):
            ceilings[case.ceiling] = rate
            sources[case.ceiling] = case.name
    bandwidth = max((rate for name, rate in ceilings.items() if is_bandwidth(name)), default=0.0)
    doubt = cold_doubt(cases, floors, bandwidth, cache_bytes)
    return Limits(floors, spreads, ceilings, sources, doubt, peaks, cache_bytes)


def _peak_of_ceiling(ceiling: str, peaks: Mapping[str, float]) -> float:
    """Return the rate that nothing exceeds, with the clock's own error; infinite where the facts do not bound it."""
    peak = peaks.get("bandwidth" if is_bandwidth(ceiling) else ceiling)
    return peak * (1 + _PEAK_ALLOWANCE) if peak else float("inf")


def _lower(case: CaseResult, floors: dict[str, float], spreads: dict[str, float], sources: dict[str, str]) -> None:
    """Lower the launch overheads to those of the case, where they are smaller."""
    for metric in ("cold_time", "hot_time"):
        found = valid(case, metric)
        if found and found.median and found.median < floors.get(metric, float("inf")):
            floors[metric] = found.median
            spreads[metric] = found.spread or 0.0
            sources["launch"] = case.name


def _rate(case: CaseResult, cache_bytes: int) -> float | None:
    """Return the rate, in bytes or operations per second, that a ceiling's case reached; None without one."""
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
    """Return the median of a measurement in seconds; None where it is missing, empty or invalid."""
    found = valid(case, metric, subject)
    return found.median if found else None


def valid(case: CaseResult, metric: str, subject: str = "kernel") -> Measurement | None:
    """Return the measurement; None where it is missing or invalid."""
    found = case.measurement(metric, subject)
    return found if found and found.valid else None


# Plausibility of times: reject less than an empty launch takes, and higher rates than the device allows.
#
# Launch overhead and ceilings are those of the same run, peaks follow from the device's clocks and widths
# (`limits.py`), so a wrong clock shows whatever the device is. Faster than a ceiling but not than the peak is possible,
# and noted. Where a record has no peaks, the ceilings are the bound.

# How far above a ceiling a rate may be before it is reported: the ceilings are medians of noisy times themselves.
_BANDWIDTH_ALLOWANCE = 0.03
_FLOP_ALLOWANCE = 0.05


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
    return (
        Plausibility(remark=f"{beyond}; the memory bus carries {rate_text(peak, 'B/s')}")
        if peak
        else Plausibility(beyond)
    )


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

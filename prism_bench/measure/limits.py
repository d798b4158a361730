"""Limits of the machine as one run measured them: launch overhead and the ceilings of traffic and arithmetic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prism_bench.measure.cold_proof import cold_doubt
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult

PEAK_ALLOWANCE = 0.01  # what the clock that times a launch may be wrong by


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
        if case.ceiling and rate and ceilings.get(case.ceiling, 0.0) < rate <= peak_of_ceiling(case.ceiling, peaks):
            ceilings[case.ceiling] = rate
            sources[case.ceiling] = case.name
    bandwidth = max((rate for name, rate in ceilings.items() if is_bandwidth(name)), default=0.0)
    doubt = cold_doubt(cases, floors, bandwidth, cache_bytes)
    return Limits(floors, spreads, ceilings, sources, doubt, peaks, cache_bytes)


def peak_of_ceiling(ceiling: str, peaks: Mapping[str, float]) -> float:
    """Return the rate that nothing exceeds, with the clock's own error; infinite where the facts do not bound it."""
    peak = peaks.get("bandwidth" if is_bandwidth(ceiling) else ceiling)
    return peak * (1 + PEAK_ALLOWANCE) if peak else float("inf")


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

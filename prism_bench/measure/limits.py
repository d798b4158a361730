"""What the machine can do, as one run measured it: the floor of a launch and the ceilings of traffic and arithmetic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prism_bench.run_record import CaseResult
from prism_bench.units import bytes_text, time_text

COLD_PROOF_BYTES = 8 << 20  # below this a cold read is mostly latency and proves nothing
PEAK_ALLOWANCE = 0.01  # what the clock that times a launch may be wrong by
COLD_GAIN = 1.15  # cold over hot of a read from cache; an H200 shows 1.3


@dataclass(frozen=True)
class Limits:
    """`floors`: seconds an empty kernel takes, by metric. `ceilings`: bytes or operations per second, by name.

    `spreads` are the floors' relative spreads between processes; `sources` names the case behind each ceiling, and
    behind the floor under `launch`. A limit that the run did not measure is absent. `peaks` are what the device's
    clocks and widths allow at most, under the ceilings' names `bandwidth` and `fp32`, where its facts say;
    `cache_bytes` is the size of its last cache. `warm` says why the caches were not cold although they should have
    been, where the run shows that.
    """

    floors: Mapping[str, float] = field(default_factory=dict)
    spreads: Mapping[str, float] = field(default_factory=dict)
    ceilings: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    warm: str | None = None
    peaks: Mapping[str, float] = field(default_factory=dict)
    cache_bytes: int = 0

    @property
    def lowest(self) -> dict[str, float]:
        """The floors less their spread between processes: nothing can take less time than this."""
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
    """The limits that the `machine/` kernels among `cases` measured; only valid measurements count.

    A copy that fits in a cache of `cache_bytes` says nothing about memory and makes no ceiling; nor does a rate beyond
    the device's `peaks`.
    """
    peaks = peaks or {}
    cases = [case for case in cases if case.ceiling]
    floors, spreads, sources = {}, {}, {}
    for case in cases:
        if case.ceiling == "launch":
            _lower(case, floors, spreads, sources)
    ceilings = {}
    for case in cases:
        rate = _rate(case, cache_bytes)
        if rate and ceilings.get(case.ceiling, 0.0) < rate <= peak_of_ceiling(case.ceiling, peaks):
            ceilings[case.ceiling] = rate
            sources[case.ceiling] = case.name
    warm = _warm(cases, floors, cache_bytes)
    return Limits(floors, spreads, ceilings, sources, warm, peaks, cache_bytes)


def peak_of_ceiling(ceiling: str, peaks: Mapping[str, float]) -> float:
    """Return the rate that nothing exceeds, with the clock's own error; infinite where the device's facts are
    silent."""
    peak = peaks.get("bandwidth" if is_bandwidth(ceiling) else ceiling)
    return peak * (1 + PEAK_ALLOWANCE) if peak else float("inf")


def _warm(cases, floors, cache_bytes):
    """Reading what fits in half the cache must be slower after the caches were cleared, launches taken off."""
    for case in cases:
        cold, hot = valid_median(case, "cold_time"), valid_median(case, "hot_time")
        fits = COLD_PROOF_BYTES <= case.bytes <= cache_bytes / 2
        if case.ceiling != "read_bandwidth" or not fits or not cold or not hot or len(floors) < 2:
            continue
        gain = (cold - floors["cold_time"]) / max(hot - floors["hot_time"], 1e-9)
        if gain < COLD_GAIN:
            return (f"the caches were warm: {bytes_text(case.bytes)} were read in {time_text(cold)} after clearing, "
                    f"in {time_text(hot)} without")  # fmt: skip
    return None


def _lower(case, floors, spreads, sources):
    for metric in ("cold_time", "hot_time"):
        seconds = valid_median(case, metric)
        if seconds and seconds < floors.get(metric, float("inf")):
            floors[metric] = seconds
            spreads[metric] = case.measurement(metric).spread or 0.0
            sources["launch"] = case.name


def _rate(case, cache_bytes):
    """Bytes or operations per second that a ceiling's case reached; None where it measured none."""
    if case.ceiling == "launch":
        return None
    if is_bandwidth(case.ceiling):
        cold = valid_median(case, "cold_time")
        return case.bytes / cold if cold and case.bytes > cache_bytes else None
    times = [seconds for metric in ("cold_time", "hot_time") if (seconds := valid_median(case, metric))]
    return case.flops / min(times) if times and case.flops else None


def is_bandwidth(ceiling: str) -> bool:
    """Whether a ceiling of that name is of bytes per second (`bandwidth`, `read_bandwidth`), not of operations."""
    return ceiling.endswith("bandwidth")


def valid_median(case: CaseResult, metric: str, subject: str = "kernel") -> float | None:
    """The median of a measurement in seconds; None where it is missing, empty or invalid."""
    found = case.measurement(metric, subject)
    return found.median if found and found.valid else None

"""What the machine can do, as one run measured it: the floor of a launch and the ceilings of traffic and arithmetic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prism_bench.run_record import CaseResult
from prism_bench.units import bytes_text, time_text

COLD_PROOF_BYTES = 8 << 20  # below this a cold read is mostly latency and proves nothing
COLD_GAIN = 1.15  # cold over hot of a read from cache; an H200 shows 1.3


@dataclass(frozen=True)
class Limits:
    """`floors`: seconds an empty kernel takes, by metric. `ceilings`: bytes or operations per second, by name.

    `spreads` are the floors' relative spreads between processes; `sources` names the case behind each ceiling, and
    behind the floor under `launch`. A limit that the run did not measure is absent. `warm` says why the caches were not
    cold although they should have been, where the run shows that.
    """

    floors: Mapping[str, float] = field(default_factory=dict)
    spreads: Mapping[str, float] = field(default_factory=dict)
    ceilings: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    warm: str | None = None

    @property
    def lowest(self) -> dict[str, float]:
        """The floors less their spread between processes: nothing can take less time than this."""
        return {metric: floor * (1 - self.spreads.get(metric, 0.0)) for metric, floor in self.floors.items()}


def measured_limits(cases: Iterable[CaseResult], cache_bytes: int = 0) -> Limits:
    """The limits that the `machine/` kernels among `cases` measured; only valid measurements count.

    A copy that fits in a cache of `cache_bytes` says nothing about memory and makes no ceiling.
    """
    cases = [case for case in cases if case.ceiling]
    floors, spreads, sources = {}, {}, {}
    for case in cases:
        if case.ceiling == "launch":
            _lower(case, floors, spreads, sources)
    ceilings = {}
    for case in cases:
        rate = _rate(case, cache_bytes)
        if rate and rate > ceilings.get(case.ceiling, 0.0):
            ceilings[case.ceiling] = rate
            sources[case.ceiling] = case.name
    return Limits(floors, spreads, ceilings, sources, _warm(cases, floors, cache_bytes))


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

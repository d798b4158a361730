"""Proof that the caches were cold: reads that fit in them and take longer after the caches were cleared.

A read that gains from the cache proves it, however slow it is. One that gains nothing proves that the caches were warm
only where it reads much faster from the cache than memory delivers: a slower one may wait for something else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prism_bench.record.run_record import CaseResult
from prism_bench.units import bytes_text, rate_text, time_text

COLD_PROOF_BYTES = 8 << 20  # below this a cold read is mostly latency and proves nothing
COLD_GAIN = 1.15  # cold over hot of a read from cache; an H200 shows 1.3
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
    reads = [case for case in cases if case.ceiling == "read_bandwidth"
             and COLD_PROOF_BYTES <= case.bytes <= cache_bytes / 2]  # fmt: skip
    found = [_cached_read(case, floors) for case in reads]
    measured = [one for one in found if isinstance(one, _CachedRead)]
    failed = [one for one in found if isinstance(one, str)]
    flat = [one for one in measured if one.gain < COLD_GAIN]
    for one in flat:
        if bandwidth and one.rate >= COLD_GAIN * bandwidth:
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
    return (f"{one.case.name} read {bytes_text(one.case.bytes)} in {time_text(one.cold)} after clearing, "
            f"in {time_text(one.hot)} without")  # fmt: skip


def _too_slow(one: _CachedRead, bandwidth: float) -> str:
    """Return why a read without a gain shows nothing about the caches."""
    rate = rate_text(one.rate, "B/s")
    memory = (
        f"{rate} from the cache are too slow for a proof where memory delivers {rate_text(bandwidth, 'B/s')}"
        if bandwidth
        else f"whether its {rate} are faster than memory is unknown, for no ceiling of memory was measured"
    )
    return f"{_times(one)}; {memory}"

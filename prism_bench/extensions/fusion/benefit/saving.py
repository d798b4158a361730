"""What fusion saves: ratios with intervals, next to what the fusion plan published."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from prism_bench.analysis.compare.estimate import estimate, medians
from prism_bench.analysis.peers import UNSTABLE_MARK, fastest_process, peers
from prism_bench.measure.plausibility import Limits
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult

# A number of the ledger, or the reason why it is missing.


@dataclass(frozen=True)
class Figure:
    """`value` in SI units with its `source` in words, or None and the `reason`."""

    value: float | None = None
    source: str | None = None
    reason: str | None = None


def absent(reason: str | None) -> Figure:
    """Return a figure without a number, with the reason."""
    return Figure(reason=reason)


# What fusion saves: the ratio to the baseline with its interval, and the saved time divided by its causes.
#
#     launches    launches removed, times what one more launch costs at least: the empty kernel's hot time
#     traffic     bytes removed, over the measured copy ceiling: as counters have them, else as the emulator, else as
#                 the plans' model, whichever knows both stages
#     the rest    what is left, reported as unexplained: faster arithmetic, other shapes of the same work, the wait of
#                 dependent launches beyond the launch overhead; negative where the fused form works more slowly on
#                 what it still does
#
# What stays in the last cache costs less than memory's rate, so that `traffic` is then too large: `cached` is whether
# the bytes that differ fit there.

DIVIDED = ("cold_time", "hot_time")
CLOCKS = (*DIVIDED, "issued")
Basis = Literal["counters", "emulator", "model"]
_BASES: tuple[Basis, ...] = get_args(Basis)  # where bytes are from, the best first


@dataclass(frozen=True)
class Timed:
    """The measurement of a stage's time by one clock, or the reason why it is missing."""

    measurement: Measurement | None = None
    reason: str | None = None

    @property
    def seconds(self) -> float | None:
        """The median that a speedup is made of, in seconds: that of the processes' medians; None without times."""
        return medians(self.measurement.processes).typical if self.measurement else None

    @property
    def figure(self) -> Figure:
        """Its median as a figure."""
        measurement = self.measurement
        return (
            Figure(self.seconds, f"{measurement.subject} {measurement.metric}") if measurement else absent(self.reason)
        )


@dataclass(frozen=True)
class Speedup:
    """The baseline's time over the stage's by one clock, with its 95 % interval.

    `low` and `high` are None if a side has a single process. All are None if a side has no time, with the
    `reason`.
    """

    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Saving:
    """The seconds that a stage saves, divided; parts are None if the record has no launch overhead or no ceiling.

    `basis` is where `removed_bytes` are from.
    """

    seconds: float
    launches: float | None
    traffic: float | None
    rest: float | None
    removed_launches: int
    removed_bytes: float
    basis: Basis
    cached: bool


def timed(result: CaseResult | None, clock: str, missing: str) -> Timed:
    """Return the stage's time by `clock`, a metric or `issued`; `missing` is why there is no `result`.

    `issued` is what an evaluation takes when the host issues its launches one by one and does not wait: the host's time
    or the device's, whichever is longer.
    """
    if result is None:
        return Timed(reason=missing)
    if clock != "issued":
        return _timed(result, clock)
    both = [_timed(result, metric) for metric in ("launch_time", "hot_time")]
    without = next((side for side in both if side.measurement is None), None)
    return without or max(both, key=lambda side: side.seconds or 0.0)


def _timed(result: CaseResult, metric: str) -> Timed:
    measurement = result.measurement(metric)
    if measurement is None:
        return Timed(reason=result.reason or f"{result.name}: the record holds no {metric.replace('_', ' ')}")
    if not measurement.valid or not measurement.samples:
        return Timed(reason=measurement.reason or f"{result.name}: no samples")
    return Timed(measurement)


def library(result: CaseResult | None, missing: str) -> Timed:
    """Return the fastest library call that was timed with the baseline's `result`, by the cold clock.

    Of an unstable one the fastest process counts, and its name has the mark of an unstable peer.
    """
    if result is None:
        return Timed(reason=missing)
    peer = next(iter(peers(result)), None)
    best = result.measurement("cold_time", f"peer:{peer.name}") if peer else None
    if peer and best and peer.unstable:
        fastest = tuple(tuple(process) for process in fastest_process(best.processes))
        best = replace(best, subject=f"{best.subject}{UNSTABLE_MARK}", processes=fastest)
    reasons = [
        measurement.reason
        for measurement in result.measurements
        if measurement.subject.startswith("peer:") and measurement.reason
    ]
    return Timed(best) if best else Timed(reason=next(iter(reasons), "no library call was timed with it"))


def speedup(baseline: Timed, stage: Timed) -> Speedup:
    """Return the ratio of the two, from their processes' medians."""
    if not (baseline.measurement and stage.measurement):
        return Speedup(reason=stage.reason or baseline.reason)
    comparison = estimate(medians(stage.measurement.processes), medians(baseline.measurement.processes))
    low, high = comparison.interval()
    if high == float("inf"):
        return Speedup(comparison.ratio, reason="one process a side: no interval")
    return Speedup(comparison.ratio, low, high)


@dataclass(frozen=True)
class Prices:
    """Least cost of a launch and of a byte on the machine, and the size of its last cache."""

    launch: float | None
    bandwidth: float | None
    cache_bytes: int

    @classmethod
    def of(cls, limits: Limits, cache_bytes: int) -> "Prices":
        """Return the prices by the limits that a record measured."""
        return cls(limits.floors.get("hot_time"), limits.ceilings.get("bandwidth"), cache_bytes)

    def traffic(self, count: float) -> float | None:
        """Return the seconds of `count` bytes at the copy ceiling."""
        return count / self.bandwidth if self.bandwidth else None


@dataclass(frozen=True)
class StageCost:
    """Cost of a stage: its time, its launches, and its bytes by basis."""

    time: Timed
    launches: int
    bytes: Mapping[Basis, float | None]


def saving(baseline: StageCost, stage: StageCost, prices: Prices) -> Saving | None:
    """Return what the stage saves against the baseline; None if one has no time."""
    before, after = baseline.time.seconds, stage.time.seconds
    if before is None or after is None:
        return None
    seconds = before - after
    basis, less = _removed(baseline, stage)
    fewer = baseline.launches - stage.launches
    launches = fewer * prices.launch if prices.launch else None
    traffic = prices.traffic(less)
    rest = None if launches is None or traffic is None else seconds - launches - traffic
    return Saving(seconds, launches, traffic, rest, fewer, less, basis, cached=abs(less) <= prices.cache_bytes)


def _removed(baseline: StageCost, stage: StageCost) -> tuple[Basis, float]:
    """Return the saved bytes by the best basis that has the bytes of both stages; the plans' model always has."""
    for basis in _BASES:
        before, after = baseline.bytes[basis], stage.bytes[basis]
        if before is not None and after is not None:
            return basis, before - after
    raise ValueError("the plans' model has the bytes of every stage")


# What the fusion plan published: its table before and after, and its pass rule. Quoted, never measured.

STAGES = ("baseline", "partial", "full")


@dataclass(frozen=True)
class PublishedRow:
    """One row of the plan's table in SI units: what `quantity` of which `chains` was at each stage, and its target."""

    name: str
    quantity: str
    chains: tuple[str, ...]
    stages: dict[str, float]
    target: float
    at_least: bool

    def met(self, value: float | None) -> bool | None:
        """Return whether `value` keeps the target; None if there is no value."""
        if value is None:
            return None
        return value > self.target if self.at_least else value < self.target


@dataclass(frozen=True)
class PassRule:
    """Rule by which a fused stage passes: upper limit of its relative error, lower limit of its speedup."""

    error_below: float
    speedup_at_least: float

    def verdict(self, error: float | None, speedup: float | None) -> bool | None:
        """Return True, False, or None if the measurements do not decide it."""
        kept = (
            None if error is None else error < self.error_below,
            None if speedup is None else speedup >= self.speedup_at_least,
        )
        return False if False in kept else None if None in kept else True


@cache
def _quoted() -> dict[str, Any]:
    return tomllib.loads(files("prism_bench.extensions.fusion.benefit").joinpath("published.toml").read_text("utf-8"))


def source() -> str:
    """Return the origin of the figures, and what they leave out."""
    return _quoted()["source"]


def pass_rule() -> PassRule:
    """Return the plan's rule for a fused stage."""
    return PassRule(**_quoted()["rule"])


@cache
def published_rows() -> tuple[PublishedRow, ...]:
    """Return the plan's table."""
    return tuple(_row(entry) for entry in _quoted()["row"])


def _row(entry: Mapping[str, Any]) -> PublishedRow:
    scale = entry["scale"]
    stages = {stage: entry[stage] * scale for stage in STAGES}
    return PublishedRow(
        entry["name"],
        entry["quantity"],
        tuple(entry["chains"]),
        stages,
        entry["target"] * scale,
        entry.get("at_least", False),
    )

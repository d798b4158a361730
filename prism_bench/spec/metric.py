"""Metrics and budgets: what can be measured, what follows from it, and what is promised of it.

Only measured metrics are stored. The derived ones are computed when a record is read (`analysis/`).
Lower is better unless `better` is `higher`.
"""

from dataclasses import dataclass
from datetime import date
from typing import Literal

from prism_bench.errors import SpecError
from prism_bench.spec.kinds import Noun
from prism_bench.units import energy_text, rate_text, time_text


@dataclass(frozen=True)
class StandIn:
    """What a backend times in place of a kernel on a device: its `name`, and the `sentence` that a report prints."""

    name: str
    sentence: str


# By the name of the backend. The null backend plays the device with scripted times: its records pass for a GPU's.
STAND_INS = {
    "numpy_reference": StandIn(
        "NumPy reference", "Times are those of the NumPy reference on the CPU: this backend runs no kernel."
    ),
    "emulator": StandIn(
        "emulator", "Times are those of the emulator, which runs the kernel's source on the CPU: no device's times."
    ),
}


def timed_on(backend: str) -> str:
    """Return whose the times of that backend are, for programs: `kernel`, or the name of what replaces it."""
    return STAND_INS[backend].name if backend in STAND_INS else "kernel"


@dataclass(frozen=True)
class Metric:
    """One quantity: its `unit` (SI), which direction is `better`, the `clock` that read it, and what it means."""

    name: str
    unit: str
    clock: str
    meaning: str
    better: Literal["lower", "higher"] = "lower"


MEASURED = {
    metric.name: metric
    for metric in (
        Metric("cold_time", "s", "events", "one launch, caches cleared before it, host launch cost hidden"),
        Metric("hot_time", "s", "graph", "one launch of a CUDA graph of many, back to back, caches warm"),
        Metric("launch_time", "s", "host", "what the host spends to enqueue the kernel once"),
        Metric("first_call_time", "s", "host", "compile (not from the cache), load and first launch"),
        Metric("end_to_end_time", "s", "host", "inputs to the device, kernel, outputs back to the host"),
        Metric("wall_time", "s", "host", "one call on the CPU, caches as they are"),
    )
}

# No time of one launch: its energy, and the times of pipelines and allocators.
ELSEWHERE = {
    metric.name: metric
    for metric in (
        Metric("energy", "J", "counter", "of one launch of many, back to back, by the board's own counter"),
        Metric("steady_time", "s", "host", "one evaluation of many enqueued without waiting, data on the device"),
        Metric("allocation_time", "s", "host", "one allocation, from Python"),
        Metric("allocation_tail", "s", "host", "the 99th percentile of allocations, from Python"),
        Metric("release_time", "s", "host", "the end of one allocation, from Python"),
    )
}

# One value of a case in each record, without samples. What the compiler counts is exact; what the clock reads is noisy.
CODE = {
    metric.name: metric
    for metric in (
        Metric("code_bytes", "B", "compiler", "instructions of all entries that the case launches"),
        Metric("registers", "", "compiler", "of a thread, of the entry that needs most"),
        Metric("compile_seconds", "s", "host", "what the compiler took for them, now or when the cache was filled"),
    )
}

DERIVED = {
    metric.name: metric
    for metric in (
        Metric("bandwidth", "B/s", "derived", "compulsory bytes over cold time", "higher"),
        Metric("flop_rate", "FLOP/s", "derived", "operations over cold time", "higher"),
        Metric("bandwidth_share", "1", "derived", "bandwidth over the copy ceiling of the same run", "higher"),
        Metric("flop_share", "1", "derived", "operation rate over the FP32 ceiling of the same run", "higher"),
        Metric("peer_ratio", "1", "derived", "best peer's cold time over the kernel's", "higher"),
        Metric("dram_bytes", "B", "profiler", "bytes read from and written to DRAM"),
        Metric("dram_share", "1", "profiler", "DRAM throughput over its peak", "higher"),
        Metric("tensor_share", "1", "profiler", "tensor pipe over its peak", "higher"),
        Metric("fp32_share", "1", "profiler", "FP32 pipe over its peak", "higher"),
        Metric("occupancy", "1", "profiler", "warps resident while a multiprocessor works, over its limit", "higher"),
    )
}


def value_text(metric: str, value: float | None) -> str:
    """Return a value of a metric with its unit; a plain number if the metric is unknown."""
    known = {**MEASURED, **ELSEWHERE, **CODE, **DERIVED}.get(metric)
    unit = known.unit if known else None
    if value is None:
        return "-"
    if is_exact(metric):
        return f"{value:,.10g} {unit}".rstrip()
    if unit in ("s", "J"):
        return time_text(value) if unit == "s" else energy_text(value)
    if unit == "1":
        return f"{value * 100:.3g} %" if metric.endswith("share") else f"{value:.3g}x"
    return rate_text(value, unit) if unit else f"{value:g}"


def is_host_time(metric: str) -> bool:
    """Return whether the host's clock read it: such times compare only within one host."""
    known = MEASURED.get(metric) or ELSEWHERE.get(metric) or CODE.get(metric)
    return known is not None and known.clock == "host"


def is_exact(metric: str) -> bool:
    """Return whether the compiler counted it: equal code has equal values, and every change is a real one."""
    return metric in CODE and CODE[metric].clock == "compiler"


def is_measured(metric: str | None, ceiling: str | None) -> bool:
    """Return whether cases of this ceiling are measured in the metric: an empty launch has no energy to compare."""
    return metric != "energy" or ceiling != "launch"


BudgetWord = Literal["met", "missed", "undecided", "expired", "unmeasured"]


@dataclass(frozen=True)
class Budget(Noun):
    """Limit on one metric.

    `metric` must be at most `at_most` or at least `at_least` (exactly one of them), for cases of `label` or all.
    `owner` is responsible for it, `reason` explains the limit; from `expires` on it is not checked until it is renewed.
    """

    metric: str
    at_most: float | None = None
    at_least: float | None = None
    label: str | None = None
    owner: str | None = None
    reason: str | None = None
    expires: date | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.at_most is None) == (self.at_least is None):
            raise SpecError(f"Budget('{self.metric}'): give exactly one of at_most and at_least")
        if not self.limit >= 0:
            reason = f"{self.limit} cannot be kept; a budget is a number from 0 upwards"
            raise SpecError(f"Budget('{self.metric}'): {reason}")

    @property
    def limit(self) -> float:
        """The number that must not be crossed."""
        limit = self.at_least if self.at_most is None else self.at_most
        assert limit is not None, "one of them is given"
        return limit

    def verdict(
        self, value: float | None, today: date | None = None, interval: tuple[float, float] | None = None
    ) -> BudgetWord:
        """Return `met`, `missed`, `unmeasured` if there is no value, or `expired`.

        With the value's `interval` it is `undecided` where the limit is inside of it: `missed` needs all of the
        interval beyond the limit, `met` all of it within.
        """
        if self.expires and today and today >= self.expires:
            return "expired"
        if value is None or value != value:
            return "unmeasured"
        kept = {(end <= self.limit if self.at_most is not None else end >= self.limit) for end in interval or (value,)}
        return "undecided" if len(kept) > 1 else "met" if kept == {True} else "missed"

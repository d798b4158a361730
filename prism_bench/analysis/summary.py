"""From a run record to one tidy row per case: medians, rates, shares of the measured limits, ratios to rivals."""

import math

import pandas

from prism_bench.analysis import rivals, roofline
from prism_bench.analysis.bound import dram_bytes, value
from prism_bench.measure.limits import Limits, measured_limits, peaks_of, valid_median
from prism_bench.metric import MEASURED
from prism_bench.run_record import CaseResult, RunRecord

_FACTS = ("kernel", "variant", "family", "label", "bytes", "flops", "ceiling", "status", "reason")
IDENTITY = ("case", "implementation", "workload", *_FACTS)
CODE = ("registers", "spill_bytes", "shared_bytes", "launches")
DERIVED = (
    "bandwidth", "bandwidth_share", "flop_rate", "flop_share", "intensity", "bound", "least_time", "bound_share",
    "best_peer", "best_peer_time", "peer_ratio", "cpu_time", "cpu_ratio", "cpu_ratio_end_to_end",
    "error", "invalid", "throttled",
)  # fmt: skip
SPREADS = tuple(f"{metric}_spread" for metric in MEASURED)
COUNTED = ("dram_share", "tensor_share", "fp32_share", "occupancy")
SPENT = ("dram_bytes", "energy")
COLUMNS = (*IDENTITY, *MEASURED, *SPREADS, *DERIVED, *CODE, *SPENT, *COUNTED)
TEXT = {*IDENTITY, "bound", "best_peer", "invalid"} - {"bytes", "flops"}
_NUMBERS = set(COLUMNS) - TEXT


def limits_of(record: RunRecord) -> Limits:
    """The floors and ceilings that the record's own `machine/` kernels measured."""
    return measured_limits(record.cases, cache_bytes(record.machine), peaks_of(record.machine))


def cache_bytes(machine: dict) -> int:
    """The size of the last cache before memory, in bytes, from the machine's facts; 0 where they do not say."""
    nested = [value for value in machine.values() if isinstance(value, dict)]
    sizes = [facts["l2_bytes"] for facts in (machine, *nested) if isinstance(facts.get("l2_bytes"), int)]
    return sizes[0] if sizes else 0


def summary(record: RunRecord) -> pandas.DataFrame:
    """One row per case in the record's order, with the columns of `COLUMNS`.

    Times are medians in seconds over the processes' medians, spreads relative. What was not measured, or measured but
    invalid, is NaN (None where the column is text). Ratios are above 1 where the kernel is faster than its rival.
    """
    limits = limits_of(record)
    rows = [row(case, limits) for case in record.cases]
    return pandas.DataFrame({column: _series(column, rows) for column in COLUMNS})


def _series(column, rows):
    return pandas.Series([row.get(column) for row in rows], dtype=float if column in _NUMBERS else object)


def row(case: CaseResult, limits: Limits) -> dict:
    """What `summary` says about one case; None where nothing is known."""
    return {
        **_identity(case),
        **_times(case),
        **_rates(case, limits),
        **_comparisons(case),
        **_trust(case),
        **{name: number(case.code.get(name)) for name in CODE},
        "dram_bytes": dram_bytes(case),
        "energy": _energy(case),
        **{name: value(case, name) for name in COUNTED},
    }


def _energy(case):
    """Joules of one launch, from whichever of the kernel's own measurements told it."""
    told = [one.energy.joules for one in case.measurements if one.subject == "kernel" and one.energy]
    return next((joules for joules in told if joules is not None), None)


def _identity(case):
    workload = ", ".join(f"{axis}={value}" for axis, value in case.workload.items())
    facts = {name: getattr(case, name) for name in _FACTS}
    return {"case": case.name, "implementation": implementation(case), "workload": workload, **facts}


def implementation(case: CaseResult) -> str:
    """The kernel's name with its variant, such as `pixel_entropy:naive`."""
    return f"{case.kernel}:{case.variant}" if case.variant else case.kernel


def _times(case):
    times = {metric: valid_median(case, metric) for metric in MEASURED}
    spreads = {f"{metric}_spread": case.measurement(metric).spread for metric in MEASURED if times[metric]}
    return {**times, **spreads}


def _rates(case, limits):
    cold = valid_median(case, "cold_time")
    bandwidth, flop_rate = _over(case.bytes, cold), _over(case.flops, cold)
    bound, least = roofline.binding(case, limits) or (None, None)
    return {
        "bandwidth": bandwidth,
        "bandwidth_share": _over(bandwidth, limits.ceilings.get("bandwidth")),
        "flop_rate": flop_rate,
        "flop_share": _over(flop_rate, roofline.peak_of(case, limits)),
        "intensity": roofline.intensity(case.flops, case.bytes),
        "bound": bound,
        "least_time": least,
        "bound_share": _over(least, cold),
    }


def _comparisons(case):
    own, cpu = valid_median(case, rivals.clock_of(case)), rivals.cpu_seconds(case)
    best = next(iter(rivals.peers(case)), None)
    return {
        "best_peer": best.name if best else None,
        "best_peer_time": best.seconds if best else None,
        "peer_ratio": _over(best.seconds, own) if best else None,
        "cpu_time": cpu,
        "cpu_ratio": _over(cpu, valid_median(case, "cold_time")),
        "cpu_ratio_end_to_end": _over(cpu, valid_median(case, "end_to_end_time")),
    }


def _trust(case):
    invalid = [f"{one.subject} {one.metric}: {one.reason}" for one in case.measurements if one.distrusted]
    errors = [number(check.get("norm_error")) for check in case.verification]
    return {
        "error": max((error for error in errors if error is not None), default=None),
        "invalid": "; ".join(invalid) or None,
        "throttled": sum(one.throttled for one in case.measurements),
    }


def number(value: object) -> float | None:
    """The value as a float; None where it is missing, not a number, or NaN."""
    try:
        plain = float(value)
    except (TypeError, ValueError):
        return None
    return None if math.isnan(plain) else plain


def _over(value, by):
    return value / by if value and by else None

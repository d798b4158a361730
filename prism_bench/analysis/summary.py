"""Summary of a run record, one tidy row per case: medians, rates, shares of the measured limits, ratios to rivals."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat, cast

from prism_bench.analysis import rivals
from prism_bench.analysis.bounds import roofline
from prism_bench.analysis.bounds.bound import dram_bytes, value
from prism_bench.measure.limits import Limits, measured_limits, peaks_of, valid, valid_median
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.metric import MEASURED

if TYPE_CHECKING:
    import pandas

SummaryRow = dict[str, Any]  # by column of COLUMNS: text or None, or a number, NaN where it is unknown

_FACTS = ("kernel", "variant", "family", "label", "bytes", "flops", "ceiling", "before", "status", "reason")
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
    """Return launch overheads and ceilings that the record's own `machine/` kernels measured."""
    return measured_limits(record.cases, cache_bytes(record.machine), peaks_of(record.machine))


def cache_bytes(machine: Mapping[str, Any]) -> int:
    """Return the size of the last cache before memory, in bytes, from the machine's facts; 0 where it is unknown."""
    nested = [cast("dict[str, Any]", value) for value in machine.values() if isinstance(value, dict)]
    sizes: list[int] = [facts["l2_bytes"] for facts in (machine, *nested) if isinstance(facts.get("l2_bytes"), int)]
    return sizes[0] if sizes else 0


def summary_rows(record: RunRecord) -> list[SummaryRow]:
    """Return one row per case in the record's order, with the columns of `COLUMNS`.

    Times are medians in seconds over the processes' medians, spreads relative. What was not measured, or measured but
    invalid, is NaN (None where the column is text). Ratios are above 1 where the kernel is faster than its rival.
    """
    limits = limits_of(record)
    rows = [row(case, limits) for case in record.cases]
    return [{column: _value(column, one.get(column)) for column in COLUMNS} for one in rows]


def _value(column: str, known: Any) -> Any:
    return (math.nan if known is None else float(known)) if column in _NUMBERS else known


def summary(record: RunRecord) -> "pandas.DataFrame":
    """Return the rows of the summary as a table of pandas."""
    return frame_of(summary_rows(record))


def frame_of(rows: Sequence[SummaryRow]) -> "pandas.DataFrame":
    """Return rows of a summary as a table of pandas, which few commands need: its import takes half a second."""
    import pandas

    return pandas.DataFrame({
        column: pandas.Series([row[column] for row in rows], dtype=float if column in _NUMBERS else object)
        for column in COLUMNS
    })  # fmt: skip


def rows_of(frame: "pandas.DataFrame") -> list[SummaryRow]:
    """Return the rows of a summary as dictionaries by column."""
    return [dict(zip(frame.columns, values, strict=True)) for values in frame.itertuples(index=False, name=None)]


def row(case: CaseResult, limits: Limits) -> SummaryRow:
    """Return known columns of one case; None where nothing is known."""
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


def _energy(case: CaseResult) -> float | None:
    """Return joules of one launch, from the first of the kernel's own measurements that has them."""
    found = [one.energy.joules for one in case.measurements if one.subject == "kernel" and one.energy]
    return next((joules for joules in found if joules is not None), None)


def _identity(case: CaseResult) -> SummaryRow:
    workload = ", ".join(f"{axis}={value}" for axis, value in case.workload.items())
    facts = {name: getattr(case, name) for name in _FACTS}
    return {"case": case.name, "implementation": implementation(case), "workload": workload, **facts}


def implementation(case: CaseResult) -> str:
    """Return the kernel's name with its variant, such as `pixel_entropy:naive`."""
    return f"{case.kernel}:{case.variant}" if case.variant else case.kernel


def _times(case: CaseResult) -> SummaryRow:
    times: SummaryRow = {metric: valid_median(case, metric) for metric in MEASURED}
    timed = {metric: one for metric in MEASURED if times[metric] and (one := valid(case, metric))}
    return times | {f"{metric}_spread": one.spread for metric, one in timed.items()}


def _rates(case: CaseResult, limits: Limits) -> SummaryRow:
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


def _comparisons(case: CaseResult) -> SummaryRow:
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


def _trust(case: CaseResult) -> SummaryRow:
    invalid = [f"{one.subject} {one.metric}: {one.reason}" for one in case.measurements if one.distrusted]
    errors = [number(check.get("norm_error")) for check in case.verification]
    return {
        "error": max((error for error in errors if error is not None), default=None),
        "invalid": "; ".join(invalid) or None,
        "throttled": sum(one.throttled for one in case.measurements),
    }


def number(value: object) -> float | None:
    """Return the value as a float; None where it is missing, not a number, or NaN."""
    try:
        plain = float(cast("SupportsFloat", value))
    except (TypeError, ValueError):
        return None
    return None if math.isnan(plain) else plain


def _over(value: float | None, by: float | None) -> float | None:
    return value / by if value and by else None

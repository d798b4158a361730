"""Summary of a run record, one row per case: medians, rates, shares and evidence, and the conditions of the run."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, SupportsFloat, cast

from prism_bench.analysis import peers as rivals
from prism_bench.analysis.bounds import bottleneck
from prism_bench.analysis.bounds.bottleneck import dram_bytes, value
from prism_bench.errors import unknown
from prism_bench.measure.plausibility import Limits, measured_limits, peaks_of, valid, valid_median
from prism_bench.record.measurement import Evidence, Span
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.metric import MEASURED
from prism_bench.units import count_text, rate_text, share_text

if TYPE_CHECKING:
    import pandas


# Summary of a run record, one tidy row per case: medians, rates, shares of the measured limits, ratios to rivals.

SummaryRow = dict[str, Any]  # by column of COLUMNS: text or None, or a number, NaN where it is unknown

_FACTS = ("kernel", "variant", "family", "label", "bytes", "flops", "ceiling", "before", "status", "reason")
IDENTITY = ("case", "implementation", "workload", *_FACTS)
_CODE = ("registers", "spill_bytes", "shared_bytes", "launches")
DERIVED = (
    "bandwidth", "bandwidth_share", "flop_rate", "flop_share", "intensity", "bound", "least_time", "bound_share",
    "best_peer", "best_peer_time", "peer_ratio", "cpu_time", "cpu_ratio", "cpu_ratio_end_to_end",
    "error", "invalid", "throttled",
)  # fmt: skip
_SPREADS = tuple(f"{metric}_spread" for metric in MEASURED)
_COUNTED = ("dram_share", "tensor_share", "fp32_share", "occupancy")
SPENT = ("dram_bytes", "energy")
COLUMNS = (*IDENTITY, *MEASURED, *_SPREADS, *DERIVED, *_CODE, *SPENT, *_COUNTED)
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

    return pandas.DataFrame(
        {
            column: pandas.Series([row[column] for row in rows], dtype=float if column in _NUMBERS else object)
            for column in COLUMNS
        }
    )


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
        **{name: number(case.code.get(name)) for name in _CODE},
        "dram_bytes": dram_bytes(case),
        "energy": _energy(case),
        **{name: value(case, name) for name in _COUNTED},
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
    bound, least = bottleneck.binding(case, limits) or (None, None)
    return {
        "bandwidth": bandwidth,
        "bandwidth_share": _over(bandwidth, limits.ceilings.get("bandwidth")),
        "flop_rate": flop_rate,
        "flop_share": _over(flop_rate, bottleneck.peak_of(case, limits)),
        "intensity": bottleneck.intensity(case.flops, case.bytes),
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


# Conditions of a run: the state of the device over all of it, from the evidence of its measurements.

# What the host spends is read in the window of the cold times: it counts once.
_SAME_WINDOW = "launch_time"
_WATTS = ("power", "power_average")


@dataclass(frozen=True)
class Conditions:
    """Readings of `windows` windows: (lowest, median of medians, highest) by quantity.

    `reasons` is in how many windows each reason held the clock down; `cost` the sampler's largest share of a core in
    one process, None where it was not counted.
    """

    windows: int
    readings: int
    spans: Mapping[str, Span]
    reasons: Mapping[str, int]
    neighbours: tuple[str, ...]
    cost: float | None


def conditions(record: RunRecord) -> Conditions | None:
    """Return the conditions of a record; None where nothing watched its device."""
    measurements = [one for case in record.cases for one in case.measurements if one.metric != _SAME_WINDOW]
    seen = [evidence for one in measurements for evidence in one.evidence]
    if not seen:
        return None
    reasons = Counter(word for evidence in seen for word in evidence.reasons)
    costs: list[float] = [one["cpu_share"] for one in record.monitor if one.get("cpu_share") is not None]
    return Conditions(
        windows=len(seen),
        readings=sum(evidence.readings for evidence in seen),
        spans=_spans(seen),
        reasons=dict(reasons.most_common()),
        neighbours=tuple(dict.fromkeys(name for evidence in seen for name in evidence.neighbours)),
        cost=max(costs, default=None),
    )


def noted(record: RunRecord) -> dict[str, int]:
    """Return the notes of measurements, with how many have each."""
    return Counter(note for case in record.cases for one in case.measurements for note in one.notes)


def _spans(seen: list[Evidence]) -> dict[str, Span]:
    names = dict.fromkeys(name for evidence in seen for name in evidence.spans)
    found = {name: [evidence.spans[name] for evidence in seen if name in evidence.spans] for name in names}
    return {
        name: (
            min(low for low, _, _ in spans),
            median(middle for _, middle, _ in spans),
            max(high for *_, high in spans),
        )
        for name, spans in found.items()
    }


def words(found: Conditions) -> Iterator[tuple[str, str]]:
    """Yield the conditions as pairs of words, for people."""
    for name, title in (("sm_clock", "SM clock"), ("memory_clock", "memory clock")):
        if name in found.spans:
            yield title, _span(found.spans[name], lambda value: rate_text(value, "Hz"))
    power = next((found.spans[name] for name in _WATTS if name in found.spans), None)
    if power:
        yield "power", _span(power, lambda value: f"{value:.0f} W")
    if "temperature" in found.spans:
        yield "temperature", _span(found.spans["temperature"], lambda value: f"{value:.0f} C")
    held = [f"{word} in {count} of {count_text(found.windows, 'window')}" for word, count in found.reasons.items()]
    yield "clock held down", ", ".join(held) or "never"
    yield "neighbours", ", ".join(found.neighbours) or "none seen"
    yield "readings", f"{found.readings} in {count_text(found.windows, 'window')}"
    if found.cost is not None:
        yield "sampler", f"{share_text(found.cost)} of a core at most"


def _span(span: Span, text: Callable[[float], str]) -> str:
    low, middle, high = (text(value) for value in span)
    return middle if low == high else f"{middle} ({low} to {high})"


# A part of a record: some of its cases, with the kernels that measure the machine.


def with_cases(record: RunRecord, names: Sequence[str]) -> RunRecord:
    """Return the record with the cases that the names choose; all of them without names.

    A name is a kernel, `kernel:variant`, or a case in full. Kernels that measure the machine stay, since their ceilings
    are part of every other result. The times of the run's stages are left out. A UsageError for a name that no case
    has.
    """
    if not names:
        return record
    for name in names:
        if not any(name in _names(case) for case in record.cases):
            raise unknown("kernel or case", name, {name for case in record.cases for name in _names(case)})
    chosen = [case for case in record.cases if case.ceiling or set(names) & set(_names(case))]
    return replace(record, cases=tuple(chosen), spent={})


def _names(case: CaseResult) -> tuple[str, str, str]:
    kernel = case.name.partition("[")[0]
    return case.name, kernel, kernel.partition(":")[0]


# Where the time of a run went, by phase: from the seconds that its record keeps.

_COMPILATION, _VERIFICATION, _PREPARATION, KERNELS, CPU, _WAITING = (
    "compilation ahead", "verification", "preparation", "kernels", "cpu", "starts and waiting",
)  # fmt: skip
_PHASES = {
    "preparing": _PREPARATION, "verifying": _VERIFICATION, "kernel": KERNELS, "energy": "energy", "cpu": CPU,
    "peers importing": "imports of libraries", "peers forms": "forms of peers", "peers state": "state of libraries",
}  # fmt: skip
_STAGES = {"compiling": _COMPILATION, "untimed": _VERIFICATION}
_PEER = "peer:"


def time_spent(record: RunRecord) -> dict[str, float]:
    """Return the seconds of each phase, the longest first; nothing for a record that keeps none.

    Together they are the run's duration, of a merged record that of all parts. Verification side by side counts by the
    wall clock. `starts and waiting` is what no case accounts for: starts of processes, messages, saving.
    """
    if not record.spent:
        return {}
    found: dict[str, float] = {}
    for stage, name in _STAGES.items():
        found[name] = found.get(name, 0.0) + record.spent.get(stage, 0.0)
    for case in record.cases:
        for phase, seconds in case.spent.items():
            if phase != "untimed":  # these run side by side; their stage has the wall time
                name = _PHASES.get(phase) or _of_peer(case, phase)
                found[name] = found.get(name, 0.0) + seconds
    whole = sum(float(part.get("duration") or 0.0) for part in record.parts) or record.duration
    found[_WAITING] = max(0.0, whole - sum(found.values()))
    return dict(sorted(((name, seconds) for name, seconds in found.items() if seconds), key=lambda one: -one[1]))


def window_seconds(record: RunRecord) -> tuple[float, float]:
    """Return the seconds of the run within measurement windows, of kernels and of peers; the rest is around them."""
    kernels = peers = 0.0
    for case in record.cases:
        for one in case.measurements:
            if one.metric != "launch_time":  # it comes with the cold time, in the same window
                seconds = sum(seen.seconds for seen in one.evidence)
                kernels, peers = (kernels, peers + seconds) if one.subject != "kernel" else (kernels + seconds, peers)
    return kernels, peers


def _of_peer(case: CaseResult, phase: str) -> str:
    """Return the phase of a peer by its form; a record without the peer's facts gives it by the name alone."""
    name = phase.removeprefix(_PEER)
    ending = name.rpartition("_")[2]
    form = case.peers[name].get("form") if name in case.peers else None
    return f"peers {form or (ending if ending in ('compiled', 'autotuned') else 'eager')}"

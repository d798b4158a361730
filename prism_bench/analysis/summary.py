"""Summary of a run record, one row per case: medians, rates, shares and evidence, and the conditions of the run."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, SupportsFloat, cast

from prism_bench.analysis.bounds import bottleneck
from prism_bench.analysis.bounds.bottleneck import dram_bytes, value
from prism_bench.analysis.peers import clock_of, cpu_seconds, peers
from prism_bench.errors import unknown
from prism_bench.measure.plausibility import Limits, measured_limits, peaks_of, valid, valid_median
from prism_bench.record.measurement import Evidence, Span
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.metric import MEASURED
from prism_bench.units import count_text, rate_text, share_text

if TYPE_CHECKING:
    import pandas


# Summary of a run record, one tidy row per case: medians, rates, shares of the measured limits, ratios to rivals.

SummaryRow = dict[str, Any]  # by column of COLUMNS: text or None, or a number, NaN if unknown

_FACTS = ("kernel", "variant", "family", "label", "bytes", "flops", "ceiling", "before", "status", "reason")
IDENTITY = ("case", "implementation", "workload", *_FACTS)
_CODE = ("registers", "spill_bytes", "shared_bytes", "code_bytes", "compile_seconds", "launches")
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
    """Return launch overheads and ceilings that the record's `machine/` kernels measured."""
    return measured_limits(record.cases, cache_bytes(record.machine), peaks_of(record.machine))


def cache_bytes(machine: Mapping[str, Any]) -> int:
    """Return the size of the last cache before memory, in bytes, from the machine's facts; 0 if unknown."""
    nested = [cast("dict[str, Any]", value) for value in machine.values() if isinstance(value, dict)]
    sizes: list[int] = [facts["l2_bytes"] for facts in (machine, *nested) if isinstance(facts.get("l2_bytes"), int)]
    return sizes[0] if sizes else 0


def summary_rows(record: RunRecord) -> list[SummaryRow]:
    """Return one row per case in the record's order, with the columns of `COLUMNS`.

    Times are medians in seconds over the processes' medians, spreads relative. Missing and invalid values are NaN (None
    in a column of text). Ratios are above 1 if the kernel is faster than its rival.
    """
    limits = limits_of(record)
    rows = [row(case, limits) for case in record.cases]
    for known in rows:
        known.update({column: math.nan if known.get(column) is None else float(known[column]) for column in _NUMBERS})
    return [{column: known.get(column) for column in COLUMNS} for known in rows]


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
    """Return the known columns of one case; unknown values are None or missing."""
    times = {metric: valid_median(case, metric) for metric in MEASURED}
    timed = {metric: measured for metric in MEASURED if times[metric] and (measured := valid(case, metric))}
    energies = [measured.launch_energy for measured in case.measurements if measured.subject == "kernel"]
    joules = [energy.joules for energy in energies if energy and energy.joules is not None]  # of one launch
    return {
        "case": case.name,
        "implementation": implementation(case),
        "workload": ", ".join(f"{axis}={value}" for axis, value in case.workload.items()),
        **{name: getattr(case, name) for name in _FACTS},
        **times,
        **{f"{metric}_spread": measured.spread for metric, measured in timed.items()},
        **_rates(case, limits),
        **_comparisons(case),
        **_trust(case),
        **{name: number(case.code.get(name)) for name in _CODE},
        "dram_bytes": dram_bytes(case),
        "energy": next(iter(joules), None),
        **{name: value(case, name) for name in _COUNTED},
    }


def implementation(case: CaseResult) -> str:
    """Return the kernel's name with its variant, such as `pixel_entropy:naive`."""
    return f"{case.kernel}:{case.variant}" if case.variant else case.kernel


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
    kernel, cpu = valid_median(case, clock_of(case)), cpu_seconds(case)
    best = next(iter(peers(case)), None)
    return {
        "best_peer": best.name if best else None,
        "best_peer_time": best.seconds if best else None,
        "peer_ratio": _over(best.seconds, kernel) if best else None,
        "cpu_time": cpu,
        "cpu_ratio": _over(cpu, valid_median(case, "cold_time")),
        "cpu_ratio_end_to_end": _over(cpu, valid_median(case, "end_to_end_time")),
    }


def _trust(case: CaseResult) -> SummaryRow:
    distrusted = [measured for measured in case.measurements if measured.distrusted]
    invalid = [f"{measured.subject} {measured.metric}: {measured.reason}" for measured in distrusted]
    errors = [number(check.get("norm_error")) for check in case.verification]
    return {
        "error": max((error for error in errors if error is not None), default=None),
        "invalid": "; ".join(invalid) or None,
        "throttled": sum(measured.throttled for measured in case.measurements),
    }


def number(value: object) -> float | None:
    """Return the value as a float; None if it is missing, not a number, or NaN."""
    try:
        plain = float(cast("SupportsFloat", value))
    except (TypeError, ValueError):
        return None
    return None if math.isnan(plain) else plain


def _over(value: float | None, by: float | None) -> float | None:
    return value / by if value and by else None


# Conditions of a run: the state of the device during the run, from the evidence of its measurements.

_SAME_WINDOW = "launch_time"  # it is measured in the window of the cold times, which counts once
_WATTS = ("power", "power_average")


@dataclass(frozen=True)
class Conditions:
    """Readings of `windows` windows: (lowest, median of medians, highest) by quantity.

    `reasons` counts the windows in which each reason held the clock down; `cost` is the sampler's largest share of a
    core in one process, None if it was not counted.
    """

    windows: int
    readings: int
    spans: Mapping[str, Span]
    reasons: Mapping[str, int]
    neighbours: tuple[str, ...]
    cost: float | None


def conditions(record: RunRecord) -> Conditions | None:
    """Return the conditions of a record, or None if its device was not watched."""
    measurements = [measured for case in record.cases for measured in case.measurements]
    seen = [window for measured in measurements if measured.metric != _SAME_WINDOW for window in measured.evidence]
    if not seen:
        return None
    reasons = Counter(reason for window in seen for reason in window.reasons)
    costs: list[float] = [facts["cpu_share"] for facts in record.monitor if facts.get("cpu_share") is not None]
    return Conditions(
        windows=len(seen),
        readings=sum(evidence.readings for evidence in seen),
        spans=_spans(seen),
        reasons=dict(reasons.most_common()),
        neighbours=tuple(dict.fromkeys(name for evidence in seen for name in evidence.neighbours)),
        cost=max(costs, default=None),
    )


def noted(record: RunRecord) -> dict[str, int]:
    """Return the number of measurements with each note."""
    return Counter(note for case in record.cases for measured in case.measurements for note in measured.notes)


def _spans(seen: list[Evidence]) -> dict[str, Span]:
    names = dict.fromkeys(name for window in seen for name in window.spans)
    by_name = {name: [window.spans[name] for window in seen if name in window.spans] for name in names}
    return {
        name: (
            min(low for low, _, _ in spans),
            median(middle for _, middle, _ in spans),
            max(high for *_, high in spans),
        )
        for name, spans in by_name.items()
    }


def condition_texts(state: Conditions) -> Iterator[tuple[str, str]]:
    """Yield title and text of each condition."""
    for name, title in (("sm_clock", "SM clock"), ("memory_clock", "memory clock")):
        if name in state.spans:
            yield title, _span(state.spans[name], lambda value: rate_text(value, "Hz"))
    power = next((state.spans[name] for name in _WATTS if name in state.spans), None)
    if power:
        yield "power", _span(power, lambda value: f"{value:.0f} W")
    if "temperature" in state.spans:
        yield "temperature", _span(state.spans["temperature"], lambda value: f"{value:.0f} C")
    held = [f"{reason} in {count} of {count_text(state.windows, 'window')}" for reason, count in state.reasons.items()]
    yield "clock held down", ", ".join(held) or "never"
    yield "neighbours", ", ".join(state.neighbours) or "none seen"
    yield "readings", f"{state.readings} in {count_text(state.windows, 'window')}"
    if state.cost is not None:
        yield "sampler", f"{share_text(state.cost)} of a core at most"


def _span(span: Span, text: Callable[[float], str]) -> str:
    low, middle, high = (text(value) for value in span)
    return middle if low == high else f"{middle} ({low} to {high})"


def with_cases(record: RunRecord, names: Sequence[str]) -> RunRecord:
    """Return the record with the cases that the names choose; without names, with all cases.

    A name is a kernel, `kernel:variant`, or a case in full. The times of the run's stages are left out. Raise a
    UsageError for a name without a case.
    """
    if not names:
        return record
    for name in names:
        if not any(name in _names(case) for case in record.cases):
            raise unknown("kernel or case", name, {name for case in record.cases for name in _names(case)})
    chosen = [case for case in record.cases if set(names) & set(_names(case))]
    return replace(record, cases=tuple(chosen), spent={})


def _names(case: CaseResult) -> tuple[str, str, str]:
    kernel = case.name.partition("[")[0]
    return case.name, kernel, kernel.partition(":")[0]


# Time of a run by phase, from the seconds in its record.

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
    """Return the seconds of each phase, the longest first; empty if the record has none.

    Their sum is the run's duration, of a merged record that of all parts. Parallel verification counts by the wall
    clock. `starts and waiting` is time outside of cases: starts of processes, messages, saving.
    """
    if not record.spent:
        return {}
    spent: dict[str, float] = {}
    for stage, name in _STAGES.items():
        spent[name] = spent.get(name, 0.0) + record.spent.get(stage, 0.0)
    for case in record.cases:
        for phase, seconds in case.spent.items():
            if phase != "untimed":  # these run in parallel; their stage has the wall time
                name = _PHASES.get(phase) or _of_peer(case, phase)
                spent[name] = spent.get(name, 0.0) + seconds
    whole = sum(float(part.get("duration") or 0.0) for part in record.parts) or record.duration
    spent[_WAITING] = max(0.0, whole - sum(spent.values()))
    return {name: spent[name] for name in sorted(spent, key=lambda name: -spent[name]) if spent[name]}


def window_seconds(record: RunRecord) -> tuple[float, float]:
    """Return the seconds of the run within measurement windows, of kernels and of peers."""
    kernels = others = 0.0
    for case in record.cases:
        for measured in case.measurements:
            if measured.metric != _SAME_WINDOW:
                seconds = sum(window.seconds for window in measured.evidence)
                if measured.subject == "kernel":
                    kernels += seconds
                else:
                    others += seconds
    return kernels, others


def _of_peer(case: CaseResult, phase: str) -> str:
    """Return the phase of a peer by its form, or by its name if the record lacks the peer's facts."""
    name = phase.removeprefix(_PEER)
    ending = name.rpartition("_")[2]
    form = case.peers[name].get("form") if name in case.peers else None
    return f"peers {form or (ending if ending in ('compiled', 'autotuned') else 'eager')}"

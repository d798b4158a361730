"""The table of cases as every report shows it: one column per question, one cell per case, reasons for the gaps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prism_bench.analysis import rivals
from prism_bench.analysis.rivals import UNSTABLE_MARK
from prism_bench.analysis.summary import number
from prism_bench.record.run_record import CaseResult
from prism_bench.units import energy_text, rate_text, ratio_text, share_text, time_text

GAP = "-"
BEFORE = "a form of before, kept to compare with the one that replaces it: no mean and no count has it"


@dataclass(frozen=True)
class Cell:
    """One cell: its `text`, a `small` addition, a `share` to draw, a `tone`, and why it is empty (`reason`).

    `mark` is a sign after the text that a legend explains.
    """

    text: str = GAP
    sort: float | str | None = None
    small: str = ""
    share: float | None = None
    tone: str = ""
    reason: str | None = None
    mark: str = ""


@dataclass(frozen=True)
class Column:
    """A question to every case: `make` answers from a row of the summary and the case's result."""

    key: str
    title: str
    meaning: str
    make: Callable[[Mapping[str, Any], CaseResult], Cell]


def times_text(ratio: float) -> str:
    """Return a ratio as text: `0.90x`, `31.8x`, `2,519x`; two decimals below ten, so that ratios near one line up."""
    if ratio >= 999.5:
        return f"{ratio:,.0f}x"
    return f"{ratio:.2f}x" if ratio < 9.995 else ratio_text(ratio)


def against_text(ratio: float) -> str:
    """Return a new value over the old one, or over what was promised, as text: nearly 1 with a third decimal."""
    return f"{ratio:.3f}x" if 0.995 <= ratio < 1.005 else times_text(ratio)


def _time(metric: str) -> Callable[[Mapping[str, Any], CaseResult], Cell]:
    def make(row: Mapping[str, Any], case: CaseResult) -> Cell:
        seconds = number(row[metric])
        if seconds is None:
            return _gap(case, metric)
        spread = number(row[f"{metric}_spread"])
        return Cell(time_text(seconds), seconds, f"±{share_text(spread)}" if spread is not None else "")

    return make


def _gap(case: CaseResult, metric: str) -> Cell:
    """Return an empty cell with the record's reason why nothing was measured, or why it cannot be trusted."""
    found = case.measurement(metric)
    if found is None:
        return Cell()
    if not found.valid:
        return Cell("invalid", tone="bad", reason=found.reason)
    return Cell(reason=found.reason)


def _rate(column: str, share: str, unit: str) -> Callable[[Mapping[str, Any], CaseResult], Cell]:
    def make(row: Mapping[str, Any], case: CaseResult) -> Cell:
        rate = number(row[column])
        part = number(row[share])
        return Cell(rate_text(rate, unit), rate, _small_share(part), part)

    return make


def _small_share(share: float | None) -> str:
    if share is None:
        return ""
    return share_text(share) if share >= 0.0005 else "<0.1 %"


def _limit(row: Mapping[str, Any], case: CaseResult) -> Cell:
    share = number(row["bound_share"])
    if row["bound"] is None or share is None:
        return Cell()
    return Cell(share_text(share), share, row["bound"])


def _peer(row: Mapping[str, Any], case: CaseResult) -> Cell:
    ratio = number(row["peer_ratio"])
    if ratio is None:
        return Cell("before", reason=BEFORE) if case.before else Cell(reason=_peer_reason(case))
    best = rivals.peers(case)[0]
    tone = "" if case.before else "good" if ratio >= 1 else "warn" if ratio < 0.8 else ""
    small = ", ".join(filter(None, [best.name, best.unstable_text, "poor way" if best.poor else None]))
    mark, reason = UNSTABLE_MARK if best.unstable else "", BEFORE if case.before else None
    return Cell(times_text(ratio), ratio, small, tone=tone, mark=mark, reason=reason)


def _peer_reason(case: CaseResult) -> str | None:
    reasons = [one.reason for one in case.measurements if one.subject.startswith("peer:") and one.reason]
    return reasons[0] if reasons else None


def _cpu(row: Mapping[str, Any], case: CaseResult) -> Cell:
    ratio, whole = number(row["cpu_ratio"]), number(row["cpu_ratio_end_to_end"])
    return Cell(times_text(ratio), ratio, f"{times_text(whole)} e2e" if whole else "") if ratio else Cell()


def _energy(row: Mapping[str, Any], case: CaseResult) -> Cell:
    """Return the energy of a launch in the hot replay, with the uncertainty of counting, or why it is missing."""
    hot = case.measurement("hot_time")
    energy = hot.energy if hot else None
    if energy is None or energy.joules is None:
        return Cell(reason=energy.reason if energy else None)
    share = energy.uncertainty / energy.joules if energy.joules and energy.uncertainty is not None else None
    return Cell(energy_text(energy.joules), energy.joules, "" if share is None else f"±{share_text(share)}")


def _error(row: Mapping[str, Any], case: CaseResult) -> Cell:
    error = number(row["error"])
    return Cell() if error is None else Cell("exact" if error == 0 else f"{error:.1e}", error)


COLUMNS = (
    Column("cold_time", "Cold", "one launch, caches cleared before it", _time("cold_time")),
    Column("hot_time", "Hot", "replay of a CUDA graph, caches warm", _time("hot_time")),
    Column("launch_time", "Launch", "what the host spends to enqueue it", _time("launch_time")),
    Column("end_to_end_time", "End to end", "with copies from and to the host", _time("end_to_end_time")),
    Column("wall_time", "Wall", "one call on the CPU", _time("wall_time")),
    Column("bandwidth", "Bandwidth", "compulsory bytes over cold time; share of the copy ceiling",
           _rate("bandwidth", "bandwidth_share", "B/s")),
    Column("flop_rate", "Arithmetic", "operations over cold time; share of the measured peak",
           _rate("flop_rate", "flop_share", "FLOP/s")),
    Column("limit", "Of its limit", "share of what memory, arithmetic or the launch allows", _limit),
    Column("peer_ratio", "Peer", "best peer's time over the kernel's: above 1 the kernel is faster", _peer),
    Column("cpu_ratio", "CPU", "wall time of the CPU over the cold time, and over the end-to-end time (e2e)", _cpu),
    Column("energy", "Energy", "of one launch, idle power included, by the board's counter; ± of counting", _energy),
    Column("error", "Error", "worst error against the float64 reference, normwise", _error),
)  # fmt: skip

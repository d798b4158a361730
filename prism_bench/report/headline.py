"""Headline and table of a run: its sentence, the counts behind it, cells of cases, and peers."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism_bench.analysis import peers
from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.analysis.peers import (
    BEST,
    LARGE,
    NOT_RECORDED,
    UNSTABLE,
    UNSTABLE_MARK,
    HeadlineRow,
    PeerRow,
    RacedCase,
)
from prism_bench.analysis.run_analysis import Reading, middle
from prism_bench.analysis.summary import number
from prism_bench.record.run_record import CaseResult
from prism_bench.report.gate import counted_text
from prism_bench.units import count_text, energy_text, rate_text, ratio_text, share_text, time_text

# The table of cases as every report shows it: one column per question, one cell per case, reasons for the gaps.

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
    best = peers.peers(case)[0]
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


# Words for peers and for the headline by class, shared by the terminal, the site and the README.

_MEANING = (
    "Time of the best peer of each class over the kernel's, cold: above 1.00 the kernel is faster. Means are geometric."
)
LAUNCHES = "At S0 launch overhead is compared."
_UNKNOWN = f"Class {NOT_RECORDED}: the record does not name the class of these peers, so they have no mean."
UNSTABLE_MEANING = (
    f"{UNSTABLE_MARK} marks an unstable peer: the medians of its processes differ by more than {UNSTABLE * 100:.0f} %, "
    "and its fastest process counts"
)
UNSTABLE_TIME = (
    f"{UNSTABLE_MARK} marks an unstable time: the medians of its processes differ by more than {UNSTABLE * 100:.0f} %"
)


def labels_text(row: HeadlineRow) -> str:
    """Return `S1 and S2`."""
    return " and ".join(row["labels"])


def mean_text(row: HeadlineRow) -> str:
    """Return the mean as `1.04x`; a dash where there is none."""
    return "-" if row["mean"] is None else times_text(row["mean"])


def case_text(raced: RacedCase) -> str:
    """Return `matmul S1, torch_compiled~`."""
    return f"{raced['implementation']} {raced['label']}, {peer_text(raced)}"


def peer_text(raced: RacedCase) -> str:
    """Return the peer's name, with the mark of an unstable one and whether it is a poor way."""
    return f"{raced['peer']}{UNSTABLE_MARK if raced['unstable'] else ''}{' (poor way)' if raced['poor'] else ''}"


def _has_unstable(rows: Sequence[HeadlineRow]) -> bool:
    """Return whether a text about these rows has the mark of an unstable peer."""
    return any(one["unstable"] for row in rows for one in (row["worst"], *row["large"]))


def shown_rows(rows: Sequence[HeadlineRow]) -> list[HeadlineRow]:
    """Return the rows without a group of two labels where only one of them was measured."""
    single = {row["labels"][0] for row in rows if len(row["labels"]) == 1}
    return [row for row in rows if len(row["labels"]) == 1 or set(row["labels"]) <= single]


@dataclass(frozen=True)
class HeadlineText:
    """The headline in words: the `rows` to show, `notes` on what they mean, the `large` ratios with their title."""

    rows: tuple[HeadlineRow, ...]
    notes: tuple[str, ...]
    large: tuple[str, ...]
    large_title: str = f"Above {LARGE:.0f}x, by name and counted in the table"


def headline_text(rows: Sequence[HeadlineRow], *, brief: bool = False) -> HeadlineText:
    """Return the headline in words, without rows where no peer was timed; a `brief` one has S1 and S2 together only."""
    shown = shown_rows(rows)
    if brief:
        together = {label for row in shown if len(row["labels"]) > 1 for label in row["labels"]}
        shown = [row for row in shown if len(row["labels"]) > 1 or not together.intersection(row["labels"])]
    notes = {
        _MEANING: True,
        LAUNCHES: any(row["labels"] == ["S0"] for row in shown),
        _UNKNOWN: any(row["peers"] == NOT_RECORDED for row in shown),
        f"{UNSTABLE_MEANING}.": _has_unstable(shown),
    }
    return HeadlineText(tuple(shown), tuple(note for note, needed in notes.items() if needed), _large(shown))


def _large(rows: Sequence[HeadlineRow]) -> tuple[str, ...]:
    """Return the ratios above `LARGE`, as `image_segmentation, torch: S2 77.5x, S1 77.0x`, the largest first."""
    found = {(one["case"], one["peer"]): one for row in rows if row["peers"] != BEST for one in row["large"]}
    ratios: dict[str, list[str]] = defaultdict(list)
    for one in sorted(found.values(), key=lambda one: -one["ratio"]):
        ratios[f"{one['implementation']}, {peer_text(one)}"].append(f"{one['label']} {times_text(one['ratio'])}")
    return tuple(f"{name}: {', '.join(each)}" for name, each in ratios.items())


def how_text(row: PeerRow) -> str:
    """Return how the peer was called, and everything that a reader has to know about its time or its absence."""
    return "; ".join(filter(None, [_called(row), *_limits(row), *row["notes"]]))


def _called(row: PeerRow) -> str:
    library = " ".join(str(one) for one in (row["library"], row["version"]) if one)
    counts = [_count(row["calls"], "call"), _count(row["launches"], "launch", "launches")]
    counts += [_count(row["breaks"], "graph break")] if row["breaks"] else []
    return ", ".join(filter(None, [library, row["form"], *counts]))


def _count(count: int | None, one: str, several: str | None = None) -> str | None:
    if count is None:
        return None
    return f"{count} {one if count == 1 else several or one + 's'}"


def _limits(row: PeerRow) -> Iterator[str | None]:
    """Yield why the time is missing, or what a reader has to know about it."""
    yield f"not timed: {row['reason']}" if row["seconds"] is None else _unstable_text(row)
    left_out = row["seconds"] is not None and not row["counts"]
    yield f"poor way: {row['poor']}" + (" (not counted)" if left_out else "") if row["poor"] else None
    yield f"enqueued as a {row['enqueued']}" if row["enqueued"] else None
    yield f"work: {row['work']}" if row["work"] else None
    yield f"precision: {row['precision']}" if row["precision"] else None


def _unstable_text(row: PeerRow) -> str | None:
    """Return `unstable: 9.90 us to 93.2 us`; None where the peer is stable."""
    return "unstable: {} to {}".format(*map(time_text, row["unstable"])) if row["unstable"] else None


# The verdict of a run at a glance: one sentence, the counts behind it, and three numbers.

_TONES = {"bad": "bad", "untrusted": "bad", "note": "muted"}


@dataclass(frozen=True)
class Tile:
    """One number of the run with the words around it."""

    title: str
    value: str
    words: str


def headline(reading: Reading) -> str:
    """Return the run's verdict as one sentence."""
    total, trusted = len(reading.cases), reading.trusted
    if reading.record.imported:  # a case that its tool verified and did not time is ok
        trusted = min(trusted, sum(bool(case.measurements) for case in reading.cases))
    if not total:
        return "Nothing was measured."
    cases = "case" if total == 1 else "cases"
    verbs = _verbs(reading)
    if trusted == total:
        return f"The one case {verbs}." if total == 1 else f"All {total} {cases} {verbs}."
    return f"{trusted} of {total} {cases} {verbs}."


def _verbs(reading: Reading) -> str:
    if reading.record.imported:
        return f"timed by {reading.record.backend}, and not verified here"
    timed = any(number(row[metric]) is not None for row in reading.rows for metric in ("cold_time", "wall_time"))
    if not timed:
        return "verified"
    stand_in = reading.record.stand_in
    return f"verified and timed on the {stand_in.name}" if stand_in else "verified and timed"


def chips(reading: Reading) -> list[tuple[str, str, str]]:
    """Return words, tone and kind for everything that was found, by kind, gravest first."""
    counts = Counter((finding.kind, finding.gravity) for finding in reading.findings)
    return [(_counted(kind, count), _TONES[gravity], kind) for (kind, gravity), count in counts.items()]


def _counted(kind: str, count: int) -> str:
    if kind == "incomplete":
        return "run cut short"
    if kind == "missed":
        return f"{count_text(count, 'budget')} missed"
    return counted_text(count, kind)


def tiles(reading: Reading, budgets: Sequence[BudgetVerdict] | None = None) -> list[Tile]:
    """Return three numbers: share of the limit, cases slower than a peer, budgets. A dash marks a missing one.

    The `budgets` are those of the selected cases, unless others are given.
    """
    judged = reading.budgets if budgets is None else budgets
    return [_limit_tile(reading), _peer_tile(reading), _budget_tile(judged)]


def _limit_tile(reading: Reading) -> Tile:
    shares = reading.busy_shares
    if not shares:
        return Tile("Of the machine's limit", "–", "no case was timed against a measured ceiling")
    words = f"median of {count_text(len(shares), 'case')} that memory or arithmetic limits"
    return Tile("Of the machine's limit", share_text(middle(shares)), words)


def _peer_tile(reading: Reading) -> Tile:
    """Return how many cases a peer beats, at S1 and S2 where those were measured; ratios are by class, not here."""
    best = next((row for row in shown_rows(reading.against_peers) if row["peers"] == BEST), None)
    if best is None:
        return Tile("Slower than a peer", "–", "no peer was timed in this run")
    words = f"cases at {labels_text(best)}, against the best peer of each"
    return Tile("Slower than a peer", f"{best['below']} of {best['cases']}", words)


def _budget_tile(budgets: Sequence[BudgetVerdict]) -> Tile:
    verdicts = [one.verdict for one in budgets]
    if not verdicts:
        return Tile("Budgets", "–", "none could be judged")
    rest = [f"{verdicts.count(word)} {word}" for word in ("undecided", "unmeasured") if verdicts.count(word)]
    return Tile("Budgets", f"{verdicts.count('met')}/{len(verdicts)}", "; ".join(["met", *(rest or ["0 unmeasured"])]))

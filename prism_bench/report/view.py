"""Cases of a record as every report shows them: one row for each case, its columns, and the table of several."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from prism_bench.analysis import peers
from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.analysis.peers import UNSTABLE_MARK, range_text, unstable_stand_in
from prism_bench.analysis.run_analysis import Reading, metric_words
from prism_bench.analysis.summary import SummaryRow, implementation, number, summary_rows
from prism_bench.record.run_record import CaseResult
from prism_bench.report.headline import times_text
from prism_bench.spec.metric import MEASURED, StandIn, value_text
from prism_bench.units import energy_text, rate_text, share_text, time_text

GAP = "-"
BEFORE = "a form of before, kept to compare with the one that replaces it: no mean and no count has it"
VERDICTS = ("missed", "undecided", "expired", "unmeasured", "met")  # the worst first: it is the case's
_TONES = {"missed": "bad", "undecided": "warn", "expired": "warn", "unmeasured": "muted", "met": "good"}

Origin = Literal["newest", "older", "round", "languages"]


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


@dataclass(frozen=True, eq=False)
class CaseView:
    """One case: its result, its row of the summary, the reading of its record, and the verdicts on its budgets.

    `origin` is `newest` for the newest run, `older` for a run before that left fewer cases out. Where no run has timed
    it, it is `round` for a round of making kernels faster, in one process, or `languages` for a record of languages.
    """

    case: CaseResult
    row: SummaryRow
    reading: Reading
    budgets: tuple[BudgetVerdict, ...] = ()
    origin: Origin = "newest"

    @property
    def implementation(self) -> str:
        """The kernel's name with its variant."""
        return implementation(self.case)

    @property
    def workload(self) -> str:
        """The axes of the workload, such as `m=4, n=8`."""
        return self.row["workload"]

    @property
    def created(self) -> str:
        """When the record of the case was made."""
        return self.reading.record.created

    @property
    def stand_in(self) -> StandIn | None:
        """What the record timed in place of kernels; None for kernels."""
        return self.reading.record.stand_in

    @property
    def elsewhere(self) -> dict[str, str | None] | None:
        """The record of the case as a page's JSON names it; None for the newest run."""
        if self.origin == "newest":
            return None
        return {"origin": self.origin, "created": self.created, "commit": self.reading.record.commit}

    def number(self, column: str) -> float | None:
        """Return a number of the summary; None where it is unknown."""
        return number(self.row[column])

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """The cells by the keys of `COLUMNS`; a time that is no kernel's has a mark where processes differ."""
        cells = {column.key: column.make(self.row, self.case) for column in COLUMNS}
        ends = unstable_stand_in(self.case) if self.stand_in else None
        if ends:
            cells["wall_time"] = replace(cells["wall_time"], small=range_text(*ends), tone="warn", mark=UNSTABLE_MARK)
        return cells

    @cached_property
    def budget(self) -> Cell:
        """The worst verdict on the budgets of the case; an empty cell without budgets."""
        if not self.budgets:
            return Cell()
        verdicts = [budget.verdict for budget in self.budgets]
        worst = next(verdict for verdict in VERDICTS if verdict in verdicts)
        count = f"{verdicts.count(worst)} of {len(verdicts)}" if len(verdicts) > 1 else ""
        sentences = (
            f"{metric_words(judged.budget.metric)} {value_text(judged.budget.metric, judged.value)}: {judged.verdict}"
            for judged in self.budgets
        )
        return Cell(worst, worst, count, tone=_TONES[worst], reason="; ".join(sentences))

    @property
    def state(self) -> str:
        """The status; of a case that is ok `invalid` where a measurement of its kernel cannot be trusted.

        `unstable` where processes differ in a time that is no kernel's.
        """
        if self.case.status != "ok":
            return self.case.status
        if any(measurement.distrusted for measurement in self.case.measurements):
            return "invalid"
        return "unstable" if self.cells["wall_time"].mark else "ok"


def case_views(reading: Reading, origin: Origin = "newest", *, edges: bool = False) -> list[CaseView]:
    """Return the view of each timed case of a record; with `edges`, of its edge and golden cases as well."""
    record = reading.record
    cases, rows = (record.cases, summary_rows(record)) if edges else (reading.cases, reading.rows)
    budgets = defaultdict(list)
    for verdict in reading.budgets:
        budgets[verdict.case].append(verdict)
    return [
        CaseView(case, row, reading, tuple(budgets[case.name]), origin) for case, row in zip(cases, rows, strict=True)
    ]


# The table of several cases.


@dataclass(frozen=True)
class CaseTable:
    """The table: `columns` that hold anything, `rows`, the `notes` that cells point at, `absent` metrics."""

    columns: tuple["Column", ...]
    rows: tuple[CaseView, ...]
    notes: tuple[str, ...]
    absent: tuple[str, ...]

    @property
    def has_budgets(self) -> bool:
        """Whether any case has a budget."""
        return any(row.budgets for row in self.rows)

    def note_number(self, cell: Cell) -> int | None:
        """Return the number of the footnote of a cell; None for a cell without a reason."""
        return self.notes.index(cell.reason) + 1 if cell.reason else None


def table_of(views: Sequence[CaseView]) -> CaseTable:
    """Return the table of these cases, whichever records they are of; footnotes are numbered as they come.

    A column that is empty throughout is left out; `absent` names the metrics that no case has.
    """
    notes = dict.fromkeys(cell.reason for view in views for cell in view.cells.values() if cell.reason)
    stand_in = next((view.stand_in for view in views if view.stand_in), None)
    columns = (
        _stand_in_column(column, stand_in) if column.key == "wall_time" and stand_in else column for column in COLUMNS
    )
    timed = {measurement.metric for view in views for measurement in view.case.measurements if measurement.samples}
    return CaseTable(
        tuple(column for column in columns if any(_is_filled(view.cells[column.key]) for view in views)),
        tuple(views),
        tuple(notes),
        tuple(metric_words(metric) for metric in MEASURED if metric not in timed),
    )


def _stand_in_column(column: "Column", stand_in: StandIn) -> "Column":
    """Return the column of wall times under the name of what was timed."""
    title = stand_in.name[0].upper() + stand_in.name[1:]
    return replace(column, title=title, meaning=f"one call of the {stand_in.name} on the CPU; no kernel was timed")


def _is_filled(cell: Cell) -> bool:
    return cell.sort is not None or bool(cell.reason)


# The columns: one question each, and its answer from a row of the summary and the case's result.

MakeCell = Callable[[SummaryRow, CaseResult], Cell]


@dataclass(frozen=True)
class Column:
    """A question to every case, which `make` answers."""

    key: str
    title: str
    meaning: str
    make: MakeCell


def _time(metric: str) -> MakeCell:
    """Return the maker of cells of a time; an empty cell has the record's reason, or why the time is not trusted."""

    def make(row: SummaryRow, case: CaseResult) -> Cell:
        seconds, spread = number(row[metric]), number(row[f"{metric}_spread"])
        if seconds is not None:
            return Cell(time_text(seconds), seconds, f"±{share_text(spread)}" if spread is not None else "")
        measurement = case.measurement(metric)
        if measurement is None:
            return Cell()
        if not measurement.valid:
            return Cell("invalid", tone="bad", reason=measurement.reason)
        return Cell(reason=measurement.reason)

    return make


def _rate(column: str, unit: str) -> MakeCell:
    def make(row: SummaryRow, case: CaseResult) -> Cell:
        rate, share = number(row[column]), number(row[_SHARES[column]])
        small = "" if share is None else share_text(share) if share >= 0.0005 else "<0.1 %"
        return Cell(rate_text(rate, unit), rate, small, share)

    return make


_SHARES: Mapping[str, str] = {"bandwidth": "bandwidth_share", "flop_rate": "flop_share"}


def _limit(row: SummaryRow, case: CaseResult) -> Cell:
    share = number(row["bound_share"])
    if row["bound"] is None or share is None:
        return Cell()
    return Cell(share_text(share), share, row["bound"])


def _peer(row: SummaryRow, case: CaseResult) -> Cell:
    ratio = number(row["peer_ratio"])
    if ratio is None and case.before:
        return Cell("before", reason=BEFORE)
    if ratio is None:
        untimed = (peer.reason for peer in case.measurements if peer.subject.startswith("peer:") and peer.reason)
        return Cell(reason=next(untimed, None))
    best = peers.peers(case)[0]
    tone = "" if case.before else "good" if ratio >= 1 else "warn" if ratio < 0.8 else ""
    small = ", ".join(filter(None, [best.name, best.unstable_text, "poor way" if best.poor else None]))
    mark, reason = UNSTABLE_MARK if best.unstable else "", BEFORE if case.before else None
    return Cell(times_text(ratio), ratio, small, tone=tone, mark=mark, reason=reason)


def _cpu(row: SummaryRow, case: CaseResult) -> Cell:
    ratio, end_to_end = number(row["cpu_ratio"]), number(row["cpu_ratio_end_to_end"])
    return Cell(times_text(ratio), ratio, f"{times_text(end_to_end)} e2e" if end_to_end else "") if ratio else Cell()


def _energy(row: SummaryRow, case: CaseResult) -> Cell:
    """Return the energy of a launch in the hot replay with its interval, and without idle power, or why it is missing.

    Older records have it in the hot time.
    """
    measured = case.measurement("energy") or case.measurement("hot_time")
    energy = measured.launch_energy if measured else None
    if energy is None or energy.joules is None:
        return Cell(reason=energy.reason if energy else None)
    share = energy.uncertainty / energy.joules if energy.joules and energy.uncertainty is not None else None
    small = [f"±{share_text(share)}"] if share is not None else []
    small += [f"{energy_text(energy.net_joules)} less idle"] if energy.net_joules is not None else []
    small += ["of the module"] if energy.scope == "module" else []
    return Cell(energy_text(energy.joules), energy.joules, ", ".join(small))


def _error(row: SummaryRow, case: CaseResult) -> Cell:
    error = number(row["error"])
    return Cell() if error is None else Cell("exact" if error == 0 else f"{error:.1e}", error)


COLUMNS = (
    Column("cold_time", "Cold", "one launch, caches cleared before it", _time("cold_time")),
    Column("hot_time", "Hot", "replay of a CUDA graph, caches warm", _time("hot_time")),
    Column("launch_time", "Launch", "what the host spends to enqueue it", _time("launch_time")),
    Column("end_to_end_time", "End to end", "with copies from and to the host", _time("end_to_end_time")),
    Column("wall_time", "Wall", "one call on the CPU", _time("wall_time")),
    Column("bandwidth", "Bandwidth", "compulsory bytes over cold time; share of the copy ceiling",
           _rate("bandwidth", "B/s")),
    Column("flop_rate", "Arithmetic", "operations over cold time; share of the measured peak",
           _rate("flop_rate", "FLOP/s")),
    Column("limit", "Of its limit", "share of what memory, arithmetic or the launch allows", _limit),
    Column("peer_ratio", "Peer", "best peer's time over the kernel's: above 1 the kernel is faster", _peer),
    Column("cpu_ratio", "CPU", "wall time of the CPU over the cold time, and over the end-to-end time (e2e)", _cpu),
    Column("energy", "Energy", "of one launch, by the board's counter; ± 95 % interval; also less idle power", _energy),
    Column("error", "Error", "worst error against the float64 reference, normwise", _error),
)  # fmt: skip

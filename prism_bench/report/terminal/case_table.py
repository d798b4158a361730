"""Rows, kept columns and footnotes of the table of cases."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from prism_bench.analysis.findings import metric_words, value_text
from prism_bench.analysis.reading import Reading
from prism_bench.analysis.rivals import UNSTABLE_MARK, range_text, unstable_stand_in
from prism_bench.analysis.summary import SummaryRow
from prism_bench.record.run_record import CaseResult
from prism_bench.report.cells import COLUMNS, Cell, Column
from prism_bench.spec.metric import MEASURED, StandIn

VERDICTS = ("missed", "undecided", "expired", "unmeasured", "met")  # the worst first: it is the case's


@dataclass(frozen=True)
class CaseRow:
    """One case: its cells by column, its verdict on the budgets, and the numbers of its footnotes by column."""

    case: CaseResult
    workload: str
    cells: dict[str, Cell]
    budget: Cell
    notes: dict[str, int]

    @property
    def state(self) -> str:
        """The status; of a case that is ok `invalid` where a measurement of its kernel cannot be trusted.

        `unstable` where processes differ in a time that is no kernel's.
        """
        if self.case.status != "ok":
            return self.case.status
        if any(one.distrusted for one in self.case.measurements):
            return "invalid"
        return "unstable" if self.cells["wall_time"].mark else "ok"


@dataclass(frozen=True)
class CaseTable:
    """The table: `columns` that hold anything, `rows`, the `notes` that cells point at, `absent` metrics."""

    columns: tuple[Column, ...]
    rows: tuple[CaseRow, ...]
    notes: tuple[str, ...]
    absent: tuple[str, ...]

    @property
    def has_budgets(self) -> bool:
        """Whether any case has a budget."""
        return any(row.budget.sort is not None for row in self.rows)


@dataclass(frozen=True)
class Line:
    """A row before its footnotes have their numbers; `stand_in` is what its record timed in place of kernels."""

    case: CaseResult
    workload: str
    cells: dict[str, Cell]
    budget: Cell
    stand_in: StandIn | None = None


def case_table(reading: Reading) -> CaseTable:
    """Return the table of the record's cases; a column that is empty throughout is left out and named in `absent`."""
    return table_of(lines(reading))


def lines(reading: Reading) -> list[Line]:
    """Return one line for each case of the record."""
    budgets = _budget_cells(reading)
    return [
        Line(case, row["workload"], _cells(row, case, reading.record.stand_in),
             budgets.get(case.name, Cell()), reading.record.stand_in)
        for row, case in zip(reading.rows, reading.cases, strict=True)
    ]  # fmt: skip


def _cells(row: SummaryRow, case: CaseResult, stand_in: StandIn | None) -> dict[str, Cell]:
    """Return the cells of a case by column; a time that is no kernel's has a mark where processes differ."""
    cells = {column.key: column.make(row, case) for column in COLUMNS}
    ends = unstable_stand_in(case) if stand_in else None
    if ends:
        cells["wall_time"] = replace(cells["wall_time"], small=range_text(*ends), tone="warn", mark=UNSTABLE_MARK)
    return cells


def table_of(lines: Sequence[Line]) -> CaseTable:
    """Return the table of these lines, whichever records they come from; its footnotes are numbered as they come."""
    notes: dict[str, int] = {}
    rows = []
    for line in lines:
        marks = {key: notes.setdefault(cell.reason, len(notes) + 1) for key, cell in line.cells.items() if cell.reason}
        rows.append(CaseRow(line.case, line.workload, line.cells, line.budget, marks))
    stand_in = next((line.stand_in for line in lines if line.stand_in), None)
    kept = tuple(_named(column, stand_in) for column in COLUMNS if any(_filled(row.cells[column.key]) for row in rows))
    absent = tuple(metric_words(metric) for metric in MEASURED if not _measured(lines, metric))
    return CaseTable(kept, tuple(rows), tuple(notes), absent)


def _named(column: Column, stand_in: StandIn | None) -> Column:
    """Return the column of wall times under the name of what was timed; any other one as it is."""
    if column.key != "wall_time" or stand_in is None:
        return column
    title = stand_in.name[0].upper() + stand_in.name[1:]
    return replace(column, title=title, meaning=f"one call of the {stand_in.name} on the CPU; no kernel was timed")


def _filled(cell: Cell) -> bool:
    return cell.sort is not None or bool(cell.reason)


def _measured(lines: Sequence[Line], metric: str) -> bool:
    return any(one.metric == metric and one.samples for line in lines for one in line.case.measurements)


def _budget_cells(reading: Reading) -> dict[str, Cell]:
    """Return a cell for each case that has budgets."""
    verdicts, words = defaultdict(list), defaultdict(list)
    for one in reading.budgets:
        verdicts[one.case].append(one.verdict)
        words[one.case].append(
            f"{metric_words(one.budget.metric)} {value_text(one.budget.metric, one.value)}: {one.verdict}"
        )
    return {case: _budget_cell(verdicts[case], words[case]) for case in verdicts}


def _budget_cell(verdicts: Sequence[str], words: Sequence[str]) -> Cell:
    worst = next(verdict for verdict in VERDICTS if verdict in verdicts)
    tone = {"missed": "bad", "undecided": "warn", "expired": "warn", "unmeasured": "muted", "met": "good"}[worst]
    count = f"{verdicts.count(worst)} of {len(verdicts)}" if len(verdicts) > 1 else ""
    return Cell(worst, worst, count, tone=tone, reason="; ".join(words))

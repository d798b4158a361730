"""A record in the terminal: the headline, the table of cases with footnotes, and peers."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.peers import UNSTABLE_MARK, HeadlineRow, PeerRow, peer_rows, range_text, unstable_stand_in
from prism_bench.analysis.run_analysis import Finding, Reading, metric_words, read, value_text
from prism_bench.analysis.summary import (
    SummaryRow,
    condition_texts,
    conditions,
    implementation,
    time_spent,
    window_seconds,
)
from prism_bench.catalogue import Catalogue
from prism_bench.measure.plausibility import is_bandwidth
from prism_bench.record.run_record import IMPORTED, CaseResult, RunRecord
from prism_bench.report.headline import (
    COLUMNS,
    UNSTABLE_MEANING,
    UNSTABLE_TIME,
    Cell,
    Column,
    case_text,
    headline,
    headline_text,
    how_text,
    labels_text,
    mean_text,
    tiles,
    times_text,
)
from prism_bench.report.plain import devices_text, machine_name
from prism_bench.report.terminal.tables import Alike, FittedTable, alike, few_lines, middle_cut, names_text
from prism_bench.run.settings import NOT_TIMED
from prism_bench.spec.metric import MEASURED, StandIn
from prism_bench.units import count_text, duration_text, rate_text, time_text

# Rows, kept columns and footnotes of the table of cases.

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
        Line(
            case,
            row["workload"],
            _cells(row, case, reading.record.stand_in),
            budgets.get(case.name, Cell()),
            reading.record.stand_in,
        )
        for row, case in zip(reading.rows, reading.cases, strict=True)
    ]


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


# Peers in the terminal: the headline by class of peer, and every peer of a case.


def _headline_view(rows: Sequence[HeadlineRow], *, whole: bool = True) -> list[RenderableType]:
    """Return the headline: a table by label and class, what its figures mean, and the large ratios by name.

    Without `whole`, the table is that of the first labels alone.
    """
    text = headline_text(rows)
    if not whole and text.rows:
        first = labels_text(text.rows[0])
        return [_table([row for row in text.rows if labels_text(row) == first])]
    if not text.rows:
        return []
    large = [f"{text.large_title}: {'; '.join(text.large)}."] if text.large else []
    return [_table(text.rows), *(Text(words, style="dim") for words in (" ".join(text.notes), *large))]


def _table(rows: Sequence[HeadlineRow]) -> FittedTable:
    """Return the headline's table; in a narrow terminal, names of kernels lose their middle."""
    longest = max(len(row["worst"]["implementation"]) for row in rows)
    return FittedTable(lambda _, names: _peers_grid(rows, names), {}, longest)


def _peers_grid(rows: Sequence[HeadlineRow], names: int) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for title in ("labels", "against peers"):
        grid.add_column(title, no_wrap=True)
    for title in ("cases", "mean", "below 1"):
        grid.add_column(title, justify="right", no_wrap=True)
    grid.add_column("worst", overflow="fold")
    before = None
    for row in rows:
        labels = labels_text(row)
        raced = row["worst"].copy()
        raced["implementation"] = middle_cut(raced["implementation"], names)
        worst = Text.assemble(f"{times_text(raced['ratio'])} ", (case_text(raced), "dim"))
        grid.add_row(
            "" if labels == before else labels,
            row["peers"],
            str(row["cases"]),
            mean_text(row),
            str(row["below"]),
            worst,
        )
        before = labels
    return grid


def _peer_tables(cases: Sequence[CaseResult]) -> list[RenderableType]:
    """Return for each case with peers a table of them: class, time, ratio, how it was called or why it has no time."""
    found = [(case, peer_rows(case)) for case in cases if not case.ceiling]
    return [
        Group(Text(f"\npeers of {implementation(case)} {case.label}"), _peers(rows)) for case, rows in found if rows
    ]


def _peers(rows: Sequence[PeerRow]) -> RenderableType:
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for title in ("peer", "class"):
        grid.add_column(title, no_wrap=True)
    for title in ("time", "ratio"):
        grid.add_column(title, justify="right", no_wrap=True)
    grid.add_column("how", overflow="fold")
    for row in rows:
        ratio = "-" if row["ratio"] is None else times_text(row["ratio"])
        grid.add_row(Text(row["peer"]), row["kind"], time_text(row["seconds"]), ratio, Text(how_text(row), style="dim"))
    return Padding(grid, (0, 0, 0, 2))


# A record in the terminal: the headline, the table of cases with footnotes, the findings.

_STYLES = {"good": "green", "bad": "bold red", "warn": "yellow", "muted": "dim"}
_GRAVITY_STYLES = {"bad": "bold red", "untrusted": "bold red", "note": "yellow"}
# The columns that a narrow terminal does without, the first to go first.
_DISPENSABLE = (
    "energy", "end_to_end_time", "error", "launch_time", "flop_rate", "cpu_ratio", "bandwidth", "hot_time", "limit",
)  # fmt: skip


_WORST = 10  # cases of a summary
_AXES = 40  # characters of the axes of an imported case
_FINDINGS = 3  # of a kind, in a summary that leaves cases out
_ALL = "show --all"  # what prints everything


def summary_view(
    record: RunRecord,
    catalogue: Catalogue | None = None,
    *,
    must_be_held: bool = True,
    every_peer: bool = False,
    everything: bool = False,
) -> RenderableType:
    """Return what `show` prints and `run` ends with, for a Rich console; `must_be_held` as in `read`.

    That is a summary and the worst cases, with alike findings once; with `everything` all cases, conditions and
    findings, each with its whole text. With `every_peer`, a table of the peers of each case follows as well.
    """
    reading = read(record, catalogue, must_be_held=must_be_held)
    found = lines(reading)
    whole = everything or every_peer or len(found) <= _WORST
    table = table_of(found if whole else _worst_first(found)[:_WORST])
    parts: list[RenderableType] = [_title(reading), *_parts(record), _limits(reading)]
    parts += [*_conditions(record), *_time(record)] if whole else []
    parts += [*_tiles(reading), *_headline_view(reading.against_peers, whole=whole)]
    parts += [] if whole else [Text(f"\nThe {_WORST} worst of {count_text(len(found), 'case')}:", style="bold")]
    parts += [_fitted(table)] if table.rows else []
    parts += [Text(f"  [{number}] {reason}", style="dim") for number, reason in enumerate(table.notes, 1)]
    parts += _legend(table)
    parts += _peer_tables(reading.cases) if every_peer else []
    if everything:
        parts += [_finding(one, verbose=True) for one in reading.findings]
    else:
        parts += _brief_findings(reading.findings, _WORST if whole else _FINDINGS, notes=whole)
    parts += [] if whole else [Text(_MORE.format(count=len(found)), style="dim")]
    return Group(*parts)


_MORE = (
    "\nshow --all: all {count} cases and every finding; show --filter NAME: one kernel with its peers; "
    "show --why CASE: why it takes its time"
)


def _worst_first(found: Sequence[Line]) -> list[Line]:
    """Return the cases by how much they need attention.

    Those that are wrong or cannot be trusted come first, then missed budgets, then by the ratio to the best peer; cases
    without a peer follow by their share of the limit.
    """
    return sorted(found, key=_urgency)


def _urgency(line: Line) -> tuple[int, float]:
    case, peer, limit = line.case, line.cells["peer_ratio"].sort, line.cells["limit"].sort
    if case.status not in ("ok", "skipped") or any(one.distrusted for one in case.measurements):
        return 0, 0.0
    if line.budget.text == "missed":
        return 1, peer if isinstance(peer, float) else 1.0
    if isinstance(peer, float) and peer < 1 and not case.before:
        return 2, peer
    if case.status == "skipped":
        return 3, 0.0
    return 4, limit if isinstance(limit, float) else 1.0


def _brief_findings(found: Sequence[Finding], most: int, *, notes: bool) -> Iterator[Text]:
    """Yield at most so many findings of each kind, alike ones once; without `notes` these are only counted."""
    shown = [one for one in found if notes or one.gravity != "note"]
    first = {(one.kind, one.case or "", one.message): one for one in reversed(shown)}
    groups = alike(((one.kind, one.case or "", one.message) for one in shown), NOT_TIMED)
    for kind in dict.fromkeys(one.kind for one in shown):
        same = [group for group in groups if group.kind == kind]
        for group in same[:most]:
            yield _finding(first[kind, group.cases[0], group.text], group)
        if len(same) > most:
            yield Text(f"    and {sum(len(one.cases) for one in same[most:])} more {kind}: {_ALL}", style="dim")
    counts = Counter(one.kind for one in found if one.gravity == "note" and not notes)
    if counts:
        yield Text("notes: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()), style="yellow")


def _title(reading: Reading) -> Text:
    trusted = reading.trusted == len(reading.cases) and reading.record.complete
    return Text.assemble(
        (headline(reading), "bold green" if trusted and reading.cases else "bold yellow"),
        f"  {machine_name(reading.record)}, {reading.record.backend} backend, {reading.record.created}",
    )


def _parts(record: RunRecord) -> list[Text]:
    """Return how many parts, and of which devices, a merged record has."""
    words = ", ".join(filter(None, [f"merged from {count_text(len(record.parts), 'part')}", devices_text(record)]))
    return [Text(words, style="dim")] if record.parts else []


def _limits(reading: Reading) -> Text:
    """Return the launch overhead and the ceilings, that none were measured, or what was timed in place of kernels."""
    stand_in, limits = reading.record.stand_in, reading.limits
    if stand_in:
        return Text(stand_in.sentence, style="yellow")
    least = limits.floors.items()
    words = [f"{name.removesuffix('_time')} launch overhead {time_text(seconds)}" for name, seconds in least]
    for name, rate in limits.ceilings.items():
        words.append(f"{name.replace('_', ' ')} ceiling {rate_text(rate, 'B/s' if is_bandwidth(name) else 'FLOP/s')}")
    return Text(", ".join(words) if words else "no launch overhead and no ceiling measured in this run", style="dim")


def _tiles(reading: Reading) -> list[Text]:
    """Return the run's known numbers with the words around them."""
    known = [tile for tile in tiles(reading) if tile.value != "–"]
    return [Text("; ".join(f"{one.title.lower()} {one.value} ({one.words})" for one in known))] if known else []


def _legend(table: CaseTable) -> list[Text]:
    """Return what the mark of an unstable peer or time means, where a cell has it."""
    marked = {key for row in table.rows for key, cell in row.cells.items() if cell.mark == UNSTABLE_MARK}
    meanings = {"peer_ratio": UNSTABLE_MEANING, "wall_time": UNSTABLE_TIME}
    return [Text(f"  {meaning}", style="dim") for key, meaning in meanings.items() if key in marked]


def _conditions(record: RunRecord) -> list[Text]:
    """Return the state of the device while it was measured; nothing where it was not watched."""
    seen = conditions(record)
    pairs = condition_texts(seen) if seen else ()
    return [Text(", ".join(f"{name} {value}" for name, value in pairs), style="dim")] if seen else []


def _time(record: RunRecord) -> list[Text]:
    """Return where the time of the run went, by phases of 1 % or more, and how much of it is in measurement windows.

    Nothing where the record does not keep it.
    """
    known = time_spent(record)
    least = sum(known.values()) / 100
    spent = ", ".join(f"{phase} {duration_text(seconds)}" for phase, seconds in known.items() if seconds >= least)
    inside = " and ".join(map(duration_text, window_seconds(record)))
    windows = f"; in measurement windows of kernels and of peers: {inside} of {duration_text(sum(known.values()))}"
    return [Text(f"time of the run: {spent}{windows}", style="dim")] if spent else []


def _fitted(table: CaseTable) -> FittedTable:
    """Return the table of cases; the label, the ratio to the best peer and the verdict always stay."""
    titles = {column.key: column.title.lower() for column in table.columns}
    longest = max(len(implementation(row.case)) for row in table.rows)

    def make(dropped: Collection[str], names: int) -> Table:
        return _grid(table, [column for column in table.columns if column.key not in dropped], names)

    return FittedTable(make, {key: titles[key] for key in _DISPENSABLE if key in titles}, longest)


def _grid(table: CaseTable, shown: list[Column], names: int) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    grid.add_column("kernel", no_wrap=True)
    grid.add_column("label", no_wrap=True)
    for column in shown:
        grid.add_column(column.title.lower(), justify="right", no_wrap=True)
    if table.has_budgets:
        grid.add_column("budget", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    for row in table.rows:
        cells = [_text(row.cells[column.key], row.notes.get(column.key)) for column in shown]
        budget = [_text(row.budget, None)] if table.has_budgets else []
        name = Text(middle_cut(implementation(row.case), names))
        label = row.case.workload_text if row.case.label == IMPORTED else ""  # all of another tool's have one label
        grid.add_row(name, Text(middle_cut(label, _AXES) or row.case.label), *cells, *budget, _state(row))
    return grid


def _text(cell: Cell, note: int | None) -> Text:
    text = Text(cell.text + cell.mark, style=_STYLES.get(cell.tone, ""))
    if cell.share is not None or cell.small in ("memory", "compute", "launch"):
        text.append(f" {cell.small}", style="dim")
    if note:
        text.append(f" [{note}]", style="dim")
    return text


def _state(row: CaseRow) -> Text:
    style = {"ok": "green", "skipped": "yellow", "unstable": "yellow"}.get(row.state, "bold red")
    return Text(row.state, style=style)


def _finding(finding: Finding, group: Alike | None = None, *, verbose: bool = False) -> Text:
    """Return a finding with the first few lines of its text, or all; `group` are the others like it."""
    named = finding.case and not finding.message.startswith(finding.case)
    where = f"{finding.case}: " if named else ""
    words = "\n    ".join(few_lines(finding.message, verbose=verbose, option=_ALL))
    text = Text.assemble((f"{finding.kind}: ", _GRAVITY_STYLES[finding.gravity]), f"{where}{words}")
    also = _also(finding, group) if group else ""
    return text.append(f" ({also})", style="dim") if also else text


def _also(finding: Finding, group: Alike) -> str:
    """Return the words for the others like a finding: how many of its kernel, other kernels, and cases not timed."""
    own = _kernel_of(finding.case)
    names = [_kernel_of(case) for case in group.cases[1:]]
    others = list(dict.fromkeys(name for name in names if name != own))
    same = f"{names.count(own)} more of {own}" if names.count(own) else ""
    also = f"also {names_text(others)}" if others else ""
    untimed = f"{names_text(group.untimed)} not timed because of it" if group.untimed else ""
    return "; ".join(filter(None, [also, same, untimed]))


def _kernel_of(case: str | None) -> str:
    """Return the kernel, with its variant, of a case's name."""
    return (case or "").partition("[")[0]

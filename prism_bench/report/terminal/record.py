"""A record in the terminal: the headline, the table of cases with footnotes, the findings."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.conditions import conditions, words
from prism_bench.analysis.findings import Finding
from prism_bench.analysis.reading import Reading, read
from prism_bench.analysis.rivals import UNSTABLE_MARK
from prism_bench.analysis.summary import implementation
from prism_bench.analysis.time_spent import time_spent, window_seconds
from prism_bench.catalogue import Catalogue
from prism_bench.measure.limits import is_bandwidth
from prism_bench.record.run_record import IMPORTED, RunRecord
from prism_bench.report.cells import Cell, Column
from prism_bench.report.headline import headline, tiles
from prism_bench.report.machine import devices_text, machine_name
from prism_bench.report.peers import UNSTABLE_MEANING, UNSTABLE_TIME
from prism_bench.report.terminal.case_table import CaseRow, CaseTable, Line, lines, table_of
from prism_bench.report.terminal.fitted_table import FittedTable
from prism_bench.report.terminal.fitting import Alike, alike, few_lines, middle_cut, names_text
from prism_bench.report.terminal.peers import headline_view, peer_tables
from prism_bench.run.record_builder import NOT_TIMED
from prism_bench.units import count_text, duration_text, rate_text, time_text

_STYLES = {"good": "green", "bad": "bold red", "warn": "yellow", "muted": "dim"}
_GRAVITY_STYLES = {"bad": "bold red", "untrusted": "bold red", "note": "yellow"}
# The columns that a narrow terminal does without, the first to go first.
_DISPENSABLE = (
    "energy", "end_to_end_time", "error", "launch_time", "flop_rate", "cpu_ratio", "bandwidth", "hot_time", "limit",
)  # fmt: skip


WORST = 10  # cases of a summary
_AXES = 40  # characters of the axes of an imported case
_FINDINGS = 3  # of a kind, in a summary that leaves cases out
_ALL = "show --all"  # what prints everything


def summary_view(
    record: RunRecord, catalogue: Catalogue | None = None, *, must_be_held: bool = True, every_peer: bool = False,
    everything: bool = False,
) -> RenderableType:  # fmt: skip
    """Return what `show` prints and `run` ends with, for a Rich console; `must_be_held` as in `read`.

    That is a summary and the worst cases, with alike findings once; with `everything` all cases, conditions and
    findings, each with its whole text. With `every_peer`, a table of the peers of each case follows as well.
    """
    reading = read(record, catalogue, must_be_held=must_be_held)
    found = lines(reading)
    whole = everything or every_peer or len(found) <= WORST
    table = table_of(found if whole else worst_first(found)[:WORST])
    parts: list[RenderableType] = [_title(reading), *_parts(record), _limits(reading)]
    parts += [*_conditions(record), *_time(record)] if whole else []
    parts += [*_tiles(reading), *headline_view(reading.against_peers, whole=whole)]
    parts += [] if whole else [Text(f"\nThe {WORST} worst of {count_text(len(found), 'case')}:", style="bold")]
    parts += [_fitted(table)] if table.rows else []
    parts += [Text(f"  [{number}] {reason}", style="dim") for number, reason in enumerate(table.notes, 1)]
    parts += _legend(table)
    parts += peer_tables(reading.cases) if every_peer else []
    if everything:
        parts += [_finding(one, verbose=True) for one in reading.findings]
    else:
        parts += _brief_findings(reading.findings, WORST if whole else _FINDINGS, notes=whole)
    parts += [] if whole else [Text(_MORE.format(count=len(found)), style="dim")]
    return Group(*parts)


_MORE = (
    "\nshow --all: all {count} cases and every finding; show --filter NAME: one kernel with its peers; "
    "show --why CASE: why it takes its time"
)


def worst_first(found: Sequence[Line]) -> list[Line]:
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
    pairs = words(seen) if seen else ()
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

"""A record in the terminal: the headline, the table of cases with footnotes, findings, and peers."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.peers import UNSTABLE_MARK, HeadlineRow, peer_rows
from prism_bench.analysis.run_analysis import Finding, Reading, read
from prism_bench.analysis.summary import condition_texts, conditions, time_spent, window_seconds
from prism_bench.catalogue import Catalogue
from prism_bench.measure.plausibility import is_bandwidth
from prism_bench.record.run_record import IMPORTED, NOT_TIMED, RunRecord
from prism_bench.report.headline import (
    UNSTABLE_MEANING,
    UNSTABLE_TIME,
    case_text,
    headline,
    headline_text,
    how_text,
    labels_text,
    mean_text,
    tiles,
    times_text,
)
from prism_bench.report.plain import Alike, alike, devices_text, machine_name
from prism_bench.report.terminal.tables import FittedTable, few_lines, middle_cut, names_text
from prism_bench.report.view import CaseTable, CaseView, Cell, Column, case_views, table_of
from prism_bench.units import count_text, duration_text, rate_text, time_text

_STYLES = {"good": "green", "bad": "bold red", "warn": "yellow", "muted": "dim"}
_STATE_STYLES = {"ok": "green", "skipped": "yellow", "unstable": "yellow"}
_GRAVITY_STYLES = {"bad": "bold red", "untrusted": "bold red", "note": "yellow"}
_WORST = 10  # cases of a summary
_AXES = 40  # characters of the axes of an imported case
_FINDINGS = 3  # of a kind, in a summary that leaves cases out
_ALL = "show --all"  # what prints everything
_MORE = (
    "\nshow --all: all {count} cases and every finding; show --filter NAME: one kernel with its peers; "
    "show --why CASE: why it takes its time"
)


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
    views = case_views(reading)
    whole = everything or every_peer or len(views) <= _WORST
    table = table_of(views if whole else sorted(views, key=_urgency)[:_WORST])
    parts: list[RenderableType] = [*_title(reading), _limits(reading)]
    parts += [*_conditions(record), *_time(record)] if whole else []
    if known := [tile for tile in tiles(reading) if tile.value != "–"]:
        parts.append(Text("; ".join(f"{tile.title.lower()} {tile.value} ({tile.words})" for tile in known)))
    parts += _headline_view(reading.against_peers, whole=whole)
    parts += [] if whole else [Text(f"\nThe {_WORST} worst of {count_text(len(views), 'case')}:", style="bold")]
    parts += _cases(table) if table.rows else []
    parts += [part for view in views if every_peer for part in _peers(view)]
    if everything:
        parts += [_finding(finding, verbose=True) for finding in reading.findings]
    else:
        parts += _brief_findings(reading.findings, _WORST if whole else _FINDINGS, notes=whole)
    parts += [] if whole else [Text(_MORE.format(count=len(views)), style="dim")]
    return Group(*parts)


def _urgency(view: CaseView) -> tuple[int, float]:
    """Return how much a case needs attention, the smallest first.

    Cases that are wrong or cannot be trusted come first, then missed budgets, then by the ratio to the best peer; cases
    without a peer follow by their share of the limit.
    """
    case, peer, limit = view.case, view.number("peer_ratio"), view.cells["limit"].sort
    if case.status not in ("ok", "skipped") or any(measurement.distrusted for measurement in case.measurements):
        return 0, 0.0
    if view.budget.text == "missed":
        return 1, 1.0 if peer is None else peer
    if peer is not None and peer < 1 and not case.before:
        return 2, peer
    if case.status == "skipped":
        return 3, 0.0
    return 4, limit if isinstance(limit, float) else 1.0


# Above the tables: what was measured, its limits, the conditions, and where the time went.


def _title(reading: Reading) -> Iterator[Text]:
    """Yield the headline; for a merged record, how many parts it has, and of which devices."""
    record = reading.record
    trusted = reading.trusted == len(reading.cases) and record.complete
    yield Text.assemble(
        (headline(reading), "bold green" if trusted and reading.cases else "bold yellow"),
        f"  {machine_name(record)}, {record.backend} backend, {record.created}",
    )
    if record.parts:
        merged = f"merged from {count_text(len(record.parts), 'part')}"
        yield Text(", ".join(filter(None, [merged, devices_text(record)])), style="dim")


def _limits(reading: Reading) -> Text:
    """Return the launch overhead and the ceilings, that none were measured, or what was timed in place of kernels."""
    stand_in, limits = reading.record.stand_in, reading.limits
    if stand_in:
        return Text(stand_in.sentence, style="yellow")
    texts = [
        f"{name.removesuffix('_time')} launch overhead {time_text(seconds)}" for name, seconds in limits.floors.items()
    ]
    for name, rate in limits.ceilings.items():
        texts.append(f"{name.replace('_', ' ')} ceiling {rate_text(rate, 'B/s' if is_bandwidth(name) else 'FLOP/s')}")
    return Text(", ".join(texts) if texts else "no launch overhead and no ceiling measured in this run", style="dim")


def _conditions(record: RunRecord) -> list[Text]:
    """Return the state of the device while it was measured; nothing where it was not watched."""
    watched = conditions(record)
    return (
        [Text(", ".join(f"{name} {value}" for name, value in condition_texts(watched)), style="dim")] if watched else []
    )


def _time(record: RunRecord) -> list[Text]:
    """Return where the time of the run went, by phases of 1 % or more, and how much of it is in measurement windows.

    Nothing where the record does not keep it.
    """
    phases = time_spent(record)
    total = sum(phases.values())
    spent = ", ".join(f"{phase} {duration_text(time)}" for phase, time in phases.items() if time >= total / 100)
    inside = " and ".join(map(duration_text, window_seconds(record)))
    windows = f"; in measurement windows of kernels and of peers: {inside} of {duration_text(total)}"
    return [Text(f"time of the run: {spent}{windows}", style="dim")] if spent else []


# The headline by class of peer, and every peer of a case.


def _headline_view(rows: Sequence[HeadlineRow], *, whole: bool = True) -> list[RenderableType]:
    """Return the headline: a table by label and class, what its figures mean, and the large ratios by name.

    Without `whole`, the table is that of the first labels only.
    """
    text = headline_text(rows)
    if not text.rows:
        return []
    if not whole:
        first = labels_text(text.rows[0])
        return [_headline_table([row for row in text.rows if labels_text(row) == first])]
    large = [f"{text.large_title}: {'; '.join(text.large)}."] if text.large else []
    return [_headline_table(text.rows), *(Text(note, style="dim") for note in (" ".join(text.notes), *large))]


def _headline_table(rows: Sequence[HeadlineRow]) -> FittedTable:
    """Return the headline's table; in a narrow terminal, names of kernels lose their middle."""

    def make(_: Collection[str], longest: int) -> Table:
        grid = _plain_grid(left=("labels", "against peers"), right=("cases", "mean", "below 1"))
        grid.add_column("worst", overflow="fold")
        before = None
        for row in rows:
            labels = labels_text(row)
            raced = row["worst"].copy()
            raced["implementation"] = middle_cut(raced["implementation"], longest)
            grid.add_row(
                "" if labels == before else labels,
                row["peers"],
                str(row["cases"]),
                mean_text(row),
                str(row["below"]),
                Text.assemble(f"{times_text(raced['ratio'])} ", (case_text(raced), "dim")),
            )
            before = labels
        return grid

    return FittedTable(make, {}, max(len(row["worst"]["implementation"]) for row in rows))


def _peers(view: CaseView) -> Iterator[RenderableType]:
    """Yield a table of the case's peers: class, time, ratio, how each was called or why it has no time."""
    rows = [] if view.case.ceiling else peer_rows(view.case)
    if not rows:
        return
    grid = _plain_grid(left=("peer", "class"), right=("time", "ratio"))
    grid.add_column("how", overflow="fold")
    for row in rows:
        ratio = "-" if row["ratio"] is None else times_text(row["ratio"])
        grid.add_row(Text(row["peer"]), row["kind"], time_text(row["seconds"]), ratio, Text(how_text(row), style="dim"))
    yield Group(Text(f"\npeers of {view.implementation} {view.case.label}"), Padding(grid, (0, 0, 0, 2)))


def _plain_grid(left: Sequence[str], right: Sequence[str]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for title in left:
        grid.add_column(title, no_wrap=True)
    for title in right:
        grid.add_column(title, justify="right", no_wrap=True)
    return grid


# The table of cases, with its footnotes and a legend.

# The columns that a narrow terminal does without, the first to go first; the label, the ratio to the best peer and the
# verdict always stay.
_DISPENSABLE = (
    "energy", "end_to_end_time", "error", "launch_time", "flop_rate", "cpu_ratio", "bandwidth", "hot_time", "limit",
)  # fmt: skip


def _cases(table: CaseTable) -> Iterator[RenderableType]:
    """Yield the table of cases, its footnotes, and what the mark of an unstable peer or time means."""
    titles = {column.key: column.title.lower() for column in table.columns}

    def make(dropped: Collection[str], longest: int) -> Table:
        return _grid(table, [column for column in table.columns if column.key not in dropped], longest)

    dispensable = {key: titles[key] for key in _DISPENSABLE if key in titles}
    yield FittedTable(make, dispensable, max(len(view.implementation) for view in table.rows))
    yield from (Text(f"  [{number}] {reason}", style="dim") for number, reason in enumerate(table.notes, 1))
    marked = {key for view in table.rows for key, cell in view.cells.items() if cell.mark == UNSTABLE_MARK}
    for key, meaning in (("peer_ratio", UNSTABLE_MEANING), ("wall_time", UNSTABLE_TIME)):
        if key in marked:
            yield Text(f"  {meaning}", style="dim")


def _grid(table: CaseTable, columns: Sequence[Column], longest: int) -> Table:
    grid = _plain_grid(left=("kernel", "label"), right=[column.title.lower() for column in columns])
    for title in ("budget", "verdict") if table.has_budgets else ("verdict",):
        grid.add_column(title, no_wrap=True)
    for view in table.rows:
        cells = [_text(view.cells[column.key], table.note_number(view.cells[column.key])) for column in columns]
        budget = [_text(view.budget, None)] if table.has_budgets else []
        name = Text(middle_cut(view.implementation, longest))
        label = view.case.workload_text if view.case.label == IMPORTED else ""  # all of another tool's have one label
        state = Text(view.state, style=_STATE_STYLES.get(view.state, "bold red"))
        grid.add_row(name, Text(middle_cut(label, _AXES) or view.case.label), *cells, *budget, state)
    return grid


def _text(cell: Cell, note: int | None) -> Text:
    text = Text(cell.text + cell.mark, style=_STYLES.get(cell.tone, ""))
    if cell.share is not None or cell.small in ("memory", "compute", "launch"):
        text.append(f" {cell.small}", style="dim")
    if note:
        text.append(f" [{note}]", style="dim")
    return text


# The findings, alike ones once.


def _brief_findings(findings: Sequence[Finding], most: int, *, notes: bool) -> Iterator[Text]:
    """Yield at most `most` findings of each kind, alike ones once; without `notes` these are only counted."""
    shown = [finding for finding in findings if notes or finding.gravity != "note"]
    complaints = [(finding.kind, finding.case or "", finding.message) for finding in shown]
    first = dict(zip(reversed(complaints), reversed(shown), strict=True))
    groups = alike(complaints, NOT_TIMED)
    for kind in dict.fromkeys(finding.kind for finding in shown):
        same = [group for group in groups if group.kind == kind]
        for group in same[:most]:
            yield _finding(first[kind, group.cases[0], group.text], group)
        if len(same) > most:
            yield Text(f"    and {sum(len(group.cases) for group in same[most:])} more {kind}: {_ALL}", style="dim")
    counts = Counter(finding.kind for finding in findings if finding.gravity == "note" and not notes)
    if counts:
        yield Text("notes: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()), style="yellow")


def _finding(finding: Finding, group: Alike | None = None, *, verbose: bool = False) -> Text:
    """Return a finding with the first few lines of its text, or all; `group` are the others like it."""
    named = finding.case and not finding.message.startswith(finding.case)
    where = f"{finding.case}: " if named else ""
    message = "\n    ".join(few_lines(finding.message, verbose=verbose, option=_ALL))
    text = Text.assemble((f"{finding.kind}: ", _GRAVITY_STYLES[finding.gravity]), f"{where}{message}")
    also = _also(finding, group) if group else ""
    return text.append(f" ({also})", style="dim") if also else text


def _also(finding: Finding, group: Alike) -> str:
    """Return the text for the others like a finding: other kernels, how many of its kernel, and cases not timed."""
    kernel = (finding.case or "").partition("[")[0]
    kernels = [case.partition("[")[0] for case in group.cases[1:]]
    others = list(dict.fromkeys(name for name in kernels if name != kernel))
    same = f"{kernels.count(kernel)} more of {kernel}" if kernel in kernels else ""
    also = f"also {names_text(others)}" if others else ""
    untimed = f"{names_text(group.untimed)} not timed because of it" if group.untimed else ""
    return "; ".join(filter(None, [also, same, untimed]))

"""A record in the terminal: the headline, the table of cases with footnotes, findings, and peers."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.bounds.bottleneck import peak_of
from prism_bench.analysis.gate.checks import Gate, GateCheck, gate
from prism_bench.analysis.peers import UNSTABLE_MARK, HeadlineRow, peer_rows
from prism_bench.analysis.run_analysis import Finding, Reading
from prism_bench.analysis.summary import condition_texts, conditions, time_spent, window_seconds
from prism_bench.measure.plausibility import is_bandwidth
from prism_bench.record.run_record import IMPORTED, NOT_TIMED, RunRecord
from prism_bench.report.gate import headline as gate_headline
from prism_bench.report.gate import is_undecided
from prism_bench.report.headline import (
    UNSTABLE_MEANING,
    UNSTABLE_TIME,
    case_text,
    counted_text,
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
from prism_bench.report.view import GAP, CaseTable, CaseView, Cell, Column, case_views, table_of
from prism_bench.units import count_text, duration_text, rate_text, share_text, time_text

_STYLES = {"good": "green", "bad": "bold red", "warn": "yellow", "muted": "dim"}
_STATE_STYLES = {"ok": "green", "skipped": "yellow", "unstable": "yellow"}
_GRAVITY_STYLES = {"bad": "bold red", "untrusted": "bold red", "note": "yellow"}
_MOST = 10  # cases in the list of those that need attention, and in a table that is shown whole
_NAME = 30  # characters of a case's name in the list of those that need attention
_AXES = 40  # characters of the axes of an imported case
_FINDINGS = 3  # of a kind, in a summary that leaves cases out
_ALL = "show --all"  # what prints everything
_MORE = (
    "\nshow --all: all {count} and every finding; show --filter NAME: one kernel with its peers; "
    "show --why CASE: why it takes its time"
)


def summary_view(
    reading: Reading, judged: Gate | None = None, *, every_peer: bool = False, everything: bool = False
) -> RenderableType:
    """Return what `show` prints and `run` ends with, for a Rich console.

    That is the sentence of the gate (`judged`, or the one on the record alone), what was measured, and the cases that
    need attention, the gravest and largest first, alike ones once. All cases follow where they are few; with
    `everything` always, with every condition and finding in its whole text. With `every_peer`, a table of the peers of
    each case follows as well. What the machine is able to do and its GPUs come last.
    """
    record, verdict = reading.record, judged or gate(reading, Path())
    views = case_views(reading)
    shown = [view for view in views if not view.case.ceiling] or views  # ceilings are no kernels of anybody's
    whole = everything or every_peer or len(shown) <= _MOST
    table = table_of(views if everything else shown)
    parts: list[RenderableType] = [*_title(reading, verdict), *_attention(verdict, shown, views)]
    if known := [tile for tile in tiles(reading) if tile.value != "–"]:
        parts.append(Text("; ".join(f"{tile.title.lower()} {tile.value} ({tile.words})" for tile in known)))
    parts += _headline_view(reading.against_peers, whole=whole)
    parts += _cases(table) if whole and table.rows else []
    parts += [part for view in shown if every_peer for part in _peers(view)]
    if everything:
        parts += [_finding(finding, verbose=True) for finding in reading.findings]
    else:
        parts += _brief_findings(reading.findings, verdict.concerns, _MOST if whole else _FINDINGS, notes=whole)
    parts += [*_conditions(record), *_time(record)] if whole else []
    parts += [*_limits(reading), *_devices(record)]
    parts += [] if whole else [Text(_MORE.format(count=count_text(len(shown), "case")), style="dim")]
    return Group(*parts)


# What needs attention: the cases that fail the gate, each with its cause.


def _attention(verdict: Gate, shown: Sequence[CaseView], views: Sequence[CaseView]) -> Iterator[RenderableType]:
    """Yield the list of the concerns, the gravest and largest first; without any, one line with what to do next.

    `shown` are the cases of kernels, `views` all of them.
    """
    concerns, known = verdict.concerns, {view.case.name: view for view in views}
    if not concerns:
        yield from _next(shown)
        return
    rows = _rows_of(concerns)
    named = {check.case for check in concerns if check.case}
    total = count_text(len(shown), "case")
    if not named <= {view.case.name for view in shown}:
        total = count_text(len(verdict.record.cases), "check")
    count = f": {len(named)} of {total}" if named else ""
    yield Text(f"\nNeeds attention, the largest first{count}", style="bold")

    grid = _plain_grid(left=("verdict", "case"), right=("time",))
    grid.add_column("cause", overflow="fold", ratio=1)
    for checks, group in rows[:_MOST]:
        check, view = checks[0], known.get(checks[0].case or "")
        name = f"{view.implementation} {_label(view)}" if view else check.case or "the run"
        seconds = (view.number("cold_time") or view.number("wall_time")) if view else None
        cause = Text("; ".join(_causes(checks, view)))
        if also := _also(check.case, group):
            cause.append(f" ({also})", style="dim")
        answer = Text(check.answer, style=_GRAVITY_STYLES[check.gravity])
        grid.add_row(answer, Text(middle_cut(name, _NAME)), time_text(seconds) if seconds else GAP, cause)
    yield grid
    if left := sum(len(group.cases) for _, group in rows[_MOST:]):
        yield Text(f"  and {count_text(left, 'more case', 'more cases')}: prism-bench check", style="dim")
    yield Text("")


def _rows_of(concerns: Sequence[GateCheck]) -> list[tuple[list[GateCheck], Alike]]:
    """Return what a list of concerns has in a row: all checks of one case, or alike complaints without a size."""
    of_case: defaultdict[str, list[GateCheck]] = defaultdict(list)
    for check in concerns:
        of_case[check.case or f"the run: {check.message}"].append(check)
    groups = {group.cases[0]: group for group in alike(map(_complaint, concerns), NOT_TIMED)}
    rows: list[tuple[list[GateCheck], Alike]] = []
    for checks in of_case.values():
        check = checks[0]
        if check.ratio is not None:
            rows.append((checks, Alike(check.answer, check.message, [check.case or ""])))
        elif group := groups.get(check.case or ""):
            rows.append((checks, group))
    return rows


def _complaint(check: GateCheck) -> tuple[str, str, str]:
    return check.answer, check.case or "", check.message


def _label(view: CaseView) -> str:
    """Return the label of a case; of an imported one its axes, since another tool's cases all have one label."""
    case = view.case
    return middle_cut(case.workload_text, _AXES) if case.label == IMPORTED and case.workload_text else case.label


def _causes(checks: Sequence[GateCheck], view: CaseView | None) -> Iterator[str]:
    """Yield what limits the case, such as `memory, 58 % of 4.35 TB/s`, and the words of its checks."""
    limit = limit_text(view) if view and checks[0].ratio is not None else None
    if limit:
        yield limit
    for check in checks:
        message = "\n".join(few_lines(check.message, option=_ALL))
        budget = message.partition("; ")[2]
        # The limit already has the share of the bandwidth.
        is_known = limit and limit.startswith("memory") and check.metric == "bandwidth_share"
        yield budget if is_known and budget else message


def limit_text(view: CaseView) -> str | None:
    """Return what limits a case and how near it is, such as `memory, 58 % of 4.35 TB/s`; None where it is unknown."""
    bound, share = view.row["bound"], view.number("bound_share")
    if not bound or share is None:
        return None
    limits, least = view.reading.limits, view.number("least_time")
    if bound == "launch":
        return f"launch, of which an empty one takes {time_text(least)}" if least else None
    rate = limits.ceilings.get("bandwidth") if bound == "memory" else peak_of(view.case, limits)
    unit = "B/s" if bound == "memory" else "FLOP/s"
    return f"{bound}, {share_text(share)}" + (f" of {rate_text(rate, unit)}" if rate else "")


def _next(views: Sequence[CaseView]) -> Iterator[Text]:
    """Yield one line: nothing needs attention, and what to look at next: the case that is farthest from its limit."""
    shares = {
        view: share
        for view in views
        if view.row["bound"] in ("memory", "compute") and not view.case.before and not view.case.variant
        if (share := view.number("bound_share")) is not None
    }
    if not shares:
        yield Text("Nothing needs attention. The pages have every number: prism-bench report")
    else:
        farthest = min(shares, key=shares.__getitem__)
        name = f"{farthest.implementation} {farthest.case.label}"
        yield Text(
            f"Nothing needs attention. Farthest from its limit: {name} ({limit_text(farthest)}); "
            f"prism-bench show --why {shlex.quote(farthest.case.name)}"
        )


# Above the tables: what was measured, its limits, the conditions, and where the time went.


def _title(reading: Reading, verdict: Gate) -> Iterator[Text]:
    """Yield the sentence of the gate, then what was measured, on what and when."""
    record = reading.record
    judged = verdict.exit_code != 2
    if judged:
        style = "bold red" if verdict.concerns else "bold yellow" if is_undecided(verdict) else "bold green"
        yield Text(gate_headline(verdict), style=style)
    trusted = reading.trusted == len(reading.kernels) and record.complete and bool(reading.cases)
    plain = "" if judged else "bold green" if trusted else "bold yellow"
    measured = headline(reading)
    if reading.edges:
        moments = [case.carried for case in record.cases if case.carried]
        names = sorted({name for case in record.cases if (name := case.carried_from)})
        source = f" ({names[0]})" if len(names) == 1 else f" ({count_text(len(names), 'record')})" if names else ""
        carried = f", {len(moments)} carried over since {min(moments)[:10]}{source}" if moments else ""
        measured = f"{measured.removesuffix('.')}, {count_text(len(record.cases), 'check')}{carried}."
    dirty = " with uncommitted changes" if record.dirty else ""
    commit = f", commit {record.commit[:8]}{dirty}" if record.commit else ""
    origin = f"{machine_name(record)}, {record.backend} backend, {record.created}{commit}"
    yield Text.assemble((measured, plain), f"  {origin}")
    if record.stand_in:
        yield Text(record.stand_in.sentence, style="yellow")
    if controls := [case.control for case in record.cases if case.control]:
        names = sorted(set(controls))
        where = names[0] if len(names) == 1 else f"{count_text(len(names), 'record')} since {names[0]}"
        text = f"{count_text(len(controls), 'control')}: unchanged, measured in fewer processes; full times in {where}"
        yield Text(text, style="dim")


def _devices(record: RunRecord) -> Iterator[Text]:
    """Yield for a merged record how many parts it has, and of which devices."""
    if record.parts:
        merged = f"merged from {count_text(len(record.parts), 'part')}"
        yield Text(", ".join(filter(None, [merged, devices_text(record)])), style="dim")


def _limits(reading: Reading) -> Iterator[Text]:
    """Yield the launch overhead and the ceilings, or that none were measured; nothing where no device was timed."""
    limits = reading.limits
    if reading.record.stand_in:
        return
    texts = [
        f"{name.removesuffix('_time')} launch overhead {time_text(seconds)}" for name, seconds in limits.floors.items()
    ]
    for name, rate in limits.ceilings.items():
        texts.append(f"{name.replace('_', ' ')} ceiling {rate_text(rate, 'B/s' if is_bandwidth(name) else 'FLOP/s')}")
    yield Text(", ".join(texts) if texts else "no launch overhead and no ceiling measured in this run", style="dim")


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
    grid.add_column("verdict", no_wrap=True)
    for view in table.rows:
        cells = [_text(view.cells[column.key], table.note_number(view.cells[column.key])) for column in columns]
        grid.add_row(Text(middle_cut(view.implementation, longest)), Text(_label(view)), *cells, verdict_text(view))
    return grid


def verdict_text(view: CaseView) -> Text:
    """Return one verdict: the state of a case, unless that is ok and its budgets are not all met or unmeasured."""
    if view.state == "ok" and view.budget.text in ("missed", "undecided", "expired"):
        return Text(view.budget.text, style=_STYLES[view.budget.tone])
    return Text(view.state, style=_STATE_STYLES.get(view.state, "bold red"))


def _text(cell: Cell, note: int | None) -> Text:
    text = Text(cell.text + cell.mark, style=_STYLES.get(cell.tone, ""))
    if cell.share is not None or cell.small in ("memory", "compute", "launch"):
        text.append(f" {cell.small}", style="dim")
    if note:
        text.append(f" [{note}]", style="dim")
    return text


# The findings, alike ones once.


def _brief_findings(
    findings: Sequence[Finding], concerns: Sequence[GateCheck], most: int, *, notes: bool
) -> Iterator[Text]:
    """Yield at most `most` findings of each kind that are no concern, alike ones once.

    Without `notes` these are only counted.
    """
    listed = {(check.answer, check.case, check.metric) for check in concerns}
    shown = [
        finding
        for finding in findings
        if (notes if finding.gravity == "note" else (finding.kind, finding.case, finding.metric) not in listed)
    ]
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
        counted = ", ".join(counted_text(count, kind) for kind, count in counts.items())
        yield Text(f"notes: {counted}", style="dim")


def _finding(finding: Finding, group: Alike | None = None, *, verbose: bool = False) -> Text:
    """Return a finding with the first few lines of its text, or all; `group` are the others like it."""
    named = finding.case and not finding.message.startswith(finding.case)
    where = f"{finding.case}: " if named else ""
    message = "\n    ".join(few_lines(finding.message, verbose=verbose, option=_ALL))
    text = Text.assemble((f"{finding.kind}: ", _GRAVITY_STYLES[finding.gravity]), f"{where}{message}")
    also = _also(finding.case, group) if group else ""
    return text.append(f" ({also})", style="dim") if also else text


def _also(case: str | None, group: Alike) -> str:
    """Return the text for the others like a finding: other kernels, more of its kernel, and cases not timed."""
    kernel = (case or "").partition("[")[0]
    kernels = [case.partition("[")[0] for case in group.cases[1:]]
    others = list(dict.fromkeys(name for name in kernels if name != kernel))
    same = f"{kernels.count(kernel)} more of {kernel}" if kernel in kernels else ""
    also = f"also {names_text(others)}" if others else ""
    untimed = f"{names_text(group.untimed)} not timed because of it" if group.untimed else ""
    return "; ".join(filter(None, [also, same, untimed]))

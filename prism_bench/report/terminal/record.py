"""A record in the terminal: the headline, the table of cases with footnotes, the findings."""

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
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
from prism_bench.report.cells import Cell, Column
from prism_bench.report.headline import headline, tiles
from prism_bench.report.machine import devices_text, machine_name
from prism_bench.report.peers import UNSTABLE_MEANING
from prism_bench.report.terminal.case_table import CaseRow, CaseTable, case_table
from prism_bench.report.terminal.peers import headline_view, peer_tables
from prism_bench.run_record import RunRecord
from prism_bench.units import duration_text, rate_text, time_text

_STYLES = {"good": "green", "bad": "bold red", "warn": "yellow", "muted": "dim"}
_GRAVITY_STYLES = {"bad": "bold red", "untrusted": "bold red", "note": "yellow"}
# The columns that a narrow terminal does without, the first to go first.
_DISPENSABLE = (
    "energy", "end_to_end_time", "error", "launch_time", "flop_rate", "cpu_ratio", "bandwidth", "hot_time", "limit",
)  # fmt: skip


def summary_view(
    record: RunRecord, catalogue: Catalogue | None = None, *, must_be_held: bool = True, every_peer: bool = False
) -> RenderableType:
    """Return what `show` prints and `run` ends with, for a Rich console; `must_be_held` as in `read`.

    With `every_peer`, a table of the peers of each case follows the table of cases.
    """
    reading = read(record, catalogue, must_be_held=must_be_held)
    table = case_table(reading)
    parts: list[RenderableType] = [_title(reading), *_parts(record), _limits(reading), *_conditions(record)]
    parts += [*_time(record), *_tiles(reading), *headline_view(reading.against_peers)]
    parts += [_Fitting(table)] if table.rows else []
    parts += [Text(f"  [{number}] {reason}", style="dim") for number, reason in enumerate(table.notes, 1)]
    parts += _legend(table)
    parts += peer_tables(reading.cases) if every_peer else []
    parts += [_finding(finding) for finding in reading.findings]
    return Group(*parts)


def _title(reading: Reading) -> Text:
    trusted = reading.trusted == len(reading.cases) and reading.record.complete
    return Text.assemble(
        (headline(reading), "bold green" if trusted and reading.cases else "bold yellow"),
        f"  {machine_name(reading.record)}, {reading.record.backend} backend, {reading.record.created}",
    )


def _parts(record: RunRecord) -> list[Text]:
    """Return how many parts, and of which devices, a merged record has."""
    words = ", ".join(filter(None, [f"merged from {len(record.parts)} parts", devices_text(record)]))
    return [Text(words, style="dim")] if record.parts else []


def _limits(reading: Reading) -> Text:
    """Return the launch overhead and the ceilings, or that none were measured."""
    limits = reading.limits
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
    """Return what the mark of an unstable peer means, where a cell has it."""
    marked = any(cell.mark == UNSTABLE_MARK for row in table.rows for cell in row.cells.values())
    return [Text(f"  {UNSTABLE_MEANING}", style="dim")] if marked else []


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


class _Fitting:
    """The table of cases, without the columns that the terminal is too narrow for, and the names of those."""

    def __init__(self, table: CaseTable) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown, dropped = list(self._table.columns), []
        for key in _DISPENSABLE:
            if (
                Measurement.get(console, options.update(max_width=10_000), _grid(self._table, shown)).maximum
                <= options.max_width
            ):
                break
            dropped += [column.title.lower() for column in shown if column.key == key]
            shown = [column for column in shown if column.key != key]
        yield _grid(self._table, shown)
        if dropped:
            yield Text(f"  no room for {', '.join(dropped)}: --json or the report shows them", style="dim")


def _grid(table: CaseTable, shown: list[Column]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    grid.add_column("kernel", no_wrap=True)
    grid.add_column("label")
    for column in shown:
        grid.add_column(column.title.lower(), justify="right", no_wrap=True)
    if table.has_budgets:
        grid.add_column("budget", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    for row in table.rows:
        cells = [_text(row.cells[column.key], row.notes.get(column.key)) for column in shown]
        budget = [_text(row.budget, None)] if table.has_budgets else []
        grid.add_row(Text(implementation(row.case)), row.case.label, *cells, *budget, _state(row))
    return grid


def _text(cell: Cell, note: int | None) -> Text:
    text = Text(cell.text + cell.mark, style=_STYLES.get(cell.tone, ""))
    if cell.share is not None or cell.small in ("memory", "compute", "launch"):
        text.append(f" {cell.small}", style="dim")
    if note:
        text.append(f" [{note}]", style="dim")
    return text


def _state(row: CaseRow) -> Text:
    style = {"ok": "green", "skipped": "yellow"}.get(row.state, "bold red")
    return Text(row.state, style=style)


def _finding(finding: Finding) -> Text:
    named = finding.case and not finding.message.startswith(finding.case)
    where = f"{finding.case}: " if named else ""
    return Text.assemble((f"{finding.kind}: ", _GRAVITY_STYLES[finding.gravity]), f"{where}{finding.message}")

"""Tables as wide as the terminal: long names lose their middle."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

# Names and texts cut to what a terminal has room for.

_FEW = 5  # lines of one text: more are for --verbose
_ERROR = re.compile(r"\berror\b")
_CUT = "…"


def middle_cut(text: str, width: int) -> str:
    """Return the text in at most `width` characters; what is too long loses its middle, where names differ least."""
    if len(text) <= width:
        return text
    head = max(width - 1, 0) // 2
    tail = max(width - 1 - head, 0)
    return f"{text[:head]}{_CUT}{text[len(text) - tail :]}"


def few_lines(text: str, *, verbose: bool = False, option: str = "--verbose") -> list[str]:
    """Return the lines of a text, or the first few from its first error on, and how many were left out.

    `option` is what shows all of them.
    """
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip()]
    if verbose or len(lines) <= _FEW:
        return lines
    head, rest = lines[0], lines[1:]
    start = next((place for place, line in enumerate(rest) if _ERROR.search(line)), 0)
    shown = [head, *rest[start : start + _FEW - 2]]
    return [*shown, f"{len(lines) - len(shown)} more lines: " + option + " shows them"]


def names_text(names: Sequence[str], most: int = 3) -> str:
    """Return the first few names and the count of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


# A table as wide as the terminal: long names lose their middle, then columns go.

_LEAST_NAME = 16


class FittedTable:
    """A table that `make` builds from the columns to leave out and the longest name.

    `dispensable` has the columns that may go, the first to go first, by key with their titles; a line names those that
    went. The others stay, whatever the width. `longest` is the length of the longest name.
    """

    def __init__(
        self, make: Callable[[Collection[str], int], Table], dispensable: Mapping[str, str], longest: int
    ) -> None:
        self._make, self._dispensable, self._longest = make, dispensable, longest

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = min(self._longest, max(_LEAST_NAME, options.max_width * 2 // 5))
        dropped: list[str] = []
        for key in self._dispensable:
            if self._over(console, options, dropped, names) <= 0:
                break
            dropped.append(key)
        over = self._over(console, options, dropped, names)
        yield self._make(dropped, max(names - max(over, 0), _LEAST_NAME))
        if dropped:
            titles = ", ".join(self._dispensable[key] for key in dropped)
            yield Text(f"  no room for {titles}: a wider terminal, --json or the report shows them", style="dim")

    def _over(self, console: Console, options: ConsoleOptions, dropped: Collection[str], names: int) -> int:
        wide = options.update(max_width=10_000)
        return Measurement.get(console, wide, self._make(dropped, names)).maximum - options.max_width


@dataclass(frozen=True)
class FittedColumn:
    """A column of `fitted`: its title, whether it has numbers, and from 1 its turn to go from a narrow terminal."""

    title: str
    numbers: bool = False
    goes: int | None = None


Row = tuple[Sequence[str | Text], str | None]  # the cells, and the style of the row


def fitted(title: str, columns: Sequence[FittedColumn], rows: Sequence[Row]) -> FittedTable:
    """Return a table of these cells; the first one is a name, which loses its middle in a narrow terminal."""

    def make(dropped: Collection[str], names: int) -> Table:
        table = Table(title=title or None, title_justify="left", box=None, padding=(0, 1, 0, 0), header_style="bold")
        kept = [place for place, column in enumerate(columns) if column.title not in dropped]
        for place in kept:
            right = "right" if columns[place].numbers else "left"
            table.add_column(columns[place].title, justify=right, no_wrap=place == 0 or columns[place].numbers)
        for cells, style in rows:
            own = [middle_cut(str(cells[0]), names), *cells[1:]]
            # Names of cases have brackets, which are no markup.
            texts = [Text(cell) if isinstance(cell, str) else cell for cell in own]
            table.add_row(*(texts[place] for place in kept), style=style)
        return table

    going = sorted((column for column in columns if column.goes), key=lambda column: column.goes or 0)
    longest = max((len(str(cells[0])) for cells, _ in rows), default=0)
    return FittedTable(make, {column.title: column.title for column in going}, longest)

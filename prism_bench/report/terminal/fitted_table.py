"""A table as wide as the terminal: long names lose their middle, then columns go."""

from collections.abc import Callable, Collection, Mapping

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

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

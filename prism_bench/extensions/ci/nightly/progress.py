"""The progress of a nightly run on standard error: a line for each part, live on a terminal, now and then elsewhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.live import Live
from rich.table import Table

from prism_bench.cli import options
from prism_bench.cli.options.progress import line_seconds
from prism_bench.units import duration_text

if TYPE_CHECKING:
    from prism_bench.extensions.ci.nightly import PartState

FIRST_SECONDS = (2.0, 10.0, 30.0)  # soon at first, so that whoever starts it sees that it works


@contextmanager
def parts_progress() -> "Iterator[Callable[[Sequence[PartState]], None]]":
    """Yield a function that shows the states of the parts of a nightly run."""
    console = options.err()
    if not console.is_terminal:
        yield _lines()
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield lambda states: live.update(_table(states), refresh=True)


def _table(states: "Sequence[PartState]") -> Table:
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)  # cut first: which part it is and since when stay
    for state in states:
        grid.add_row(f"part {state.number} of {state.count}", duration_text(state.seconds), _words(state))
    return grid


def _lines() -> "Callable[[Sequence[PartState]], None]":
    """Return a function that prints every part after FIRST_SECONDS, then once in `line_seconds()`."""
    interval = line_seconds()
    due = iter([*(seconds for seconds in FIRST_SECONDS if seconds < interval), interval])
    following = next(due)

    def show(states: "Sequence[PartState]") -> None:
        nonlocal following
        now = max(state.seconds for state in states)
        if now < following:
            return
        following = next(due, following + interval)
        for state in states:
            options.remark(f"nightly: {now:.0f} s: part {state.number} of {state.count}: {_words(state)}")

    return show


def _words(state: "PartState") -> str:
    if state.code is not None:
        return f"ended with {state.code}"
    return state.line or "starting"

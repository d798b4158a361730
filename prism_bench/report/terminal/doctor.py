"""The doctor's checks as a table, by group."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.doctor import Check

_STYLES = {"works": "green", "note": "yellow", "missing": "cyan", "broken": "bold red"}


def checks_view(found: Sequence[tuple[str, Check]]) -> RenderableType:
    """Return the table of checks by group, and how many have each state."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "check", "state"):
        table.add_column(name, no_wrap=True)
    table.add_column("found", overflow="fold")
    shown = None
    for group, check in found:
        state = Text(check.state, style=_STYLES[check.state])
        table.add_row(Text(group if group != shown else "", style="dim"), Text(check.name), state, _finding(check))
        shown = group
    states = [check.state for _, check in found]
    return Group(table, Text(", ".join(f"{states.count(state)} {state}" for state in _STYLES if state in states)))


def _finding(check: Check) -> Text:
    """Return what was found, below it the cause and the cure."""
    words = Text(check.found if check.state != "missing" else "")
    if check.cause:
        words.append(("\n" if words.plain else "") + check.cause)
    if check.cure:
        words.append(f"\n{check.cure}", style="dim")
    return words

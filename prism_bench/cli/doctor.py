"""`prism-bench doctor`: what works here, what does not, and what would help."""

from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from prism_bench import options

NAME = "doctor"
_STYLES = {"works": "green", "note": "yellow", "missing": "cyan", "broken": "bold red"}


def command(json: options.JsonOption = False) -> None:
    """Say what works on this machine and what does not.

    Driver, GPUs, CUDA, libraries, profilers and host: one finding per check, with cause and cure.

    Ends with 1 where something is broken. What is merely missing leaves the rest working, and ends with 0.
    """
    from prism_bench.doctor import examine

    with options.err().status("looking"):
        found = list(examine())
    if json:
        options.print_json([{"group": group, **asdict(check)} for group, check in found])
    else:
        console = options.out()
        console.print(_table(found))
        console.print(_summary(found), highlight=False)
    raise SystemExit(1 if any(check.state == "broken" for _, check in found) else 0)


def _table(found):
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "check", "state"):
        table.add_column(name, no_wrap=True)
    table.add_column("found", overflow="fold")
    shown = None
    for group, check in found:
        table.add_row(
            Text(group if group != shown else "", style="dim"), Text(check.name), _state(check), _words(check)
        )
        shown = group
    return table


def _state(check):
    return Text(check.state, style=_STYLES[check.state])


def _words(check):
    """What was found; below it why, and what would help."""
    words = Text(check.found if check.state != "missing" else "")
    if check.cause:
        words.append(("\n" if words.plain else "") + check.cause)
    if check.cure:
        words.append(f"\n{check.cure}", style="dim")
    return words


def _summary(found):
    states = [check.state for _, check in found]
    return ", ".join(f"{states.count(state)} {state}" for state in _STYLES if state in states)

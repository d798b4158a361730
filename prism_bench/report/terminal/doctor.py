"""The doctor's checks as a table, by group."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.doctor import Check
from prism_bench.doctor.abilities import AbilityAnswer, answers
from prism_bench.units import count_text

_ABSENT = "not here"  # what a check of an absent library found
_STYLES = {"works": "green", "note": "yellow", "missing": "cyan", "broken": "bold red"}


def doctor_view(found: Sequence[tuple[str, Check]], everything: bool = False) -> RenderableType:
    """Return what a user can and cannot do here, then the checks that are broken or worth a note, or all of them."""
    shown = [(group, check) for group, check in found if everything or check.state == "broken" or _is_noted(check)]
    parts: list[RenderableType] = list(_abilities(answers(check for _, check in found)))
    if shown:
        parts += [Text(), checks_view(shown)]
    if len(shown) < len(found):
        parts += [
            Text(),
            Text(f"{len(shown)} of {count_text(len(found), 'check')} shown; --all shows every check", style="dim"),
        ]
    return Group(*parts)


def _is_noted(check: Check) -> bool:
    """Return whether the check found something that works, with a note."""
    return check.state == "note" and check.found != _ABSENT


def _abilities(found: Sequence[AbilityAnswer]) -> Iterator[Text]:
    can = [one.what for one in found if one.possible]
    yield Text.assemble(("You can: ", "green"), ", ".join(can) + ".")
    closed = [one for one in found if not one.possible]
    for lacks, cure in dict.fromkeys((one.lacks, one.cure) for one in closed):
        what = ", ".join(one.what for one in closed if (one.lacks, one.cure) == (lacks, cure))
        reason = f"{lacks} does not work here" + (f": {cure}" if cure else "")
        yield Text.assemble(("You cannot: ", "cyan"), f"{what}. {reason}")


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

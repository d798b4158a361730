"""The gate in a terminal: the sentence, each part's count, what is wrong and how to see it again, the notes by kind."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.analysis.gate.alerts import command
from prism_bench.analysis.gate.checks import Gate, GateCheck
from prism_bench.report.gate.words import answers, headline, is_undecided, origin, title
from prism_bench.report.terminal.fitting import alike, names_text

_STYLES = {"bad": "bold red", "untrusted": "bold red", "note": "yellow", "well": "green"}
_MOST_NOTES = 5


def view(gate: Gate) -> RenderableType:
    """Return what `check` prints, not cropped so that commands stay whole; names are text, never markup."""
    style = "bold red" if gate.concerns else "bold yellow" if gate.exit_code or is_undecided(gate) else "bold green"
    return Group(
        Text.assemble((headline(gate), style), f"  {origin(gate)}"), _parts(gate),
        *[line for check in gate.concerns for line in _concern(gate, check)], *_notes(gate),
    )  # fmt: skip


def _parts(gate: Gate) -> Table:
    grid = Table.grid(padding=(0, 2))
    for part in gate.parts:
        gravities = {check.gravity for check in part.checks}
        worst = next((one for one in ("untrusted", "bad", "well") if one in gravities), "note")
        grid.add_row(Text(title(part), style=_STYLES[worst]), Text(answers(part)))
    return grid


def _concern(gate: Gate, check: GateCheck) -> Iterator[Text]:
    yield Text.assemble((f"{check.answer}: ", _STYLES[check.gravity]), f"{_subject(check)}{check.message}")
    yield Text(f"    {command(gate.record, check)}", style="dim", no_wrap=True, overflow="ignore")  # to be copied


def _subject(check: GateCheck) -> str:
    named = check.case and not check.message.startswith(check.case)
    return f"{check.case}: " if named else ""


def _notes(gate: Gate) -> Iterator[Text]:
    """Yield the first few notes of each kind, those that differ in numbers alone once, and the count of the rest."""
    kinds = defaultdict(list)
    for check in gate.checks:
        if check.gravity == "note":
            kinds[check.answer].append(check)
    for kind, notes in kinds.items():
        first = {(check.case or "", check.message): check for check in reversed(notes)}
        groups = alike((kind, check.case or "", check.message) for check in notes)
        for group in groups[:_MOST_NOTES]:
            yield _note(first[group.cases[0], group.text], also=group.cases[1:])
        rest = sum(len(group.cases) for group in groups[_MOST_NOTES:])
        if rest:
            yield Text(f"    and {rest} more {kind}: --json or --markdown shows them", style="dim")


def _note(check: GateCheck, also: Sequence[str]) -> Text:
    """Return a note; `also` names the cases of others like it."""
    text = Text.assemble((f"{check.answer}: ", _STYLES["note"]), f"{_subject(check)}{check.message}")
    kernels = list(dict.fromkeys(case.partition("[")[0] for case in also if case))
    return text.append(f" (also {names_text(kernels)})", style="dim") if kernels else text

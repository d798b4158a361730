"""Which cases a comparison measured, in the terminal: how many and why, and what changed of their machine code."""

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from prism_bench.analysis.compare.selection import SelectedCase, Selection
from prism_bench.report.code_difference import code_difference_json
from prism_bench.report.terminal.code_difference import code_difference_view
from prism_bench.units import count_text, duration_text

_SHOWN = 5  # differences of machine code; --json has all


def selection_view(selection: Selection) -> list[RenderableType]:
    """Return a line of counts, a line of times, and the differences of machine code, each once."""
    groups = _groups(selection)
    parts = [part for cases in groups[:_SHOWN] for part in _difference(cases)]
    if len(groups) > _SHOWN:
        parts.append(Text(f"{len(groups) - _SHOWN} more differences of machine code: --json lists all", style="dim"))
    return [*parts, *(Text(line, style="dim") for line in _summary(selection))]


def _summary(selection: Selection) -> Iterator[str]:
    reasons = Counter(reason for one in selection.cases for reason in one.reasons)
    words = ", ".join(f"{reason} of {count}" for reason, count in reasons.items())
    changed, control = len(selection.changed), len(selection.names("control"))
    same = len(selection.names("same machine code"))
    yield f"changed: {changed} of {count_text(len(selection.cases), 'case')}" + (f" ({words})" if words else "")
    if selection.everything:
        yield f"all cases are measured: {selection.everything}"
    elif changed:
        yield f"not measured: {same} of the same machine code; {control} were measured as the control"
    else:
        yield "nothing is measured; --all-cases measures all"
    if selection.by == "source text":
        yield "by the text of sources, their headers and options: the same text gives the same machine code"
    if selection.by == "reference":
        yield "by the references and inputs: the backend runs no kernel"
    parts = (f"{part} {seconds:.1f} s" for part, seconds in selection.seconds.items())
    yield f"took {duration_text(sum(selection.seconds.values()))}: {', '.join(parts)}"


def _groups(selection: Selection) -> list[list[SelectedCase]]:
    """Return the cases with a difference of machine code, those with the same one together."""
    groups: dict[str, list[SelectedCase]] = {}
    for one in selection.cases:
        if one.differences or one.note:
            groups.setdefault(f"{one.differences}{one.note}", []).append(one)
    return list(groups.values())


def _difference(cases: list[SelectedCase]) -> Iterator[RenderableType]:
    one = cases[0]
    more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
    yield Text(f"machine code of {one.case}{more}")
    if one.differences:
        yield code_difference_view(code_difference_json(one.differences), one.note)
    else:
        yield Text(f"  {one.note}", style="dim")

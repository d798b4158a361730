"""Why a case takes its time, in a terminal: at most fifteen lines of what the kernel's page shows."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from prism_bench.analysis.bounds.code_against import CodeAgainst
from prism_bench.analysis.bounds.why import Fix, Why
from prism_bench.report.cells import times_text
from prism_bench.report.code_difference import changes_of, code_difference_json
from prism_bench.units import share_text, time_text

MOST = 15  # lines
_FIXES, _LINES, _NOTES = 3, 3, 2


def why_view(found: Why) -> RenderableType:
    """Return the account; each line is cut at the edge of the terminal, but for the names and commands of notes."""
    cut = [*_head(found), *_counters(found), *_roof(found), *_fixes(found), *_lines(found), *_code(found.code)]
    notes = [Text(f"note      {note}", style="dim", overflow="fold") for note in found.notes[:_NOTES]]
    for line in cut:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*cut[: MOST - len(notes)], *notes)


def _head(found: Why) -> Iterator[Text]:
    yield Text(found.case, style="bold")
    yield Text(found.verdict, style="bold yellow" if found.bottleneck else "bold")


def _counters(found: Why) -> Iterator[Text]:
    for one in found.counters:
        yield Text(f"  {one.text:>8}  {one.meaning}")
    if found.counted_in:
        yield Text(f"          counted in {found.counted_in}", style="dim")


def _roof(found: Why) -> Iterator[Text]:
    if found.roof:
        roof = found.roof
        least = f"{time_text(roof.seconds)} cold; the {roof.limit} limit allows {time_text(roof.least)}"
        yield Text(f"roof      {least}: {share_text(roof.share)} of it reached")
    elif found.seconds:
        yield Text(f"time      {time_text(found.seconds)} cold")


def _fixes(found: Why) -> Iterator[Text]:
    for number, fix in enumerate(found.fixes[:_FIXES]):
        yield Text(f"{'' if number else 'fix':<10}{fix.words}{_gain(found, fix)}")


def _gain(found: Why, fix: Fix) -> str:
    """Return the time that a fix would bring at best, and how many times as fast that is."""
    if fix.seconds is None:
        return ""
    faster = f", {times_text(found.roof.seconds / fix.seconds)} as fast" if found.roof else ""
    return f": {time_text(fix.seconds)}{faster}"


def _lines(found: Why) -> Iterator[Text]:
    for number, one in enumerate(found.lines[:_LINES]):
        stall = f" ({one.stall})" if one.stall else ""
        text = f"  {one.text.strip()}" if one.text else ""
        yield Text(f"{'' if number else 'source':<10}{one.file}:{one.line} {share_text(one.share)}{stall}{text}")


def _code(code: CodeAgainst | None) -> Iterator[Text]:
    """Yield how the machine code differs from the earlier run's."""
    if code is None:
        return
    if code.state == "unknown":
        yield Text(f"code      {code.note}")
        return
    facts = [f"{name.replace('_', ' ')} {was} to {now}" for name, (was, now) in code.facts.items()]
    facts += ["launched otherwise"] if code.relaunched else []
    yield Text(f"code      {code.state} since {code.before}")
    if facts:
        yield Text(f"          {', '.join(facts)}")
    for one in code_difference_json(code.entries)[:1]:
        yield Text(f"          {one['entry']}: {', '.join(changes_of(one)) or 'other operands or another order'}")
    if code.note:
        yield Text(f"          {code.note}", style="dim")

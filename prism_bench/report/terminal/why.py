"""Why a case takes its time, in a terminal: at most fifteen lines of what the kernel's page shows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from prism_bench.analysis.bounds.code_against import CodeAgainst
from prism_bench.analysis.bounds.hot_lines import SourceLine
from prism_bench.analysis.bounds.why import COUNTERS, CountedNear, Fix, Why, WhyCounter
from prism_bench.report.cells import times_text
from prism_bench.report.code_difference import changes_of, code_difference_json
from prism_bench.units import share_text, time_text

MOST = 15  # lines
_VERDICT, _FIXES, _LINES, _NOTES = 4, 3, 3, 2  # lines of each part at most; of notes, how many


def why_view(found: Why) -> RenderableType:
    """Return the account in at most `MOST` lines of the terminal.

    Lines are cut at its edge, but for the verdict and for the names and commands of notes, which are folded.
    """
    return _Account(found)


@dataclass
class _Part:
    """Lines of one subject; where the terminal has too few for all, no more than the last ones go, down to `least`."""

    lines: list[Text]
    least: int

    @property
    def spare(self) -> int:
        return len(self.lines) - self.least


class _Account:
    def __init__(self, found: Why) -> None:
        self._found = found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts = list(_parts(self._found, console, options.max_width))
        texts = [Text(f"note      {note}", style="dim") for note in self._found.notes[:_NOTES]]
        notes = [_folded(text, console, options.max_width) for text in texts]
        while len(notes) > 1 and sum(one.least for one in parts) + sum(map(len, notes)) > MOST:
            notes.pop()  # a note with a command is shown in whole, or not at all
        _shorten(parts, MOST - sum(map(len, notes)))
        yield from [line for lines in (*(one.lines for one in parts), *notes) for line in lines][:MOST]


def _shorten(parts: Sequence[_Part], most: int) -> None:
    """Remove the last lines of the parts that can spare most, until there are no more than `most`."""
    while sum(len(one.lines) for one in parts) > most and any(one.spare for one in parts):
        max(reversed(parts), key=lambda one: one.spare).lines.pop()


def _parts(found: Why, console: Console, width: int) -> Iterator[_Part]:
    """Yield the parts from the first line to the last, without notes."""
    verdict = Text(found.verdict, style="bold yellow" if found.bottleneck else "bold")
    folded = _folded(verdict, console, width)[:_VERDICT]
    yield _Part([*_cut([Text(found.case, style="bold")]), *folded], 1 + len(folded))
    counters = [*_counters(found.counters), *_counted_in(found)]
    sources = found.lines or (found.near.lines if found.near else ())
    for lines, least in ((counters, COUNTERS), (_near(found.near), 1 + COUNTERS), (_roof(found), 1), (_fixes(found), 1),
                         (_lines(sources), 1), (_code(found.code), 1)):  # fmt: skip
        cut = _cut(lines)
        yield _Part(cut, min(least, len(cut)))


def _folded(text: Text, console: Console, width: int) -> list[Text]:
    return list(text.wrap(console, width, overflow="fold"))


def _cut(lines: Iterable[Text]) -> list[Text]:
    """Return the lines so that each is cut at the edge of the terminal."""
    cut = list(lines)
    for line in cut:
        line.no_wrap, line.overflow = True, "ellipsis"
    return cut


def _counters(counters: Iterable[WhyCounter]) -> Iterator[Text]:
    for one in counters:
        yield Text(f"  {one.text:>8}  {one.meaning}")


def _counted_in(found: Why) -> Iterator[Text]:
    if found.counted_in:
        yield Text(f"          counted in {found.counted_in}", style="dim")


def _near(near: CountedNear | None) -> Iterator[Text]:
    """Yield what was counted at another workload."""
    if near is None:
        return
    yield Text(f"at {near.label:<7}{near.verdict}")
    yield from _counters(near.counters)


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


def _lines(lines: Sequence[SourceLine]) -> Iterator[Text]:
    for number, one in enumerate(lines[:_LINES]):
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

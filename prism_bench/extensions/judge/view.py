"""A verdict as text for a terminal, and as JSON."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from prism_bench.extensions.judge.plain_words import printable
from prism_bench.extensions.judge.timed_case import timed_cases
from prism_bench.extensions.judge.verdict import JudgeVerdict, Ruling
from prism_bench.units import count_text, time_text

_STYLES: dict[Ruling, str] = {"right": "green", "wrong": "red", "refused": "red", "unchecked": "yellow"}
_MOST = 5


def verdict_json(verdict: JudgeVerdict) -> dict[str, Any]:
    """Return the verdict as plain values, its score and the reasons for that first."""
    return {"score": verdict.score, "reasons": list(verdict.reasons), **msgspec.to_builtins(verdict)}


def verdict_view(verdict: JudgeVerdict) -> RenderableType:
    """Return the verdict: the ruling, objections, what was checked where, code, times, what was not judged."""
    whose = printable(f"{verdict.submission} for {verdict.task}: ")
    head = Text(whose) + Text(verdict.ruling, _STYLES[verdict.ruling])
    lines = (printable(line).replace("\n", "\n    ") for line in _lines(verdict))  # no line that looks like another one
    return Group(head, *(Text(f"  {line}") for line in lines))


def _lines(verdict: JudgeVerdict) -> Iterator[str]:
    yield from _few([f"{one.rule}: {one.words}" for one in verdict.objections], "objections")
    for where, counts in _checked(verdict).items():
        yield f"{where}: {counts[True]} of {count_text(counts.total(), 'case')} right"
    for code in verdict.code:
        registers = max(code.registers.values(), default=0)
        spilled = max(code.spilled.values(), default=0)
        size = f"{code.size:,} bytes, {count_text(registers, 'register')}, {spilled} bytes spilled"
        yield f"sm_{code.architecture}: {size}, code {code.sass}"
        if code.kinds:
            yield "instructions: " + ", ".join(f"{count} {kind}" for kind, count in code.kinds.items())
        if code.precisions:
            yield "arithmetic: " + ", ".join(f"{count} {name}" for name, count in code.precisions.items())
    yield from _times(verdict)
    yield from _few([f"counts for nothing: {words}" for words in verdict.struck], "cases that count for nothing")
    yield from _few([f"not judged: {words}" for words in verdict.unjudged], "not judged")
    for name, words in verdict.evidence.items():
        yield f"{name}: {words}"
    yield f"jail: {verdict.jail}"
    yield f"secret: {verdict.secret}"


def _times(verdict: JudgeVerdict) -> Iterator[str]:
    """Yield a line for each timed case, with what it is compared with, and the score."""
    for case in timed_cases(verdict):
        if own := case.own:
            others = [f"{one.subject} ({one.kind}) {time_text(one.seconds)}" for one, _ in case.rows if one is not own]
            interval = f"{time_text(own.low)} to {time_text(own.high)}"
            size = f"{case.name}, hidden" if own.hidden else case.name
            yield ", ".join([f"{size}: {time_text(own.seconds)} ({interval})", *others])
    if verdict.scored:
        yield f"score: {verdict.score:.3g} times as fast as the task's kernel, over {_sizes(verdict)}"


def _sizes(verdict: JudgeVerdict) -> str:
    hidden = any(one.hidden for one in verdict.times if one.case in verdict.scored)
    return count_text(len(verdict.scored), f"{'hidden' if hidden else 'published'} size")


def _checked(verdict: JudgeVerdict) -> dict[str, Counter[bool]]:
    found: dict[str, Counter[bool]] = {}
    for one in verdict.checked:
        found.setdefault(one.where, Counter())[one.right] += 1
    return found


def _few(lines: list[str], what: str) -> Iterator[str]:
    yield from lines[:_MOST]
    if len(lines) > _MOST:
        yield f"... and {len(lines) - _MOST} more {what}; --json has all"

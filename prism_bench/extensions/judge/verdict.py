"""The verdict on a submission: one document, its text for a terminal, its JSON and its page."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any, Literal

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from prism_bench.extensions.judge.defences import DEFENCES
from prism_bench.report.templating import environment
from prism_bench.units import count_text, time_text

# The verdict on a submission: one document, with everything that it rests on.

Ruling = Literal["right", "wrong", "refused", "unchecked"]
TimeKind = Literal["submission", "kernel", "peer", "ceiling"]
_EXIT_CODES: dict[Ruling, int] = {"right": 0, "wrong": 1, "refused": 1, "unchecked": 3}


class Objection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is wrong: the rule that it breaks, in words, and the case where it was seen."""

    rule: str
    words: str
    case: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.words}"


class CheckedCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One case and where its outputs were compared: `emulator, race`, `cuda`; `right` is what came of it."""

    case: str
    where: str
    right: bool
    words: str = ""


class JudgedCode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Machine code for one architecture: its hash, its bytes and, by entry, registers and bytes spilled of a thread.

    `kinds` counts its instructions by kind, `precisions` its arithmetic by precision.
    """

    architecture: str
    sass: str
    size: int
    registers: dict[str, int]
    spilled: dict[str, int]
    kinds: dict[str, int]
    precisions: dict[str, int] = {}


class JudgedTime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Time of one launch of a case in seconds: the median, its 95 % interval, and how many launches were timed.

    `kind` is whose it is: the submission's, the task's own kernel's, a peer's, or what a ceiling of the machine allows.
    `hidden` is a size that nobody knew before; `seeds` drew the inputs of the timed launches, in order.
    """

    case: str
    subject: str
    kind: TimeKind
    seconds: float
    low: float
    high: float
    samples: int = 0
    hidden: bool = False
    seeds: tuple[int, ...] = ()


class JudgeVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A verdict.

    `ruling` is `right` where every case agrees with the reference, `wrong` where one does not, `refused` where a rule
    does not let it be launched, `unchecked` where a case could be launched nowhere, or no output be compared.
    `unjudged` names what was not, and why; `struck` are cases that count for nothing: a kernel without any work would
    pass, or the task's own kernel fails.
    `secret` drew seeds and sizes, so that `judge --secret` repeats the judgement, and `hidden` names those sizes.
    `headers_sha256` is of all headers that it could include, `task_sha256` of the task's spec and source with all that
    they share. `defences` are the names of what was in force, and `seconds` has what each step took. `times` are empty
    where no GPU was there; `evidence` has in words what the machine was like.
    """

    submission: str
    task: str
    ruling: Ruling
    objections: tuple[Objection, ...] = ()
    checked: tuple[CheckedCase, ...] = ()
    struck: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    code: tuple[JudgedCode, ...] = ()
    source_sha256: str = ""
    card_sha256: str = ""
    jail: str = ""
    secret: int = 0
    hidden: tuple[str, ...] = ()
    headers_sha256: str = ""
    task_sha256: str = ""
    defences: tuple[str, ...] = ()
    seconds: dict[str, float] = {}
    times: tuple[JudgedTime, ...] = ()
    evidence: dict[str, str] = {}

    @property
    def score(self) -> float:
        """How many times as fast as the task's own kernel it is, the geometric mean over the timed hidden sizes.

        Published sizes count where no hidden one was timed. 0 where it is not right, 1 where it is right and no case
        was timed with the task's kernel.
        """
        if self.ruling != "right":
            return 0.0
        return geometric_mean(list(self.scored.values()) or [1.0])

    @property
    def scored(self) -> dict[str, float]:
        """The cases that decide the score, each with the time of the task's own kernel over the submission's."""
        own = {one.case: one for one in self.times if one.kind == "submission"}
        kernel = {one.case: one.seconds for one in self.times if one.kind == "kernel"}
        both = {case: kernel[case] / one.seconds for case, one in own.items() if case in kernel}
        return {case: ratio for case, ratio in both.items() if own[case].hidden} or both

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the score is what it is, in words."""
        found = [*map(str, self.objections), *(f"not judged: {words}" for words in self.unjudged)]
        if self.ruling == "right" and not self.scored:
            found.append("right, and not timed with the task's own kernel: the score is 1")
        elif self.ruling == "right" and not any(one.hidden for one in self.times if one.case in self.scored):
            found.append("no hidden size was timed: the score is of sizes that everybody knows")
        return tuple(found)

    @property
    def exit_code(self) -> int:
        """What the command ends with: 0 right, 1 wrong or refused, 3 where no output could be checked."""
        return _EXIT_CODES[self.ruling]


class BatchRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of a leaderboard; `page` is the name of the verdict's page, empty where there is no verdict."""

    candidate: str
    ruling: Ruling
    score: float
    reasons: tuple[str, ...] = ()
    page: str = ""


# Words of a verdict: without the folder that a submission was moved to, as long as one reads, safe for a terminal.

LONGEST = 4000  # characters of a compiler's or an emulator's words: how many there are is the sender's choice


def plain_words(error: Exception, source: Path) -> str:
    """Return an error's words; the submission's files and headers are named from its own folder on.

    `source` is its file where it is judged, `FOLDER/judged/NAME`.
    """
    own, folder = source.parent, source.parent.parent
    words = str(error).replace(f"{own}/", "").replace(str(own), "the submission's folder")
    words = words.replace(f"{folder}/", "").replace(str(folder), "the judge's folder")
    more = len(words) - LONGEST
    return f"{words[:LONGEST]}... and {more:,} more characters" if more > 0 else words


def readable(words: str) -> str:
    """Return a name that may be a file's as one line of text: bytes that are none, and line breaks, by their escapes.

    Other names have other texts, unlike those of `printable`: nobody's name is shown as another's, nor as a line.
    """
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in words)


def printable(words: str) -> str:
    """Return words that a stranger may have written without what a terminal obeys, such as escape sequences."""
    return "".join(one if one.isprintable() or one == "\n" else " " for one in words)


# The seconds of a verdict's steps, for the tables of studies.

_SHOWN_SECONDS = 0.5  # of a step that is printed


def seconds_of_steps(*verdicts: Mapping[str, float], digits: int, beginning: str = "", ending: str = "") -> float:
    """Return the sum over the steps of all verdicts whose names begin and end so, rounded to these digits."""
    steps = (step for seconds in verdicts for step in seconds.items())
    return round(sum(took for name, took in steps if name.startswith(beginning) and name.endswith(ending)), digits)


def steps_text(seconds: Mapping[str, float]) -> str:
    """Return the seconds of a judgement, and of the steps that take some, in words."""
    long = ", ".join(f"{name} {took:.1f}" for name, took in seconds.items() if took >= _SHOWN_SECONDS)
    return f"{sum(seconds.values()):.1f} s ({long})"


# The times of a verdict by case, as its page and the terminal show them.


@dataclass(frozen=True)
class TimedCase:
    """The times of one case, the submission's first; `ratio` is the time of each over the submission's."""

    name: str
    rows: tuple[tuple[JudgedTime, float | None], ...]

    @property
    def hidden(self) -> bool:
        """Whether nobody knew the size before."""
        return any(time.hidden for time, _ in self.rows)

    @property
    def own(self) -> JudgedTime | None:
        """The time of the submission, if it has one."""
        first, _ = self.rows[0]
        return first if first.kind == "submission" else None


def timed_cases(verdict: JudgeVerdict) -> Iterator[TimedCase]:
    """Yield the cases that have times, in the verdict's order."""
    for name in dict.fromkeys(one.case for one in verdict.times):
        rows = sorted((one for one in verdict.times if one.case == name), key=lambda one: one.kind != "submission")
        own = rows[0].seconds if rows[0].kind == "submission" else None
        yield TimedCase(name, tuple((one, one.seconds / own if own else None) for one in rows))


# A verdict's page: one HTML file that needs no other, for whoever the verdict is handed on to.

_RULINGS: dict[Ruling, tuple[str, str]] = {
    "right": ("good", "Every case that counts agrees with the task's reference."),
    "wrong": ("bad", "An output differs from the task's reference, or a launch did not end as it should."),
    "refused": ("bad", "A rule does not let it be launched, so that its outputs were not compared."),
    "unchecked": ("warn", "A case could be launched nowhere, or no output be compared: see what could not be judged."),
}  # class of the style, and what it means


def page_html(verdict: JudgeVerdict) -> str:
    """Return the page of a verdict."""
    wheres = dict.fromkeys(one.where for one in verdict.checked)
    tried = [
        (
            where,
            sum(one.right for one in verdict.checked if one.where == where),
            sum(one.where == where for one in verdict.checked),
        )
        for where in wheres
    ]
    style, meaning = _RULINGS[verdict.ruling]
    return (
        environment()
        .get_template("judge/verdict.html")
        .render(
            verdict=verdict,
            style=style,
            meaning=meaning,
            tried=tried,
            wrong=[one for one in verdict.checked if not one.right],
            cases=len({one.case for one in verdict.checked}),
            timed=list(timed_cases(verdict)),
            defences=[(name, DEFENCES[name]) for name in DEFENCES if name in verdict.defences],
            absent=[(name, DEFENCES[name]) for name in DEFENCES if name not in verdict.defences],
        )
    )


def leaderboard_html(task: str, rows: Sequence[BatchRow]) -> str:
    """Return the page of many submissions to a task, next to whose file the pages of the verdicts are."""
    styled = [(row, _RULINGS[row.ruling][0]) for row in rows]
    right = sum(row.ruling == "right" for row in rows)
    return environment().get_template("judge/leaderboard.html").render(task=task, rows=styled, right=right)


# A verdict as text for a terminal, and as JSON.

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

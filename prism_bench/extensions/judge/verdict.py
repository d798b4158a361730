"""Verdict on a submission: the document, its JSON, its text for a terminal and its HTML page."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from prism_bench.extensions.judge.defences import DEFENCES
from prism_bench.units import count_text, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType

# `jinja2` and `rich` are imported where a page or a text is made: jailed processes and runners need neither.

Ruling = Literal["right", "wrong", "refused", "unchecked"]
TimeKind = Literal["submission", "kernel", "peer", "ceiling"]
_EXIT_CODES: dict[Ruling, int] = {"right": 0, "wrong": 1, "refused": 1, "unchecked": 3}


class Objection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fault of a submission: the broken rule, a text, and the case that showed it."""

    rule: str
    text: str = msgspec.field(name="words")
    case: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


class CheckedCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Case, the place of the comparison (`emulator, race`, `cuda`), and whether its outputs were right."""

    case: str
    where: str
    right: bool
    text: str = msgspec.field(default="", name="words")


class JudgedCode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Machine code for an architecture: its hash, its size and, by entry, registers and spilled bytes per thread.

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
    """Time of one launch of a case in seconds: the median, its 95 % interval, and the number of timed launches.

    `kind` is the timed code: the submission, the task's own kernel, or a peer; a ceiling of the machine is a bound.
    `hidden` is a size that was drawn; `seeds` drew the inputs of the timed launches, in order.
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
    """Verdict on a submission, with everything that it is based on.

    `ruling` is `right` if every case agrees with the reference, `wrong` if one does not, `refused` if a rule forbids a
    launch, `unchecked` if a case could not be launched anywhere, or no output could be compared. `unjudged` names
    everything without a judgement, with the reason. `struck` are cases that do not count: a kernel without any work
    would pass, or the task's own kernel fails.
    `secret` drew seeds and sizes, so that `judge --seed` repeats the judgement, and `hidden` names those sizes.
    `headers_sha256` is of all headers that a source could include, `task_sha256` of the task's spec and source with
    their shared files. `defences` are the names of the defences in force, and `seconds` has the time of each step.
    `times` are empty without a GPU; `evidence` describes the state of the machine.
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
        """Speed-up over the task's own kernel, the geometric mean over the timed hidden sizes.

        Published sizes count if no hidden size was timed. 0 for a ruling other than `right`; 1 if no case was timed
        together with the task's kernel.
        """
        if self.ruling != "right":
            return 0.0
        return geometric_mean(list(self.scored.values()) or [1.0])

    @property
    def scored(self) -> dict[str, float]:
        """Cases that decide the score, each with the time of the task's own kernel over the submission's."""
        submission = {time.case: time for time in self.times if time.kind == "submission"}
        kernel = {time.case: time.seconds for time in self.times if time.kind == "kernel"}
        both = {case: kernel[case] / time.seconds for case, time in submission.items() if case in kernel}
        return {case: ratio for case, ratio in both.items() if submission[case].hidden} or both

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons of the score."""
        reasons = [*map(str, self.objections), *(f"not judged: {text}" for text in self.unjudged)]
        if self.ruling == "right" and not self.scored:
            reasons.append("right, and not timed with the task's own kernel: the score is 1")
        elif self.ruling == "right" and not self.has_hidden_score:
            reasons.append("no hidden size was timed: the score is of sizes that everybody knows")
        return tuple(reasons)

    @property
    def has_hidden_score(self) -> bool:
        """Whether hidden sizes decide the score."""
        return any(time.hidden for time in self.times if time.case in self.scored)

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0 right, 1 wrong or refused, 3 unchecked."""
        return _EXIT_CODES[self.ruling]


class BatchRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Row of a leaderboard; `page` is the name of the verdict's page, empty without a verdict."""

    candidate: str
    ruling: Ruling
    score: float
    reasons: tuple[str, ...] = ()
    page: str = ""


# Texts of a verdict: without the folder of the submission's copy, of limited length, safe for a terminal

LONGEST = 4000  # characters of a message of a compiler or an emulator, whose length the sender can choose


def plain_words(error: Exception, source: Path) -> str:
    """Return an error's text with paths of the submission's files and headers relative to its own folder.

    `source` is the judged copy of its file, `FOLDER/judged/NAME`.
    """
    judged, folder = source.parent, source.parent.parent
    text = str(error).replace(f"{judged}/", "").replace(str(judged), "the submission's folder")
    text = text.replace(f"{folder}/", "").replace(str(folder), "the judge's folder")
    more = len(text) - LONGEST
    return f"{text[:LONGEST]}... and {more:,} more characters" if more > 0 else text


def readable(name: str) -> str:
    """Return a file's name as one line of text, with escapes for line breaks and undecodable bytes.

    Different names have different texts, unlike in `printable`: no name can look like another name or another line.
    """
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in name)


def printable(text: str) -> str:
    """Return a stranger's text with spaces for everything that a terminal obeys, such as escape sequences."""
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


# Seconds of a verdict's steps, for tables of studies

_SHOWN_SECONDS = 0.5  # of a step that is printed


def seconds_of_steps(*verdicts: Mapping[str, float], digits: int, beginning: str = "", ending: str = "") -> float:
    """Return the sum over all steps whose names begin with `beginning` and end with `ending`, rounded to `digits`."""
    steps = (step for seconds in verdicts for step in seconds.items())
    return round(sum(took for name, took in steps if name.startswith(beginning) and name.endswith(ending)), digits)


def steps_text(seconds: Mapping[str, float]) -> str:
    """Return a text with the seconds of a judgement and of its long steps."""
    long = ", ".join(f"{name} {took:.1f}" for name, took in seconds.items() if took >= _SHOWN_SECONDS)
    return f"{sum(seconds.values()):.1f} s ({long})"


# Times of a verdict by case, for page and terminal


@dataclass(frozen=True)
class TimedCase:
    """Times of a case, the submission's first, each with its ratio to the submission's."""

    name: str
    rows: tuple[tuple[JudgedTime, float | None], ...]

    @property
    def hidden(self) -> bool:
        """Whether the size was drawn."""
        return any(time.hidden for time, _ in self.rows)

    @property
    def submission(self) -> JudgedTime | None:
        """Time of the submission, if it has one."""
        time, _ = self.rows[0]
        return time if time.kind == "submission" else None


def timed_cases(verdict: JudgeVerdict) -> Iterator[TimedCase]:
    """Yield the cases that have times, in the verdict's order."""
    for name in dict.fromkeys(time.case for time in verdict.times):
        times = sorted(
            (time for time in verdict.times if time.case == name), key=lambda time: time.kind != "submission"
        )
        submission = times[0].seconds if times[0].kind == "submission" else None
        yield TimedCase(name, tuple((time, time.seconds / submission if submission else None) for time in times))


# The page, a self-contained HTML file

_RULINGS: dict[Ruling, tuple[str, str]] = {
    "right": ("good", "Every case that counts agrees with the task's reference."),
    "wrong": ("bad", "An output differs from the task's reference, or a launch did not end as it should."),
    "refused": ("bad", "A rule does not let it be launched, so that its outputs were not compared."),
    "unchecked": ("warn", "A case could be launched nowhere, or no output be compared: see what could not be judged."),
}  # style class and meaning


def page_html(verdict: JudgeVerdict) -> str:
    """Return the page of a verdict."""
    from prism_bench.report.templating import environment

    style, meaning = _RULINGS[verdict.ruling]
    return (
        environment()
        .get_template("judge/verdict.html")
        .render(
            verdict=verdict,
            style=style,
            meaning=meaning,
            tried=[(where, counts[True], counts.total()) for where, counts in _checked_by_place(verdict).items()],
            wrong=[check for check in verdict.checked if not check.right],
            cases=len({check.case for check in verdict.checked}),
            timed=list(timed_cases(verdict)),
            defences=[(name, DEFENCES[name]) for name in DEFENCES if name in verdict.defences],
            absent=[(name, DEFENCES[name]) for name in DEFENCES if name not in verdict.defences],
        )
    )


def leaderboard_html(task: str, rows: Sequence[BatchRow]) -> str:
    """Return the page of many submissions to a task, with links to the verdicts' pages in the same folder."""
    from prism_bench.report.templating import environment

    styled = [(row, _RULINGS[row.ruling][0]) for row in rows]
    right = sum(row.ruling == "right" for row in rows)
    return environment().get_template("judge/leaderboard.html").render(task=task, rows=styled, right=right)


# Text for a terminal, and JSON

_STYLES: dict[Ruling, str] = {"right": "green", "wrong": "red", "refused": "red", "unchecked": "yellow"}
_MOST = 5


def verdict_json(verdict: JudgeVerdict) -> dict[str, Any]:
    """Return the verdict as plain values, the score and its reasons first."""
    return {"score": verdict.score, "reasons": list(verdict.reasons), **msgspec.to_builtins(verdict)}


def verdict_view(verdict: JudgeVerdict) -> "RenderableType":
    """Return the verdict: the ruling, objections, checks by place, code, times, and everything not judged."""
    from rich.console import Group
    from rich.text import Text

    head = Text(printable(f"{verdict.submission} for {verdict.task}: ")) + Text(verdict.ruling, _STYLES[verdict.ruling])
    lines = (printable(line).replace("\n", "\n    ") for line in _lines(verdict))  # none looks like another
    return Group(head, *(Text(f"  {line}") for line in lines))


def _lines(verdict: JudgeVerdict) -> Iterator[str]:
    yield from _few([str(objection) for objection in verdict.objections], "objections")
    for where, counts in _checked_by_place(verdict).items():
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
    yield from _few([f"counts for nothing: {text}" for text in verdict.struck], "cases that count for nothing")
    yield from _few([f"not judged: {text}" for text in verdict.unjudged], "not judged")
    for name, text in verdict.evidence.items():
        yield f"{name}: {text}"
    yield f"jail: {verdict.jail}"
    yield f"secret: {verdict.secret}"


def _times(verdict: JudgeVerdict) -> Iterator[str]:
    """Yield a line for each timed case with its rivals, and the score."""
    for case in timed_cases(verdict):
        if submission := case.submission:
            rivals = [time for time, _ in case.rows if time is not submission]
            others = [f"{time.subject} ({time.kind}) {time_text(time.seconds)}" for time in rivals]
            interval = f"{time_text(submission.low)} to {time_text(submission.high)}"
            size = f"{case.name}, hidden" if submission.hidden else case.name
            yield ", ".join([f"{size}: {time_text(submission.seconds)} ({interval})", *others])
    if verdict.scored:
        sizes = count_text(len(verdict.scored), "hidden size" if verdict.has_hidden_score else "published size")
        yield f"score: {verdict.score:.3g} times as fast as the task's kernel, over {sizes}"


def _checked_by_place(verdict: JudgeVerdict) -> dict[str, Counter[bool]]:
    """Return by place of comparison the number of right and of wrong cases."""
    counts: dict[str, Counter[bool]] = {}
    for check in verdict.checked:
        counts.setdefault(check.where, Counter())[check.right] += 1
    return counts


def _few(lines: list[str], what: str) -> Iterator[str]:
    yield from lines[:_MOST]
    if len(lines) > _MOST:
        yield f"... and {len(lines) - _MOST} more {what}; --json has all"

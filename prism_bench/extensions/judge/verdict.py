"""The verdict on a submission: one document, with everything that it rests on."""

from statistics import geometric_mean
from typing import Literal

import msgspec

Ruling = Literal["right", "wrong", "refused", "unchecked"]
TimeKind = Literal["submission", "kernel", "peer", "ceiling"]
EXIT_CODES: dict[Ruling, int] = {"right": 0, "wrong": 1, "refused": 1, "unchecked": 3}


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
        return EXIT_CODES[self.ruling]


class BatchRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of a leaderboard; `page` is the name of the verdict's page, empty where there is no verdict."""

    candidate: str
    ruling: Ruling
    score: float
    reasons: tuple[str, ...] = ()
    page: str = ""

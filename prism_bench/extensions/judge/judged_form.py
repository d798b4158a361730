"""A row of the table of honest kernels: a form of a catalogue, what the judge answers, and what that takes."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from prism_bench.extensions.judge.referee.session import WHERE, WHERE_UNTIMED
from prism_bench.extensions.judge.referee.turns import WAITING
from prism_bench.extensions.judge.step_seconds import seconds_of_steps
from prism_bench.extensions.judge.verdict import JudgeVerdict

Outcome = Literal["right", "unchecked", "rejected", "degenerate task", "no card"]
OUTCOMES: dict[str, Outcome] = {"right": "right", "unchecked": "unchecked", "wrong": "rejected", "refused": "rejected"}


@dataclass(frozen=True)
class JudgedForm:
    """A kernel or variant, what the judge answered, why where that is not `right`, and the seconds of its steps.

    `launched` are the cases whose launches on a GPU were compared, `waiting` the seconds of `on_gpu` in which another
    judgement had the device.
    """

    form: str
    outcome: Outcome
    words: str = ""
    struck: int = 0
    compiling: float = 0.0
    no_work: float = 0.0
    emulating: float = 0.0
    on_gpu: float = 0.0
    launched: int = 0
    waiting: float = 0.0

    @property
    def seconds(self) -> float:
        """The seconds of all steps, without those in which another form had the device."""
        return self.compiling + self.no_work + self.emulating + self.on_gpu - self.waiting


def judged_form(name: str, verdict: JudgeVerdict) -> JudgedForm:
    """Return the row of a form, with its verdict in words where it is not right."""
    refuses_task = any(one.rule == "degenerate task" for one in verdict.objections)  # whoever sends what to it
    outcome = "degenerate task" if refuses_task else OUTCOMES[verdict.ruling]
    words = "" if outcome == "right" else "; ".join([*map(str, verdict.objections), *verdict.unjudged])
    struck = sum("own kernel" in one for one in verdict.struck)

    def seconds(beginning: str = "", ending: str = "") -> float:
        return seconds_of_steps(verdict.seconds, digits=2, beginning=beginning, ending=ending)

    return JudgedForm(
        name, outcome, " ".join(words.split())[:300], struck, seconds("machine code"), seconds("kernels that"),
        seconds("emulator"), seconds("GPU"), sum(one.where in (WHERE, WHERE_UNTIMED) for one in verdict.checked),
        seconds(ending=WAITING),
    )  # fmt: skip


def read_forms(files: Sequence[Path]) -> list[JudgedForm]:
    """Return the rows of tables that are there; of a form that several have, the last."""
    rows: dict[str, JudgedForm] = {}
    for file in files:
        if file and file.is_file():
            with file.open(newline="") as table:
                for row in csv.DictReader(table):
                    rows[row["form"]] = msgspec.convert(row, JudgedForm, strict=False)
    return list(rows.values())

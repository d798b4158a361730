"""`prism_bench.judge`: the verdict on a stranger's kernel, from Python."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from prism_bench.catalogue import Catalogue, of_project
from prism_bench.errors import SpecError
from prism_bench.extensions.judge.on_gpu import OnGpu
from prism_bench.extensions.judge.referee.referee import WAITING
from prism_bench.extensions.judge.referee.session import WHERE, WHERE_UNTIMED
from prism_bench.extensions.judge.submission import Submission, read_submission
from prism_bench.extensions.judge.task import JudgeTask, drawn_secret, headers_hash, task_named
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.extensions.judge.verdict import JudgeVerdict, Objection, readable, seconds_of_steps
from prism_bench.workflows.compile_table import require_known

# `prism_bench.judge`: the verdict on a stranger's kernel, from Python.

Report = Callable[[str], None]


def _nothing(words: str) -> None:
    """Report to nobody."""


def judge(
    submission: Path | str,
    task: str,
    *,
    catalogue: Catalogue | Path | str | None = None,
    gpu: bool = False,
    architectures: Sequence[str] = (),
    trust_source: bool = False,
    secret: int | None = None,
    report: Report = _nothing,
) -> JudgeVerdict:
    """Return the verdict on a submission: device code and a launch card, compiled and run on the emulator in a jail.

    Parameters
    ----------
    submission : Path or str
        The card, a TOML file, or a folder with one, next to its source or cubin; one that none may be is refused.
    task : str
        A kernel of the catalogue, or `kernel:variant`: its reference, cases and tolerances judge the submission.
    catalogue : Catalogue, Path or str, optional
        A catalogue or its folder; that of the project by default, else the built-in one.
    architectures : sequence of str
        Compute capabilities that the source is compiled for, such as `90`; by default the GPU's, or 90 without one.
    trust_source : bool
        Use no jail: only for your own source.
    gpu : bool
        Launch and time it on the current GPU once it is right on the emulator.
    secret : int, optional
        Draws seeds and sizes: that of a verdict repeats it. By default it is random.
    report : callable
        Called with each step in words.

    Raises
    ------
    UsageError
        Submission, catalogue or task cannot be found; the compiler does not know an architecture.
    BackendUnavailable
        No jail can be made here; no GPU answers, or it is in quarantine.
    """
    judged_by = _task(task, catalogue, architectures)
    taken = read_or_refuse(Path(submission), judged_by)
    if isinstance(taken, JudgeVerdict):
        return taken
    drawn = drawn_secret() if secret is None else secret
    device = OnGpu(secret=drawn) if gpu else None
    chosen = tuple(architectures or [device.architecture if device else "90"])
    return SubmissionTrial(taken, judged_by, chosen, not trust_source, report, secret=drawn, gpu=device).verdict()


def _task(name: str, catalogue: Catalogue | Path | str | None, architectures: Sequence[str]) -> JudgeTask:
    """Return the task; a UsageError where there is none of the name, or an architecture that no compiler knows."""
    found = catalogue if isinstance(catalogue, Catalogue) else of_project(Path(catalogue) if catalogue else None)
    require_known(architectures)
    return task_named(name, found)


def read_or_refuse(card: Path, task: JudgeTask) -> Submission | JudgeVerdict:
    """Return the submission; the verdict on a card that is none: nothing of it was compiled, and nothing launched."""
    try:
        return read_submission(card)
    except SpecError as error:
        return JudgeVerdict(
            readable(card.stem),
            task.spec.name,
            "refused",
            (Objection("form", readable(str(error))),),
            jail="none was needed",
            headers_sha256=headers_hash(task.catalogue.folder),
            task_sha256=task.hash,
            defences=("form of the submission",),
        )


# A row of the table of honest kernels: a form of a catalogue, what the judge answers, and what that takes.

Outcome = Literal["right", "unchecked", "rejected", "degenerate task", "no card"]
_OUTCOMES: dict[str, Outcome] = {"right": "right", "unchecked": "unchecked", "wrong": "rejected", "refused": "rejected"}


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
    outcome = "degenerate task" if refuses_task else _OUTCOMES[verdict.ruling]
    words = "" if outcome == "right" else "; ".join([*map(str, verdict.objections), *verdict.unjudged])
    struck = sum("own kernel" in one for one in verdict.struck)

    def seconds(beginning: str = "", ending: str = "") -> float:
        return seconds_of_steps(verdict.seconds, digits=2, beginning=beginning, ending=ending)

    return JudgedForm(
        name,
        outcome,
        " ".join(words.split())[:300],
        struck,
        seconds("machine code"),
        seconds("kernels that"),
        seconds("emulator"),
        seconds("GPU"),
        sum(one.where in (WHERE, WHERE_UNTIMED) for one in verdict.checked),
        seconds(ending=WAITING),
    )


def read_forms(files: Sequence[Path]) -> list[JudgedForm]:
    """Return the rows of tables that are there; of a form that several have, the last."""
    rows: dict[str, JudgedForm] = {}
    for file in files:
        if file and file.is_file():
            with file.open(newline="") as table:
                for row in csv.DictReader(table):
                    rows[row["form"]] = msgspec.convert(row, JudgedForm, strict=False)
    return list(rows.values())

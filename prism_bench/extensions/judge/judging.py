"""`prism_bench.judge`, the judge as a Python function, and the table of its answers for honest kernels."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from prism_bench.catalogue import Catalogue, of_project
from prism_bench.compilation.program import require_known
from prism_bench.errors import SpecError
from prism_bench.extensions.judge.on_gpu import OnGpu
from prism_bench.extensions.judge.referee.referee import WAITING
from prism_bench.extensions.judge.referee.session import WHERE, WHERE_UNTIMED
from prism_bench.extensions.judge.submission import Submission, read_submission
from prism_bench.extensions.judge.task import JudgeTask, drawn_secret, headers_hash, task_named
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.extensions.judge.verdict import JudgeVerdict, Objection, readable, seconds_of_steps

Report = Callable[[str], None]


def _nothing(text: str) -> None:
    """Ignore a report."""


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
        The card, a TOML file, or a folder with one, next to its source or cubin; an invalid card is refused.
    task : str
        A kernel of the catalogue, or `kernel:variant`: its reference, cases and tolerances judge the submission.
    catalogue : Catalogue, Path or str, optional
        A catalogue or its folder; by default the catalogue of the project, else the built-in catalogue.
    architectures : sequence of str
        Compute capabilities that the source is compiled for, such as `90`; by default the GPU's, or 90 without one.
    trust_source : bool
        Use no jail: only for your own source.
    gpu : bool
        Launch and time it on the current GPU once it is right on the emulator.
    secret : int, optional
        Draws seeds and sizes: the secret of a verdict repeats it. By default it is random.
    report : callable
        Called with the name of each step.

    Raises
    ------
    UsageError
        Submission, catalogue or task cannot be found; the compiler does not know an architecture.
    BackendUnavailable
        No jail can be made here; no GPU answers, or it is in quarantine.
    """
    chosen_from = catalogue if isinstance(catalogue, Catalogue) else of_project(Path(catalogue) if catalogue else None)
    require_known(architectures)
    judge_task = task_named(task, chosen_from)
    card = read_or_refuse(Path(submission), judge_task)
    if isinstance(card, JudgeVerdict):
        return card
    drawn = drawn_secret() if secret is None else secret
    device = OnGpu(secret=drawn) if gpu else None
    chosen = tuple(architectures or [device.architecture if device else "90"])
    return SubmissionTrial(card, judge_task, chosen, not trust_source, report, secret=drawn, gpu=device).verdict()


def read_or_refuse(card: Path, task: JudgeTask) -> Submission | JudgeVerdict:
    """Return the submission, or a `refused` verdict for an invalid card, which was neither compiled nor launched."""
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


# The table of honest kernels: the judge's answers for the forms of a catalogue

Outcome = Literal["right", "unchecked", "rejected", "degenerate task", "no card"]
_OUTCOMES: dict[str, Outcome] = {"right": "right", "unchecked": "unchecked", "wrong": "rejected", "refused": "rejected"}


@dataclass(frozen=True)
class JudgedForm:
    """Kernel or variant, the judge's answer, its reason if it is not `right`, and the seconds of its steps.

    `launched` counts the cases whose launches on a GPU were compared, `waiting` the seconds of `on_gpu` in which
    another judgement had the device.
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
        """Seconds of all steps, except those in which another form had the device."""
        return self.compiling + self.no_work + self.emulating + self.on_gpu - self.waiting


def judged_form(name: str, verdict: JudgeVerdict) -> JudgedForm:
    """Return the row of a form, with the reasons of its verdict if it is not right."""
    refuses_task = any(objection.rule == "degenerate task" for objection in verdict.objections)  # of any submission
    outcome = "degenerate task" if refuses_task else _OUTCOMES[verdict.ruling]
    reasons = "" if outcome == "right" else "; ".join([*map(str, verdict.objections), *verdict.unjudged])
    struck = sum("own kernel" in text for text in verdict.struck)

    def seconds(beginning: str = "", ending: str = "") -> float:
        return seconds_of_steps(verdict.seconds, digits=2, beginning=beginning, ending=ending)

    return JudgedForm(
        name,
        outcome,
        " ".join(reasons.split())[:300],
        struck,
        seconds("machine code"),
        seconds("kernels that"),
        seconds("emulator"),
        seconds("GPU"),
        sum(check.where in (WHERE, WHERE_UNTIMED) for check in verdict.checked),
        seconds(ending=WAITING),
    )


def read_forms(files: Sequence[Path]) -> list[JudgedForm]:
    """Return the rows of the existing tables; of rows for the same form the last."""
    rows: dict[str, JudgedForm] = {}
    for file in files:
        if file and file.is_file():
            with file.open(newline="") as table:
                for row in csv.DictReader(table):
                    rows[row["form"]] = msgspec.convert(row, JudgedForm, strict=False)
    return list(rows.values())

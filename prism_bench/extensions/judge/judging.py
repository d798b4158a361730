"""`prism_bench.judge`: the verdict on a stranger's kernel, from Python."""

from collections.abc import Callable, Sequence
from pathlib import Path

from prism_bench.catalogue import Catalogue, of_project
from prism_bench.errors import SpecError
from prism_bench.extensions.judge.hidden import drawn_secret
from prism_bench.extensions.judge.identity import headers_hash
from prism_bench.extensions.judge.on_gpu import OnGpu
from prism_bench.extensions.judge.plain_words import readable
from prism_bench.extensions.judge.submission import Submission, read_submission
from prism_bench.extensions.judge.task import JudgeTask, task_named
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.extensions.judge.verdict import JudgeVerdict, Objection
from prism_bench.workflows.compile_table import require_known

Report = Callable[[str], None]


def _nothing(words: str) -> None:
    """Report to nobody."""


def judge(
    submission: Path | str, task: str, *, catalogue: Catalogue | Path | str | None = None, gpu: bool = False,
    architectures: Sequence[str] = (), trust_source: bool = False, secret: int | None = None, report: Report = _nothing,
) -> JudgeVerdict:  # fmt: skip
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
            readable(card.stem), task.spec.name, "refused", (Objection("form", readable(str(error))),),
            jail="none was needed", headers_sha256=headers_hash(task.catalogue.folder), task_sha256=task.hash,
            defences=("form of the submission",),
        )  # fmt: skip

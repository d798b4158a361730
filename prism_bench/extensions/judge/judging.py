"""`prism_bench.judge`: the verdict on a stranger's kernel, from Python."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import SystemRandom

from prism_bench.catalogue import Catalogue, of_project
from prism_bench.errors import SpecError
from prism_bench.extensions.judge.identity import headers_hash
from prism_bench.extensions.judge.on_gpu import OnGpu
from prism_bench.extensions.judge.submission import read_submission
from prism_bench.extensions.judge.task import JudgeTask
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.extensions.judge.verdict import JudgeVerdict, Objection
from prism_bench.studies.compile_table import require_known

Report = Callable[[str], None]


def _nothing(words: str) -> None:
    """Report to nobody."""


def judge(
    submission: Path | str, task: str, *, catalogue: Catalogue | Path | str | None = None, gpu: bool = False,
    architectures: Sequence[str] = (), trust_source: bool = False, secret: int | None = None, report: Report = _nothing,
) -> JudgeVerdict:  # fmt: skip
    """Return the verdict on a submission: device code and a launch card, compiled and run on the emulator in a jail.

    A card that none may be, or whose file is missing, is refused by a verdict, too.

    Parameters
    ----------
    submission : Path or str
        The card, a TOML file, or a folder with one, next to its source or cubin.
    task : str
        A kernel of the catalogue: its reference, cases and tolerances judge the submission.
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
        Submission, catalogue or task cannot be found; an architecture is no number.
    BackendUnavailable
        No jail can be made here; no GPU answers, or it is in quarantine.
    """
    found = catalogue if isinstance(catalogue, Catalogue) else of_project(Path(catalogue) if catalogue else None)
    require_known(architectures)
    judged_by = JudgeTask(found.kernel(task), found)
    try:
        taken = read_submission(Path(submission))
    except SpecError as error:
        return refused_by_form(Path(submission), judged_by, error)
    drawn = SystemRandom().getrandbits(32) if secret is None else secret
    device = OnGpu(secret=drawn) if gpu else None
    chosen = tuple(architectures or [device.architecture if device else "90"])
    return SubmissionTrial(taken, judged_by, chosen, not trust_source, report, secret=drawn, gpu=device).verdict()


def refused_by_form(card: Path, task: JudgeTask, error: SpecError) -> JudgeVerdict:
    """Return the verdict on a card that cannot be read as one: nothing was compiled, and nothing launched."""
    return JudgeVerdict(
        card.stem, task.spec.name, "refused", (Objection("form", str(error)),), jail="none was needed",
        headers_sha256=headers_hash(task.catalogue.folder), task_sha256=task.hash, defences=("form of the submission",),
    )  # fmt: skip

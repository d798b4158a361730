"""`prism_bench.judge`: the verdict on a stranger's kernel, from Python."""

from collections.abc import Callable, Sequence
from pathlib import Path

from prism_bench.catalogue import Catalogue, of_project
from prism_bench.extensions.judge.on_gpu import OnGpu
from prism_bench.extensions.judge.submission import read_submission
from prism_bench.extensions.judge.trial import JudgeTask, SubmissionTrial
from prism_bench.extensions.judge.verdict import JudgeVerdict


def judge(
    submission: Path | str, task: str, *, catalogue: Catalogue | Path | str | None = None,
    architectures: Sequence[str] = (), trust_source: bool = False, gpu: bool = False,
    report: Callable[[str], None] = lambda words: None,
) -> JudgeVerdict:  # fmt: skip
    """Return the verdict on a submission: device code and a launch card, compiled and run on the emulator in a jail.

    Parameters
    ----------
    submission : Path or str
        The card, a TOML file, or a folder with one. Its source or its cubin is next to it.
    task : str
        A kernel of the catalogue: its reference, cases and tolerances are what the submission is judged by.
    catalogue : Catalogue, Path or str, optional
        A catalogue or its folder; that of the project by default, else the built-in one.
    architectures : sequence of str
        Compute capabilities that the source is compiled for, such as `90`; by default the GPU's, or 90 without one.
    trust_source : bool
        Use no jail: only for your own source.
    gpu : bool
        Launch and time it on the current GPU once it is right on the emulator, from a process that knows no outputs.
    report : callable
        Called with each step in words.

    Raises
    ------
    UsageError
        The submission, the catalogue or the task cannot be found.
    SpecError
        The card has something that none may have.
    BackendUnavailable
        No jail can be made here; with `gpu`, no GPU answers, or it is in quarantine.
    """
    found = catalogue if isinstance(catalogue, Catalogue) else of_project(Path(catalogue) if catalogue else None)
    taken, judged_by = read_submission(Path(submission)), JudgeTask(found.kernel(task), found)
    opened = OnGpu() if gpu else None
    chosen = tuple(architectures) or (opened.architecture if opened else "90",)
    return SubmissionTrial(taken, judged_by, chosen, not trust_source, report, gpu=opened).verdict()

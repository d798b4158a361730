"""`prism-bench judge`: whether a stranger's kernel is right, without trusting its author."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options
from prism_bench.errors import UsageError

if TYPE_CHECKING:
    from prism_bench.extensions.judge.task import JudgeTask
    from prism_bench.extensions.judge.verdict import JudgeVerdict


def command(
    submission: Annotated[
        Path,
        typer.Argument(metavar="CARD", help="Judge this card (a TOML file), the card of this folder, or all below it."),
    ],
    task: Annotated[str, typer.Argument(help="Judge by this kernel, or kernel:variant.")],
    arch: options.ArchitectureOption = None,
    trust_source: options.TrustOption = False,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Launch and time on the GPU what the emulator finds right.")
    ] = False,
    seed: options.SeedOption = None,
    output: options.OutputOption = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Judge a stranger's kernel without trusting its author.

    A submission is device code and a launch card, no host code. Its source is compiled and run on the CPU emulator in
    a jail: no network, a read-only root, limits of memory, processes and time. Outputs are compared with the task's
    reference outside of it. With --gpu it is launched from a process that knows no outputs, and timed. --output writes
    the verdict (.json) or its page (.html).

    Of a folder with more than one card, or with --output FOLDER, all cards below are judged. The folder of the
    verdicts, by default verdicts below the cards, gets a leaderboard.

    Ends with 1 where it is wrong or refused, 2 where no jail or GPU is there, 3 where not all could be launched.
    """
    from prism_bench.extensions.judge.judging import judge
    from prism_bench.extensions.judge.task import task_named

    opened = options.open_catalogue(catalogue)
    if submission.is_dir() and (_is_folder(output) or len([*submission.glob("*.toml")]) != 1):
        if output and not _is_folder(output):
            raise UsageError(f"--output {output[0]}: a folder of cards gets a folder of verdicts; name one")
        arguments = _passed_on(arch or (), trust_source, gpu, catalogue)
        judged_by = task_named(task, opened)
        results = options.writable_folder(output[0] if output else submission / "verdicts")
        raise SystemExit(_judge_many(submission, judged_by, results, arguments, secret=seed, json=json))
    forms = options.written_forms(output, (".json", ".html"))
    verdict = judge(
        submission,
        task,
        catalogue=opened,
        architectures=tuple(arch or ()),
        trust_source=trust_source,
        gpu=gpu,
        secret=seed,
        report=lambda step: options.remark(f"judging: {step}"),
    )
    _show(verdict, forms.get(".json"), forms.get(".html"), json=json)
    raise SystemExit(verdict.exit_code)


def _show(verdict: "JudgeVerdict", output: Path | None, page: Path | None, *, json: bool) -> None:
    """Write the verdict to the files that are not None, and print it."""
    from prism_bench.extensions.judge.verdict import page_html, verdict_json, verdict_view
    from prism_bench.io.documents import json_text
    from prism_bench.io.files import write_atomically

    if page:
        write_atomically(page, page_html(verdict).encode())
    if output:
        write_atomically(output, json_text(verdict_json(verdict)).encode())
    options.show(lambda: verdict_json(verdict), lambda: verdict_view(verdict), json=json)


def _is_folder(output: Sequence[Path] | None) -> bool:
    """Return whether `--output` names the folder of many verdicts."""
    return output is not None and len(output) == 1 and (output[0].is_dir() or not output[0].suffix)


def _passed_on(arch: Sequence[str], trust_source: bool, gpu: bool, catalogue: Path | None) -> list[str]:
    """Return the options for the command of each candidate."""
    from prism_bench.compilation.program import require_known

    require_known(arch)
    flags = [*(("--trust-source",) if trust_source else ()), *(("--gpu",) if gpu else ())]
    valued = [word for architecture in arch for word in ("--arch", architecture)]
    return [*flags, *valued, *(("--catalogue", str(catalogue)) if catalogue else ())]


def _judge_many(
    folder: Path, task: "JudgeTask", results: Path, arguments: Sequence[str], *, secret: int | None, json: bool
) -> int:
    """Judge every card of a folder, print the leaderboard, and return 3 if a candidate could not be judged.

    The command of each candidate gets `arguments`.
    """
    import msgspec
    from rich.text import Text

    from prism_bench.extensions.judge.batch import JudgeBatch, JudgingProcesses, leaderboard_lines, open_gpus, slots

    gpus = slots(open_gpus() if "--gpu" in arguments else [""])
    batch = JudgeBatch(
        folder, results, task.spec.name, arguments, gpus, JudgingProcesses(), options.remark, task.hash, secret
    )
    rows = batch.rows()
    options.remark(f"leaderboard: {results / 'index.html'}")
    options.show(lambda: msgspec.to_builtins(rows), lambda: Text("\n".join(leaderboard_lines(rows))), json=json)
    return 3 if any(row.ruling == "unchecked" for row in rows) else 0

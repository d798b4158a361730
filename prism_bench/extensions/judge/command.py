"""`prism-bench judge`: whether a stranger's kernel is right, without trusting its author."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options

if TYPE_CHECKING:
    from prism_bench.extensions.judge.task import JudgeTask
    from prism_bench.extensions.judge.verdict import JudgeVerdict


def command(
    submission: Annotated[Path, typer.Argument(help="Judge this card (a TOML file), or the folder with one.")],
    task: Annotated[str, typer.Option("--task", help="Judge by this kernel, or kernel:variant.")],
    arch: Annotated[
        list[str] | None, typer.Option(metavar="SM", help="Compile for it; default: the GPU's, or 90.")
    ] = None,
    trust_source: Annotated[bool, typer.Option("--trust-source", help="Use no jail: for your own source.")] = False,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Launch and time on the GPU what the emulator finds right.")
    ] = False,
    secret: Annotated[int | None, typer.Option(min=0, help="Draw seeds and sizes with that of a verdict.")] = None,
    many: Annotated[
        bool, typer.Option("--many", help="Judge all cards below; --output is the verdicts' folder.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the verdict to this file, too.")] = None,
    page: Annotated[Path | None, typer.Option("--html", help="Write the verdict as an HTML page to this file.")] = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Judge a stranger's kernel without trusting its author.

    A submission is device code and a launch card, no host code. Its source is compiled and run on the CPU emulator in
    a jail: no network, a read-only root, limits of memory, processes and time. Outputs are compared with the task's
    reference outside of it. With --gpu it is launched from a process that knows no outputs, and timed.

    Ends with 1 where it is wrong or refused, 2 where no jail or GPU is there, 3 where not all could be launched.
    """
    from prism_bench.extensions.judge.judging import judge
    from prism_bench.extensions.judge.task import task_named

    opened = options.open_catalogue(catalogue)
    if many:
        arguments = _passed_on(arch or (), trust_source, gpu, catalogue, page)
        judged_by = task_named(task, opened)
        raise SystemExit(_judge_many(submission, judged_by, output, arguments, secret=secret, json=json))
    verdict = judge(
        submission,
        task,
        catalogue=opened,
        architectures=tuple(arch or ()),
        trust_source=trust_source,
        gpu=gpu,
        secret=secret,
        report=lambda step: options.remark(f"judging: {step}"),
    )
    _show(verdict, output, page, json=json)
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


def _passed_on(
    arch: Sequence[str], trust_source: bool, gpu: bool, catalogue: Path | None, page: Path | None
) -> list[str]:
    """Return the options for the command of each candidate; raise a UsageError for `--html`."""
    from prism_bench.errors import UsageError
    from prism_bench.workflows.compile_table import require_known

    require_known(arch)
    if page:
        raise UsageError("--many writes a page for each card to the folder --output; --html is for one submission")
    flags = [*(("--trust-source",) if trust_source else ()), *(("--gpu",) if gpu else ())]
    valued = [word for architecture in arch for word in ("--arch", architecture)]
    return [*flags, *valued, *(("--catalogue", str(catalogue)) if catalogue else ())]


def _judge_many(
    folder: Path, task: "JudgeTask", output: Path | None, arguments: Sequence[str], *, secret: int | None, json: bool
) -> int:
    """Judge every card of a folder, print the leaderboard, and return 3 if a candidate could not be judged.

    The command of each candidate gets `arguments`.
    """
    import msgspec
    from rich.text import Text

    from prism_bench.errors import UsageError
    from prism_bench.extensions.judge.batch import JudgeBatch, JudgingProcesses, leaderboard_lines, open_gpus, slots

    if not folder.is_dir():
        raise UsageError(f"{folder}: --many takes a folder of cards")
    results = output or folder / "verdicts"
    gpus = open_gpus() if "--gpu" in arguments else slots()
    batch = JudgeBatch(
        folder, results, task.spec.name, arguments, gpus, JudgingProcesses(), options.remark, task.hash, secret
    )
    rows = batch.rows()
    options.remark(f"leaderboard: {results / 'index.html'}")
    options.show(lambda: msgspec.to_builtins(rows), lambda: Text("\n".join(leaderboard_lines(rows))), json=json)
    return 3 if any(row.ruling == "unchecked" for row in rows) else 0

"""`prism-bench check`: whether a record passes the gate."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import measuring, options

if TYPE_CHECKING:
    pass

NAME = "check"


def command(
    record: options.RecordArgument = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    markdown: Annotated[Path | None, typer.Option(help="Write Markdown for a pull request to this file.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
    github: Annotated[bool, typer.Option("--github", help="Print GitHub annotations as well.")] = False,
    alert: Annotated[
        bool, typer.Option("--alert", help="Alert the webhooks of PRISM_BENCH_WEBHOOK and PRISM_BENCH_SLACK_WEBHOOK.")
    ] = False,
    alert_state: Annotated[
        Path | None, typer.Option(help="Keep in this folder which alerts were sent; default: <runs>/../alerts.")
    ] = None,
    noise: measuring.NoiseOption = measuring.DEFAULT_NOISE,
    json: options.JsonOption = False,
) -> None:
    """Check a record against its budgets, baseline and history.

    Did it run well, are its budgets met, is it slower than the baseline, the last record or its own past?

    Ends with 2 where nothing could be judged. Unmeasured budgets count as neither met nor missed.
    """
    from prism_bench.io.documents import no_collection
    from prism_bench.report import gate
    from prism_bench.report.terminal import gate as terminal
    from prism_bench.workflows.pairs import judged

    kernels = options.open_catalogue(catalogue)
    state = alert_state or runs.parent / "alerts"
    with gate.failures(state, options.remark) if alert else nullcontext():
        with options.err().status("reading records"), no_collection():
            passed = judged(record, kernels, runs, noise)
        if json:
            options.print_json(gate.view(passed))
        else:
            options.out().print(terminal.view(passed), crop=False)
        gate.write_files(passed, markdown, junit)
    if github:  # on standard error where JSON is on the other stream: GitHub reads both
        for line in gate.lines(passed, kernels, Path.cwd()):
            typer.echo(line, err=json)
    if alert:
        gate.send(passed, state, options.remark)
    raise SystemExit(passed.exit_code)

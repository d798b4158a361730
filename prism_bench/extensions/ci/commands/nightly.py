"""`prism-bench nightly`: measure, check, alert, publish."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from prism_bench.analysis.compare import START
from prism_bench.cli import measuring, options, run
from prism_bench.cli.commands import refuse_replaced
from prism_bench.errors import UsageError
from prism_bench.io import project

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prism_bench.extensions.ci.nightly import NightlyPlan
    from prism_bench.extensions.ci.nightly.run import NightlyOutput, NightlyResult

CONTEXT = {"ignore_unknown_options": True}  # options of `run` are among the arguments
_CHOSEN_HERE = ("part", "output")  # options of `run`
_CHOSEN_AGAIN = ("cases", "filter", "processes", "peers", "json", "runs")  # by what measures undecided cases again

_RunArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUN]...", help="Pass these cases and options to prism-bench run; default: configured."),
]
_HistoryOption = Annotated[
    bool | None, typer.Option("--history/--no-history", help="Use the history: fetch it before, keep it afterwards.")
]


def command(
    run_arguments: _RunArgument = None,
    workers: measuring.WorkersOption = None,
    catalogue: options.CatalogueOption = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    output: options.SiteOption = Path("reports/site"),
    noise: measuring.NoiseOption = measuring.DEFAULT_NOISE,
    history: _HistoryOption = None,
    dry_run: options.DryRunOption = False,
    json: options.JsonOption = False,
) -> None:
    """Run the nightly job: measure, check, alert and publish.

    With --workers the kernels are shared among that many GPUs of one kind, and their records merged; default: those of
    the configuration, or one. It measures an unchanged commit too (with --processes 1-3 what did not change in one
    process), and cases that the check cannot decide in more processes. Alerts go to the webhooks of
    PRISM_BENCH_WEBHOOK and PRISM_BENCH_SLACK_WEBHOOK. Ctrl-C keeps what was measured.

    Ends as check does; with 2 also where no record, no pages or no history was written. Where the check finds nothing,
    the exit code of the run counts.
    """
    from prism_bench.extensions.ci.keeping import history_target
    from prism_bench.extensions.ci.keeping.history import root
    from prism_bench.extensions.ci.nightly import NightlyKeys, NightlyPlan
    from prism_bench.extensions.ci.nightly.run import nightly

    configuration = project.current()
    keys = configuration.section("nightly", NightlyKeys) if configuration else NightlyKeys()
    arguments = tuple(run_arguments or keys.run)
    asked = parsed(arguments)
    if workers and asked.on_fleet:  # the workers are those of the fleet
        arguments, workers = (*arguments, "--workers", str(workers)), None
        asked = parsed(arguments)
    kept = history_target(None).address if (keys.history if history is None else history) else None
    plan = NightlyPlan(
        root(),
        arguments,
        workers or keys.gpus,
        catalogue=catalogue,
        runs=runs,
        site=output,
        noise=noise,
        asv=keys.asv,
        history=kept,
        processes=asked.processes or START,
        options=asked.options,
    )
    if dry_run:
        _show_plan(plan, json=json)
        return
    if asked.backend is None:
        _require_gpu()
    opened = options.open_catalogue(catalogue)
    result = nightly(plan, opened, _output(json=json))
    _finish(result, json=json)
    raise SystemExit(result.exit_code)


@dataclass(frozen=True)
class ParsedRun:
    """Arguments of `prism-bench run`: how many `processes` at most, if named, which `options` but those and the cases.

    `backend` is that of the arguments, of the configuration or of a fleet; None if the default backend is taken.
    """

    processes: int | None
    options: tuple[str, ...]
    backend: str | None
    on_fleet: bool = False


def parsed(arguments: "Sequence[str]") -> ParsedRun:
    """Parse the arguments as `prism-bench run` would; refuse what it would refuse before anything is measured."""
    parser = typer.Typer(add_completion=False)
    parser.command(run.NAME)(run.command)
    refuse_replaced(run.NAME, arguments)
    context = typer.main.get_command(parser).make_context(f"prism-bench {run.NAME}", list(arguments))
    for name in _CHOSEN_HERE:
        if context.params.get(name) is not None:
            raise UsageError(f"--{name}: nightly chooses it, by --workers; leave it out")
    rest: list[str] = []
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name not in _CHOSEN_AGAIN and source and source.name == "COMMANDLINE":
            rest += _as_arguments(context.params[str(parameter.name)], parameter.opts, parameter.secondary_opts)
    configuration = project.current()
    named = context.params.get("backend") or (configuration.keys.backend if configuration else None)
    backend = named or ("cuda" if context.params.get("fleet") else None)
    count: measuring.ProcessCount | None = context.params["processes"]
    return ParsedRun(count.most if count else None, tuple(rest), backend, bool(context.params.get("fleet")))


def _as_arguments(value: object, names: "Sequence[str]", opposites: "Sequence[str]") -> list[str]:
    """Return an option with its value as a command line has it."""
    if isinstance(value, bool):
        return [(names if value else opposites)[0]]
    values = cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else [value]
    return [argument for value in values for argument in (names[0], str(value))]


def _require_gpu() -> None:
    """Raise UsageError if no GPU answers: the references would be timed in place of the kernels.

    A child looks, so that this process holds no device while its parts measure.
    """
    from prism_bench.io.workers import environment

    looks = "from prism_bench.backends import open_default; print(*open_default())"
    done = subprocess.run([sys.executable, "-c", looks], env=environment(), capture_output=True, text=True)
    if "backend numpy_reference, because" in done.stdout:
        reason = done.stdout.partition("because ")[2].partition(";")[0].strip()
        raise UsageError(
            f"nightly: nothing is measured, because {reason}, and {measuring.not_run('COMMIT')}; "
            "'prism-bench nightly --backend numpy_reference' times the references"
        )


def _show_plan(plan: "NightlyPlan", *, json: bool) -> None:
    logs = plan.root / ".prism-bench" / "nightly" / "logs" / "RUN"
    commands = list(plan.commands(logs))
    if json:
        options.print_json({"commands": commands, "gpus": plan.gpus, "site": str(plan.site), "history": plan.history})
        return
    for text in commands:
        options.line(text)


def _output(*, json: bool) -> "NightlyOutput":
    """Return what prints a nightly run; with `json` only sentences and progress, on standard error."""
    from prism_bench.extensions.ci.nightly.run import NightlyOutput, parts_progress
    from prism_bench.report.terminal import gate as terminal

    if json:
        return NightlyOutput(options.remark, parts_progress, lambda _: None)
    return NightlyOutput(
        options.remark,
        parts_progress,
        gate=lambda gate: options.out().print(terminal.view(gate), crop=False),
    )


def _finish(result: "NightlyResult", *, json: bool) -> None:
    """Print where the results are."""
    from prism_bench.report import gate as json_view

    places = {"record": result.record, "pages": result.page, "asv": result.asv, "logs": result.logs}
    if not json:
        for name, path in places.items():
            if path:
                options.line(f"{name}: {project.relative(path)}")
        return
    plain = {name: str(project.relative(path)) if path else None for name, path in places.items()}
    gate = json_view.view(result.gate) if result.gate else None
    options.print_json({"exit_code": result.exit_code, "interrupted": result.interrupted, **plain, "check": gate})

"""`prism-bench trend`: the course of every case over all records, and what boards of one kind of GPU differ by."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from prism_bench.cli import measuring, options
from prism_bench.errors import ResultsError, UsageError
from prism_bench.io import project

if TYPE_CHECKING:
    from prism_bench.record.store import History

NAME = "trend"
_RECENT = 30  # records after which a slowdown is no longer bad


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    metric: Annotated[list[str] | None, typer.Option(help=options.METRIC)] = None,
    machine: Annotated[list[str] | None, typer.Option(help=options.MACHINE)] = None,
    least: measuring.LeastOption = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    noise: measuring.NoiseOption = measuring.DEFAULT_NOISE,
    boards: Annotated[
        bool, typer.Option("--boards", help="Show what boards of one kind of GPU differ by, in place of steps.")
    ] = False,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Find the steps in every case's series, with their causes.

    --metric and --machine may be repeated. By default all times and energies are tested; code_bytes, registers and
    compile_seconds only with --metric. Ends with 1 where a kernel has become worse and still is.

    --boards shows anchors and factors of boards in one metric, cold_time by default, and how often one machine code on
    two boards is called changed; it ends with 1 where that is more often than promised.
    """
    from prism_bench.analysis.run_analysis import exit_code
    from prism_bench.analysis.trend import trend
    from prism_bench.analysis.trend.causes import findings, shifts
    from prism_bench.analysis.trend.series import chosen, kept_floors
    from prism_bench.report.terminal.gate import trend_json, trend_view

    if boards:
        floors = project.stored(measuring.DEFAULT_NOISE, project.current())
        steps = {"--least": least, "--noise": noise != floors}
        options.refuse({"CASES": cases, "--filter": filter, **steps}, "leave it out with --boards")
        _show_boards(metric or ("cold_time",), machine or (), runs, catalogue, json)
    if catalogue:
        raise UsageError(f"--catalogue {catalogue}: only --boards reads kernels; add that, or leave this out")
    if least is not None and not 0 < least < 1:
        raise UsageError(f"--least {least:g}: it must be between 0 and 1, such as 0.02 for 2 %")
    history = chosen(_read(runs), options.patterns(cases, filter), metric or (), machine or ())
    trends = trend(history, kept_floors(history, noise), least)
    if json:
        options.print_json(trend_json(trends, history, _RECENT))
    else:
        options.out().print(trend_view(trends, history, _RECENT), highlight=False, soft_wrap=True)
    raise SystemExit(exit_code(findings(shifts(trends.steps), _RECENT)))


def _show_boards(
    metrics: Sequence[str], machines: Sequence[str], runs: Path, catalogue: Path | None, json: bool
) -> NoReturn:
    """Show the boards of each kind of GPU in the metric, and end with 1 where A/A over them breaks its promise."""
    from prism_bench.analysis.boards import kinds
    from prism_bench.analysis.trend.series import chosen, require_metrics
    from prism_bench.report.terminal.gate import boards_json, boards_view
    from prism_bench.spec.metric import CODE

    if len(metrics) > 1:
        raise UsageError(f"--metric {metrics[1]}: boards are compared in one metric; give --metric once with --boards")
    (metric,) = metrics
    kernels = options.open_catalogue(catalogue).kernels
    anchors = {name: spec.ceiling for name, spec in kernels.items() if spec.ceiling}
    history = _read(runs)
    require_metrics(history, [metric])
    if metric in CODE:
        raise UsageError(f"--metric {metric}: a board does not change it; choose a time with --boards")
    gpu_kinds = list(kinds(chosen(history, machines=machines), metric, anchors))
    if not gpu_kinds:
        raise ResultsError(f"{runs}: no trusted {metric} of a known GPU and a known machine code")
    for problem in history.problems:
        options.remark(problem.reason, "yellow")
    options.show(lambda: boards_json(gpu_kinds), lambda: boards_view(gpu_kinds), json=json)
    raise SystemExit(1 if any(kind.broken for kind in gpu_kinds) else 0)


def _read(runs: Path) -> "History":
    """Return the history of the records below `runs`; an error where there is none."""
    from prism_bench.record import store

    with options.err().status("reading records") as status:
        show = lambda done, total: status.update(f"reading records: {done} of {total} new")  # noqa: E731
        history = store.read_history(runs, show)
    if not history.records:
        store.newest(runs)
        raise ResultsError(history.problems[0].reason)
    return history

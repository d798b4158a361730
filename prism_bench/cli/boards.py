"""`prism-bench boards`: what the boards of each kind of GPU differ by."""

from typing import Annotated

import typer

from prism_bench.cli import options
from prism_bench.errors import ResultsError, unknown

NAME = "boards"


def command(
    machine: Annotated[
        list[str] | None, typer.Option(help="Choose a machine by its name; may be repeated; default: all.")
    ] = None,
    metric: Annotated[str, typer.Option(help="Choose the metric that boards are compared in.")] = "cold_time",
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Show what boards of one kind of GPU differ by.

    Anchors and factors with intervals, and A/A over boards: how often one machine code on two boards is called changed.

    Ends with 1 where that is more often than promised.
    """
    from prism_bench.analysis.boards import kinds
    from prism_bench.analysis.trend.series import chosen
    from prism_bench.record import store
    from prism_bench.report.terminal.gate import boards_json, boards_view

    kernels = options.open_catalogue(catalogue).kernels
    anchors = {name: spec.ceiling for name, spec in kernels.items() if spec.ceiling}
    with options.err().status("reading records"):
        history = store.read_history(runs)
    if not history.records:
        store.newest(runs)
        raise ResultsError(history.problems[0].reason)
    if metric not in history.names("metric"):
        raise unknown("metric", metric, history.names("metric"))
    gpu_kinds = list(kinds(chosen(history, machines=machine or ()), metric, anchors))
    if not gpu_kinds:
        raise ResultsError(f"{runs}: no trusted {metric} of a known GPU and a known machine code")
    for problem in history.problems:
        options.remark(problem.reason, "yellow")
    options.show(lambda: boards_json(gpu_kinds), lambda: boards_view(gpu_kinds), json=json)
    raise SystemExit(1 if any(kind.broken for kind in gpu_kinds) else 0)

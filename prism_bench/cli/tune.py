"""`prism-bench tune`: the fastest way to launch each kernel on this machine."""

from collections.abc import Callable, Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import measuring, options
from prism_bench.cli.measuring import FleetOption, WorkersOption, progress_bar
from prism_bench.cli.options import TimeoutOption
from prism_bench.errors import UsageError
from prism_bench.io import files
from prism_bench.io.files import Saver, write_atomically

if TYPE_CHECKING:
    from prism_bench.catalogue import Catalogue
    from prism_bench.cli.measuring import DescribedBackend
    from prism_bench.spec.case import Case
    from prism_bench.workflows.tuning_session import Bench, TuningResult

NAME = "tune"


_StrategyOption = Annotated[
    str, typer.Option(help="Search with auto, exhaustive, or a strategy of kernel_tuner for large spaces.")
]
_BudgetOption = Annotated[
    int, typer.Option(min=2, help="Try so many configurations of a case; smaller spaces are tried whole.")
]
_RestampOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Measure nothing: keep what this file's choices launch unchanged since their commit."
    ),
]
_OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="Write the report as JSON to this file.")]


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    strategy: _StrategyOption = "auto",
    budget: _BudgetOption = 64,
    few: Annotated[int, typer.Option(min=1, help="Time so many of the best again, next to the default.")] = 3,
    processes: measuring.ProcessesOption = 5,
    timeout: TimeoutOption = 60.0,
    time_limit: options.TimeLimitOption = None,
    store: Annotated[Path, typer.Option(help="Set the folder of the choices.")] = Path("reports/tuning"),
    keep: Annotated[bool, typer.Option("--keep/--no-keep", help="Put the choices into the store.")] = True,
    noise: measuring.NoiseOption = measuring.DEFAULT_NOISE,
    output: _OutputOption = None,
    restamp: _RestampOption = None,
    fleet: FleetOption = None,
    workers: WorkersOption = None,
    json: options.JsonOption = False,
) -> None:
    """Tune how each kernel is launched on this machine.

    Every configuration that a spec's tune= allows is verified, then timed cold. The best few are timed again in fresh
    processes next to the default, and one is adopted only beyond the noise. Label S1 on a GPU, else S0.
    """
    from prism_bench.workflows import tuning_session as tuning

    if fleet and (restamp or time_limit):
        raise UsageError(f"{'--restamp' if restamp else '--time-limit'}: leave it out with --fleet")
    if restamp and output:
        raise UsageError(f"--output {output}: leave it out with --restamp, which makes no report")
    if restamp:
        return _restamp(restamp, options.open_catalogue(catalogue), json)
    plan = tuning.TuningPlan(strategy, budget, few, processes, time_limit)
    patterns, kernels = options.patterns(cases, filter), options.open_catalogue(catalogue)
    with files.held(), measuring.opened_place(fleet, workers, backend, kernels.folder, quiet=json) as place:
        if place.name == "numpy_reference":
            raise UsageError(
                "nothing is tuned: the backend numpy_reference runs references and launches no kernel; "
                "tune on a machine with a GPU"
            )
        tuning.require_readable(place.backend.facts(), store, noise)
        bench, chosen = _chosen(place.backend, kernels, patterns, label, timeout)
        save = Saver(_writing(bench, store if keep else None, output))
        if place.fleet:
            result = place.fleet.tune(bench, plan, chosen, noise, save)
        else:
            with progress_bar() as report:
                session = tuning.TuningSession(bench, place.backend.device, plan, report)
                result = session.run(chosen, noise, save)
        raise SystemExit(save.exit_code(_show(result, save.finish(result), json)))


def _restamp(path: Path, catalogue: "Catalogue", json: bool) -> None:
    """Bring the choices at the path up to date and print which were dropped."""
    from prism_bench.spec.workload import written
    from prism_bench.workflows.tuning_session import restamp

    result = restamp(path, catalogue)
    dropped = [
        {"kernel": choice.kernel, "workload": dict(choice.workload), "reason": why} for choice, why in result.dropped
    ]
    if json:
        return options.print_json({"kept": len(result.kept), "changed": result.changed, "dropped": dropped})
    for choice, why in result.dropped:
        options.line(f"dropped: {choice.kernel}[{written(choice.workload)}]: {why}")
    return options.line(f"choices: {path}, {len(result.kept)} kept, {result.changed} of them with a new hash")


def _writing(bench: "Bench", store: Path | None, output: Path | None) -> "Callable[[TuningResult], Path | None]":
    """Return what puts the choices into the store, if there is one, and the report into the file, if named."""
    from prism_bench.report.terminal.tuning import session_json
    from prism_bench.workflows import tuning_session as tuning

    def write(result: "TuningResult") -> Path | None:
        path = tuning.keep(result, bench, store) if store else None
        if output:
            plain = session_json(result.decisions, result.left, result.seconds)
            write_atomically(output, (dumps(plain, indent=1) + "\n").encode())
        return path

    return write


def _chosen(
    opened: "DescribedBackend",
    kernels: "Catalogue",
    patterns: Sequence[str],
    label: Sequence[str] | None,
    timeout: float,
) -> "tuple[Bench, list[Case]]":
    """Return the bench and the cases: the chosen ones, else those of every kernel and no variant."""
    from prism_bench.workflows.tuning_session import Bench

    labels = options.chosen_labels(label, ("S1",) if opened.name == "cuda" else ("S0",))
    cases = [case for case in kernels.cases(patterns, labels) if case.tunable and (patterns or not case.variant)]
    cases = [case for case in cases if not case.plan.refusal(opened.device)]
    if not cases:
        raise UsageError("none of these cases can be tuned: their specs have no tune=, or this device cannot run them")
    return Bench(opened.name, kernels, timeout), cases


def _show(result: "TuningResult", path: Path | None, json: bool) -> int:
    """Print the report; return 1 where a default has no time, 2 where time ran out."""
    from prism_bench.report.terminal.tuning import session_json, session_view

    if json:
        options.print_json(session_json(result.decisions, result.left, result.seconds))
    else:
        options.out().print(session_view(result.decisions, result.left, result.seconds))
        options.line(f"choices: {path or 'not kept'}")
    searches = [decision.searched for decision in result.decisions]
    broken = any(search.default.task in search.refused for search in searches)
    return 1 if broken else 0 if result.complete else 2

"""`prism-bench tune`: the way to launch each kernel on this machine that takes the least time or energy."""

from collections.abc import Callable, Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from prism_bench.cli import measuring, options
from prism_bench.cli.measuring import FleetOption, WorkersOption, progress_bar
from prism_bench.cli.options import TimeoutOption
from prism_bench.errors import UsageError
from prism_bench.extension import offered
from prism_bench.io import files, project
from prism_bench.io.files import Saver, write_atomically

if TYPE_CHECKING:
    from prism_bench.analysis.compare.selection import Least
    from prism_bench.catalogue import Catalogue
    from prism_bench.cli.measuring import DescribedBackend
    from prism_bench.spec.case import Case
    from prism_bench.workflows.tuning_session import Bench, TuningPlan, TuningResult

NAME = "tune"
BUDGET = 64  # configurations


_CasesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CASES]...",
        help="Tune these kernels, families or cases; default: all. Or bring a file of choices up to date, or show a "
        "file of policies, and measure nothing.",
    ),
]
_BudgetOption = Annotated[
    int, typer.Option(min=2, help="Try this many configurations of a case; smaller spaces are tried whole.")
]


def _least(text: object) -> Literal["time", "energy"]:
    """Return what the text names."""
    if text not in ("time", "energy"):
        raise typer.BadParameter(f"{text}: write time or energy")
    return "energy" if text == "energy" else "time"


_LeastOption = Annotated[
    Literal["time", "energy"],
    typer.Option(
        "--least", parser=_least, metavar="time|energy", help="Choose by the time of a launch, or by its energy."
    ),
]
_PrecisionOption = Annotated[
    bool,
    typer.Option(
        "--precision",
        help="Choose the cheapest precision of fused programs, on random inputs or on those of a NumPy FILE.npz.",
    ),
]
_PolicyOption = Annotated[
    bool, typer.Option("--policy", help="Measure which form of matmul, windows or batches is fastest here.")
]
_ToleranceOption = Annotated[
    float | None,
    typer.Option(help="Allow this error; default: that of the program, and 1e-3 of the largest element for a policy."),
]
_OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", callback=options.writable, help="Write the report as JSON to this file."),
]
_PROGRAM_LABEL, _POLICY_TOLERANCE = "S0", 1e-3


def command(
    cases: _CasesArgument = None,
    filter: options.FilterOption = None,
    precision: _PrecisionOption = False,
    policy: _PolicyOption = False,
    tolerance: _ToleranceOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    budget: _BudgetOption = BUDGET,
    least: _LeastOption = "time",
    processes: measuring.ProcessesOption = 5,
    timeout: TimeoutOption = 60.0,
    time_limit: options.TimeLimitOption = None,
    noise: measuring.NoiseOption = measuring.DEFAULT_NOISE,
    output: _OutputOption = None,
    fleet: FleetOption = None,
    workers: WorkersOption = None,
    json: options.JsonOption = False,
) -> None:
    """Tune how each kernel is launched on this machine.

    Every configuration that a spec's tune= allows is verified, then timed cold. The best few are timed again in fresh
    processes next to the default, and one is adopted only beyond the noise. Label S1 on a GPU, else S0. Choices are in
    reports/tuning.

    A FILE of choices needs no GPU: those whose launch changed since their commit are dropped, and the others are kept.
    """
    from prism_bench.workflows.tuning_session import TuningPlan

    names = options.patterns(cases, filter)
    path = None if precision else next((Path(name) for name in names if name.endswith((".json", ".gz"))), None)
    mode = "--precision" if precision else str(path or ("--policy" if policy else ""))
    if mode:
        others = {
            "--fleet": fleet,
            "--time-limit": time_limit,
            f"--output {output}": output,
            "--budget": budget != BUDGET,
            "--least": least != "time",
        }
        others |= {"--policy": policy and mode != "--policy", "--label": not precision and label}
        options.refuse(others, f"leave it out with {mode}")
    if tolerance is not None and not mode:
        raise UsageError(f"--tolerance {tolerance:g}: it is for --precision and --policy")
    if tolerance is not None and not tolerance > 0:
        raise UsageError(f"--tolerance is {tolerance:g}: an error greater than 0, such as 1e-3")
    if precision:
        raise SystemExit(_choose_precision(names, tolerance, label, backend, catalogue, timeout, json=json))
    if path:
        return _read_file(path, tolerance or _POLICY_TOLERANCE, catalogue, json=json)
    if policy:
        measure = _offered("policy mode", "--policy")
        most = tolerance or _POLICY_TOLERANCE
        raise SystemExit(measure(names, most, backend, catalogue, processes, timeout, json=json))
    if fleet and time_limit:
        raise UsageError("--time-limit: leave it out with --fleet")
    plan, kernels = TuningPlan(budget, processes, time_limit), options.open_catalogue(catalogue)
    with files.held(), measuring.opened_place(fleet, workers, backend, kernels.folder, quiet=json) as place:
        raise SystemExit(_tune(place, kernels, names, label, plan, timeout, noise, output, least, json=json))


def _tune(
    place: measuring.PairPlace,
    kernels: "Catalogue",
    names: Sequence[str],
    label: Sequence[str] | None,
    plan: "TuningPlan",
    timeout: float,
    noise: Path,
    output: Path | None,
    least: "Least",
    *,
    json: bool,
) -> int:
    """Tune the cases, keep and print the choices; return the exit code."""
    from prism_bench.workflows import tuning_session as tuning

    if place.name == "numpy_reference":
        raise UsageError(
            "nothing is tuned: the backend numpy_reference runs references and launches no kernel; "
            "tune on a machine with a GPU"
        )
    if least == "energy" and not place.fleet:
        measuring.require_energy(place.backend, "--least energy")
    store = project.stored(measuring.STORE, project.current())
    tuning.require_readable(place.backend.facts(), store, noise)
    bench, chosen = _chosen(place.backend, kernels, names, label, timeout, least)
    save = Saver(_writing(bench, store, output))
    if place.fleet:
        result = place.fleet.tune(bench, plan, chosen, noise, save)
    else:
        with progress_bar() as report:
            session = tuning.TuningSession(bench, place.backend.device, plan, report)
            result = session.run(chosen, noise, save)
    return save.exit_code(_show(result, save.finish(result), json))


def _offered(name: str, option: str) -> Callable[..., int]:
    """Return what an extension does for the option; a UsageError without that extension."""
    mode = offered(name)
    if mode is None:
        raise UsageError(f"{option}: no extension that does this is installed")
    return mode


def _choose_precision(
    names: Sequence[str],
    tolerance: float | None,
    label: Sequence[str] | None,
    backend: str | None,
    catalogue: Path | None,
    timeout: float,
    *,
    json: bool,
) -> int:
    """Choose the precision of the programs among the words; a word that ends in .npz is the file of their inputs."""
    samples = [Path(name) for name in names if name.endswith(".npz")]
    for option, values in (("--label", label or ()), ("inputs", samples)):
        if len(values) > 1:
            raise UsageError(f"{option} {values[1]}: one at a time, with --precision")
    choose = _offered("precision mode", "--precision")
    programs, sample = [name for name in names if not name.endswith(".npz")], next(iter(samples), None)
    return choose(programs, sample, tolerance, (label or [_PROGRAM_LABEL])[0], backend, catalogue, timeout, json=json)


def _read_file(path: Path, tolerance: float, catalogue: Path | None, *, json: bool) -> None:
    """Bring a file of choices up to date, or show measured policies."""
    from prism_bench.report.plain import measured_json
    from prism_bench.report.terminal.tuning import measured_view
    from prism_bench.workflows.file_kinds import POLICIES, kind_of, refuse_other
    from prism_bench.workflows.tuning.crossover import read_measured

    kind = kind_of(path)
    if kind and kind.name == POLICIES:
        if measured := read_measured(path):
            options.show(
                lambda: measured_json(measured, tolerance=tolerance),
                lambda: measured_view(measured, tolerance),
                json=json,
            )
        return
    refuse_other(path, kind, NAME)
    _restamp(path, options.open_catalogue(catalogue), json)


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


def _writing(bench: "Bench", store: Path, output: Path | None) -> "Callable[[TuningResult], Path | None]":
    """Return what puts the choices into the store, if there is one, and the report into the file, if named."""
    from prism_bench.report.terminal.tuning import session_json
    from prism_bench.workflows import tuning_session as tuning

    def write(result: "TuningResult") -> Path | None:
        path = tuning.keep(result, bench, store)
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
    least: "Least",
) -> "tuple[Bench, list[Case]]":
    """Return the bench and the cases: the chosen ones, else those of every kernel and no variant."""
    from prism_bench.workflows.tuning_session import Bench

    labels = options.chosen_labels(label, ("S1",) if opened.name == "cuda" else ("S0",))
    cases = [case for case in kernels.cases(patterns, labels) if case.tunable and (patterns or not case.variant)]
    cases = [case for case in cases if not case.plan.refusal(opened.device)]
    if not cases:
        raise UsageError("none of these cases can be tuned: their specs have no tune=, or this device cannot run them")
    return Bench(opened.name, kernels, timeout, least), cases


def _show(result: "TuningResult", path: Path | None, json: bool) -> int:
    """Print the report; return 1 where a default has no time, 2 where time ran out or this machine launches none."""
    from prism_bench.report.terminal.tuning import session_json, session_view

    if json:
        options.print_json(session_json(result.decisions, result.left, result.seconds))
    else:
        options.out().print(session_view(result.decisions, result.left, result.seconds))
        options.line(f"choices: {path or 'none is settled, none is kept'}")
    searches = [decision.searched for decision in result.decisions if not decision.searched.skipped]
    broken = any(search.default.task in search.refused for search in searches)
    return 1 if broken else 0 if result.complete and searches else 2

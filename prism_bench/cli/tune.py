"""`prism-bench tune`: how should each kernel be launched on this machine?"""

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from prism_bench import interrupts, options
from prism_bench.errors import UsageError
from prism_bench.files import write_atomically
from prism_bench.options import pairs
from prism_bench.options.progress import progress_bar
from prism_bench.saving import Saver

NAME = "tune"


def command(
    cases: Annotated[list[str] | None, typer.Argument(help="kernels, families or cases; all that can be tuned")] = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    strategy: Annotated[str, typer.Option(help="auto, exhaustive, or one of kernel_tuner's for large spaces")] = "auto",
    budget: Annotated[
        int, typer.Option(min=2, help="configurations to try of one case; smaller spaces are whole")
    ] = 64,
    few: Annotated[int, typer.Option(min=1, help="of the best, timed again beside the default")] = 3,
    processes: pairs.ProcessesOption = 5,
    timeout: Annotated[float, typer.Option(min=1, help="seconds one configuration may take in one process")] = 60.0,
    limit_seconds: Annotated[float | None, typer.Option(min=1, help="for all cases; what is decided is kept")] = None,
    store: Annotated[Path, typer.Option(help="where choices are kept")] = Path("reports/tuning"),
    keep: Annotated[bool, typer.Option("--keep/--dry-run", help="put the choices into the store")] = True,
    noise: pairs.NoiseOption = pairs.DEFAULT_NOISE,
    output: Annotated[Path | None, typer.Option(help="a file for the report as JSON besides")] = None,
    json: options.JsonOption = False,
) -> None:
    """Find how each kernel is launched best on this machine.

    Every configuration that a spec's tune= allows is verified, then timed cold. The best few are timed again in fresh
    processes beside the default, and one is adopted only beyond the noise. Label S1 on a GPU, else S0.
    """
    from prism_bench.studies import tuning_session as tuning

    plan = tuning.Plan(strategy, budget, few, processes, limit_seconds)
    opened = options.choose_backend(backend, quiet=json)
    tuning.require_readable(opened.facts(), store, noise)
    bench, chosen = _chosen(opened, options.open_catalogue(catalogue), cases, label, timeout)

    save = Saver(_writing(bench, store if keep else None, output))
    with interrupts.held():
        with progress_bar() as report:
            session = tuning.Tuning(bench, opened.device, plan, report).run(chosen, noise, save)
        path = save.finish(session)
        raise SystemExit(save.exit_code(_tell(session, path, json)))


def _writing(bench, store, output):
    """What puts the choices of a session into the store, if there is one, and its report into the file, if named."""
    from prism_bench.studies import tuning_session as tuning

    def write(session):
        path = tuning.keep(session, bench, store) if store else None
        _write(session, output)
        return path

    return write


def _chosen(opened, found, words, label, timeout):
    """The bench and the cases: those asked for, else every kernel's own and no variant."""
    from prism_bench.studies.trials import Bench

    labels = options.chosen_labels(label, ("S1",) if opened.name == "cuda" else ("S0",))
    cases = [case for case in found.cases(words or (), labels) if case.tunable and (words or not case.variant)]
    cases = [case for case in cases if not case.plan.refusal(opened.device)]
    if not cases:
        raise UsageError("none of these cases can be tuned: their specs have no tune=, or this device cannot run them")
    return Bench(opened.name, found, timeout), cases


def _write(session, output):
    from prism_bench.report.terminal.tuning import session_json

    if output:
        plain = session_json(session.decisions, session.left, session.seconds)
        write_atomically(output, (dumps(plain, indent=1) + "\n").encode())


def _tell(session, path, json):
    """Print the report; returns 1 where a default has no time, 2 where time ran out."""
    from prism_bench.report.terminal.tuning import session_json, session_view

    if json:
        options.print_json(session_json(session.decisions, session.left, session.seconds))
    else:
        options.out().print(session_view(session.decisions, session.left, session.seconds))
        options.out().print(f"choices: {path or 'not kept'}", highlight=False, soft_wrap=True)
    broken = [one for one in session.decisions if one.searched.default.task in one.searched.refused]
    return 1 if broken else 0 if session.complete else 2

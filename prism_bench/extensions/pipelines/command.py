"""`prism-bench pipeline`: kernels one after the other, verified, and what an evaluation takes in every form."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from prism_bench import interrupts, options
from prism_bench.options import pairs
from prism_bench.options.progress import progress_bar
from prism_bench.options.tuned import TunedOption, configured
from prism_bench.saving import Saver

NAME = "pipeline"
DEFAULT_KEPT = Path("reports/pipelines")


def command(
    names: Annotated[list[str] | None, typer.Argument(help="pipelines; those that are measured without")] = None,
    form: Annotated[list[str] | None, typer.Option(help="per_call, one_stream, streams, graph or allocating")] = None,
    label: Annotated[str | None, typer.Option("--label", "-l", help="S0, or small, as on the emulator")] = None,
    backend: options.BackendOption = None,
    processes: Annotated[int, typer.Option(min=1, help="fresh processes that measure")] = 3,
    verify_only: Annotated[bool, typer.Option("--verify-only", help="no times")] = False,
    tuned: TunedOption = True,
    limit_seconds: pairs.LimitOption = None,
    keep: Annotated[Path | None, typer.Option(help="folder for the record; on a GPU reports/pipelines")] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="show this record, or the newest below a folder")
    ] = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Verify and time pipelines of kernels. Ends with 1 where a stage or a result is wrong."""
    if source:
        raise SystemExit(_shown(_read(source), json))
    opened = options.choose_backend(backend, quiet=json)
    effort = (label or ("small" if opened.name == "emulator" else "S0"), processes, not verify_only, limit_seconds)
    launched = _launched(names, options.open_catalogue(catalogue), effort[0], opened, tuned)
    save = _saver(keep or (DEFAULT_KEPT if opened.name == "cuda" and not verify_only else None), launched[1])
    with interrupts.held():
        record = _measured(names, form, opened.name, launched, effort, save=save)
        path = save.finish(record)
        if path:
            options.err().print(f"record: {path}", highlight=False, soft_wrap=True)
        raise SystemExit(save.exit_code(_shown(record, json)))


def _shown(record, json):
    """Print the record; returns what it comes to, 2 where it is cut short."""
    from prism_bench.extensions.pipelines.lstm import STEPS
    from prism_bench.extensions.pipelines.report import pipelines_json, pipelines_view
    from prism_bench.extensions.pipelines.results import exit_code, phases, rows

    found = rows(record)
    if json:
        options.print_json(pipelines_json(found, phases(found, STEPS)))
    else:
        options.out().print(pipelines_view(found, phases(found, STEPS)))
    return exit_code(found)


def _read(source):
    from prism_bench import store
    from prism_bench.errors import ResultsError
    from prism_bench.extensions.pipelines.results import rows

    path = store.newest(source) if source.is_dir() else source
    record = store.read(path)
    if not rows(record):
        raise ResultsError(f"{path}: a record without pipelines; 'prism-bench show' shows records of kernels")
    return record


def _launched(names, catalogue, label, backend, tuned):
    """The catalogue with the choices for every stage, and what a record tells of them."""
    from prism_bench.extensions.pipelines import pipelines
    from prism_bench.extensions.pipelines.pipeline import placed

    stages = [one.case for pipeline in pipelines(names or ()) for one in placed(pipeline, label, catalogue)]
    found = configured(list(dict.fromkeys(stages)), backend, tuned)
    choices = {case.name: dict(case.choice) for case in found.cases if case.choice}
    return replace(catalogue, choices=choices), dict(found.told)


def _measured(names, forms, backend, launched, effort, *, save):
    from prism_bench.extensions.pipelines import pipelines
    from prism_bench.extensions.pipelines.worker import PLACE, tasks_of
    from prism_bench.run.task_run import ComparisonSide, TaskPlan, measure_sides

    catalogue, _ = launched
    label, processes, timed, limit = effort
    tasks = tasks_of(pipelines(names or ()), forms or _forms(backend), label, catalogue)
    with progress_bar() as report:
        plan = TaskPlan(catalogue, backend, tasks, PLACE, label, processes, timed, limit)
        keep = lambda records: save(records["pipelines"]) if records else None  # noqa: E731
        return measure_sides(plan, [ComparisonSide("pipelines")], report, keep)["pipelines"]


def _saver(folder, tuning):
    """What keeps every version of the record in the folder, if there is one."""
    from prism_bench import store

    place = store.RecordPlace(folder) if folder else None
    return Saver(lambda record: place.save(replace(record, tuning=tuning)) if place else None)


def _forms(backend):
    """Those that can run there."""
    from prism_bench.extensions.pipelines.forms import FORMS

    return FORMS if backend == "cuda" else ("per_call", "one_stream")

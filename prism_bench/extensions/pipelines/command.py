"""`prism-bench pipeline`: verifies chains of kernels and times an evaluation in every form."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism_bench.cli import measuring, options
from prism_bench.cli.measuring import TunedOption, configured, progress_bar
from prism_bench.io import files, project
from prism_bench.io.files import Saver

if TYPE_CHECKING:  # these take long to load
    from prism_bench.backends import Backend
    from prism_bench.catalogue import Catalogue
    from prism_bench.record.run_record import RunRecord
    from prism_bench.run.task_run import TaskPlan

DEFAULT_KEPT = Path("reports/pipelines")


_NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CASES]...", help="Choose pipelines by name; default: those that can be measured."),
]
_FormOption = Annotated[
    list[str] | None, typer.Option(help="Choose per_call, one_stream, streams, graph or allocating; repeatable.")
]
_LabelOption = Annotated[
    str | None, typer.Option("--label", "-l", help="Choose S0 or small; default: small on the emulator, else S0.")
]
_SourceOption = Annotated[
    Path | None, typer.Option("--from", help="Show this record, or the newest below a folder, and measure nothing.")
]


def command(
    names: _NamesArgument = None,
    filter: options.FilterOption = None,
    form: _FormOption = None,
    label: _LabelOption = None,
    backend: options.BackendOption = None,
    processes: measuring.ProcessesOption = 3,
    verify_only: Annotated[bool, typer.Option("--verify-only", help="Verify and take no times.")] = False,
    tuned: TunedOption = True,
    time_limit: options.TimeLimitOption = None,
    records: options.RecordsOption = None,
    source: _SourceOption = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Verify and time pipelines of kernels.

    Records of a GPU are kept in reports/pipelines. Ends with 1 where a stage or a result is wrong.
    """
    if source:
        raise SystemExit(_shown(_read(source), json))
    from prism_bench.extensions.pipelines.worker import PLACE
    from prism_bench.run.task_run import TaskPlan

    opened = options.choose_backend(backend, quiet=json)
    words = list(options.patterns(names, filter))
    label = label or ("small" if opened.name == "emulator" else "S0")
    found, tuning = _launched(words, options.open_catalogue(catalogue), label, opened, tuned)
    plan = TaskPlan(found, opened.name, (), PLACE, label, processes, timed=not verify_only, limit=time_limit)
    save = _saver(
        records
        or (project.stored(DEFAULT_KEPT, project.current()) if opened.name == "cuda" and not verify_only else None),
        tuning,
    )
    with files.held():
        record = _measured(words, form or _forms(opened.name), plan, save)
        path = save.finish(record)
        if path:
            options.err().print(f"record: {path}", highlight=False, soft_wrap=True)
        raise SystemExit(save.exit_code(_shown(record, json)))


def _shown(record: "RunRecord", json: bool) -> int:
    """Print the record; return the exit code."""
    from prism_bench.extensions.pipelines.definitions import STEPS
    from prism_bench.extensions.pipelines.results import exit_code, phases, pipelines_json, pipelines_view, rows

    found = rows(record)
    options.show(
        lambda: pipelines_json(found, phases(found, STEPS)),
        lambda: pipelines_view(found, phases(found, STEPS)),
        json=json,
    )
    return exit_code(found)


def _read(source: Path) -> "RunRecord":
    from prism_bench.errors import ResultsError
    from prism_bench.extensions.pipelines.results import rows
    from prism_bench.record import store

    path = store.newest(source) if source.is_dir() else source
    record = store.read(path)
    if not rows(record):
        raise ResultsError(f"{path}: a record without pipelines; 'prism-bench show' shows records of kernels")
    return record


def _launched(
    names: list[str], catalogue: "Catalogue", label: str, backend: "Backend", tuned: bool
) -> "tuple[Catalogue, dict[str, Any]]":
    """Return the catalogue with the choices for every stage, and what a record keeps of them."""
    from prism_bench.extensions.pipelines import pipelines
    from prism_bench.extensions.pipelines.pipeline import placed

    stages = [one.case for pipeline in pipelines(names) for one in placed(pipeline, label, catalogue)]
    found = configured(list(dict.fromkeys(stages)), backend, tuned)
    choices = {case.name: dict(case.choice) for case in found.cases if case.choice}
    return replace(catalogue, choices=choices), dict(found.facts)


def _measured(
    names: list[str], forms: Sequence[str], plan: "TaskPlan", save: "Callable[[RunRecord], None]"
) -> "RunRecord":
    from prism_bench.extensions.pipelines import pipelines
    from prism_bench.extensions.pipelines.worker import tasks_of
    from prism_bench.run.task_run import ComparisonSide, measure_sides

    def keep(records: "dict[str, RunRecord]") -> None:
        if records:
            save(records["pipelines"])

    plan = replace(plan, tasks=tasks_of(pipelines(names), forms, plan.label, plan.catalogue))
    with progress_bar() as report:
        return measure_sides(plan, [ComparisonSide("pipelines")], report, keep)["pipelines"]


def _saver(folder: Path | None, tuning: "dict[str, Any]") -> "Saver[RunRecord, Path | None]":
    """Return what saves each version of the record in the folder, if there is one."""
    from prism_bench.record import store

    place = store.RecordPlace(folder) if folder else None

    def write(record: "RunRecord") -> Path | None:
        return place.save(replace(record, tuning=tuning)) if place else None

    return Saver(write)


def _forms(backend: str) -> Sequence[str]:
    """Return the forms that can run on the backend."""
    from prism_bench.extensions.pipelines.pipeline import FORMS

    return FORMS if backend == "cuda" else ("per_call", "one_stream")

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

_DEFAULT_FOLDER = Path("reports/pipelines")

_NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CASES]...", help="Choose pipelines and forms by name; default: what can be measured."),
]
_LabelOption = Annotated[
    str | None, typer.Option("--label", "-l", help="Choose S0 or small; default: small on the emulator, else S0.")
]


def command(
    names: _NamesArgument = None,
    filter: options.FilterOption = None,
    label: _LabelOption = None,
    backend: options.BackendOption = None,
    processes: measuring.ProcessesOption = 3,
    verify_only: Annotated[bool, typer.Option("--verify-only", help="Verify and take no times.")] = False,
    tuned: TunedOption = None,
    time_limit: options.TimeLimitOption = None,
    records: options.RecordsOption = None,
    source: options.SourceOption = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Verify and time pipelines of kernels.

    Forms are per_call, one_stream, streams, graph and allocating. Records of a GPU are kept in reports/pipelines. Ends
    with 1 where a stage or a result is wrong.
    """
    if source:
        raise SystemExit(_shown(_read(source), json))
    from prism_bench.extensions.pipelines.pipeline import FORMS
    from prism_bench.extensions.pipelines.worker import PLACE
    from prism_bench.run.task_run import TaskPlan

    opened = options.choose_backend(backend, quiet=json)
    on_device = opened.name == "cuda"
    patterns = options.patterns(names, filter)
    chosen = [pattern for pattern in patterns if pattern not in FORMS]
    forms = [pattern for pattern in patterns if pattern in FORMS] or (
        FORMS if on_device else ("per_call", "one_stream")
    )
    label = label or ("small" if opened.name == "emulator" else "S0")
    launched, tuning = _launched(chosen, options.open_catalogue(catalogue), label, opened, tuned)
    plan = TaskPlan(launched, opened.name, (), PLACE, label, processes, timed=not verify_only, limit=time_limit)
    if not records and on_device and not verify_only:
        records = project.stored(_DEFAULT_FOLDER, project.current())
    save = _saver(records, tuning)
    with files.held():
        record = _measured(chosen, forms, plan, save)
        path = save.finish(record)
        if path:
            options.err().print(f"record: {path}", highlight=False, soft_wrap=True)
        raise SystemExit(save.exit_code(_shown(record, json)))


def _shown(record: "RunRecord", json: bool) -> int:
    """Print the record; return the exit code."""
    from prism_bench.extensions.pipelines.definitions import STEPS
    from prism_bench.extensions.pipelines.results import exit_code, phases, pipelines_json, pipelines_view, rows

    forms = rows(record)
    lstm = phases(forms, STEPS)
    options.show(lambda: pipelines_json(forms, lstm), lambda: pipelines_view(forms, lstm), json=json)
    return exit_code(forms)


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
    names: list[str], catalogue: "Catalogue", label: str, backend: "Backend", tuned: bool | None
) -> "tuple[Catalogue, dict[str, Any]]":
    """Return the catalogue with the choices for every stage, and their facts for the record."""
    from prism_bench.extensions.pipelines.definitions import pipelines
    from prism_bench.extensions.pipelines.pipeline import placed

    cases = [stage.case for pipeline in pipelines(names) for stage in placed(pipeline, label, catalogue)]
    configuration = configured(list(dict.fromkeys(cases)), backend, tuned)
    choices = {case.name: dict(case.choice) for case in configuration.cases if case.choice}
    return replace(catalogue, choices=choices), dict(configuration.facts)


def _measured(
    names: list[str], forms: Sequence[str], plan: "TaskPlan", save: "Callable[[RunRecord], None]"
) -> "RunRecord":
    from prism_bench.extensions.pipelines.definitions import pipelines
    from prism_bench.extensions.pipelines.worker import tasks_of
    from prism_bench.run.task_run import ComparisonSide, measure_sides

    def keep(records: "dict[str, RunRecord]") -> None:
        if records:
            save(records["pipelines"])

    plan = replace(plan, tasks=tasks_of(pipelines(names), forms, plan.label, plan.catalogue))
    with progress_bar() as report:
        return measure_sides(plan, [ComparisonSide("pipelines")], report, keep)["pipelines"]


def _saver(folder: Path | None, tuning: "dict[str, Any]") -> "Saver[RunRecord, Path | None]":
    """Return a saver of each version of the record in `folder`, if set."""
    from prism_bench.record import store

    place = store.RecordPlace(folder) if folder else None

    def write(record: "RunRecord") -> Path | None:
        return place.save(replace(record, tuning=tuning)) if place else None

    return Saver(write)

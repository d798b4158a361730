"""`python -m prism_bench.extensions.links`: the links between GPUs of one host, and a fused product against NCCL."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import measuring, options, run_guarded
from prism_bench.cli.commands import command_alone
from prism_bench.cli.measuring import progress_bar
from prism_bench.io import files, project
from prism_bench.io.files import Saver

if TYPE_CHECKING:  # slow imports
    from prism_bench.record.run_record import RunRecord

DEFAULT_KEPT = Path("reports/links")

_NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[CASES]...", help="Choose operations by name; default: all.")
]
_DevicesOption = Annotated[
    int | None, typer.Option("--devices", min=2, max=8, help="Use this many GPUs; default: all visible GPUs.")
]
_LabelOption = Annotated[
    list[str] | None,
    typer.Option("--label", "-l", help="Choose small, S0, S1 or S2; repeatable; default: all but small on a GPU."),
]


def command(
    names: _NamesArgument = None,
    filter: options.FilterOption = None,
    devices: _DevicesOption = None,
    label: _LabelOption = None,
    backend: options.BackendOption = None,
    processes: measuring.ProcessesOption = 3,
    verify_only: Annotated[bool, typer.Option("--verify-only", help="Verify and take no times.")] = False,
    time_limit: options.TimeLimitOption = None,
    records: options.RecordsOption = None,
    source: options.SourceOption = None,
    json: options.JsonOption = False,
) -> None:
    """Measure the links between the GPUs of this host.

    Records of GPUs are kept in reports/links. Ends with 1 if a result is wrong, with 2 if only one GPU is visible.
    """
    if source:
        raise SystemExit(_shown(_read(source), json))
    from prism_bench.extensions.links.operations import chosen
    from prism_bench.extensions.links.session import FAMILY
    from prism_bench.extensions.links.worker import PLACE
    from prism_bench.record import store
    from prism_bench.run.task_run import ComparisonSide, TaskPlan, measure_sides

    opened = options.choose_backend(backend, quiet=json)
    labels = options.chosen_labels(label, ("S0", "S1", "S2") if opened.name == "cuda" else ("small",))
    cases = chosen(options.patterns(names, filter), labels, devices or _visible(opened.name))
    tasks = tuple(case.task for case in cases)
    plan = TaskPlan(
        options.open_catalogue(None),
        opened.name,
        tasks,
        PLACE,
        ",".join(labels),
        processes,
        timed=not verify_only,
        limit=time_limit,
        family=FAMILY,
    )
    kept = opened.name == "cuda" and not verify_only
    folder = records or (project.stored(DEFAULT_KEPT, project.current()) if kept else None)
    place = store.RecordPlace(folder) if folder else None
    save: Saver[RunRecord, Path | None] = Saver(lambda record: place.save(record) if place else None)
    with files.held():
        with progress_bar() as report:
            records_by_side = measure_sides(
                plan, [ComparisonSide("links")], report, lambda made: save(made["links"]) if made else None
            )
        record = records_by_side["links"]
        path = save.finish(record) if any(case.status == "ok" for case in record.cases) else None
        if path:
            options.err().print(f"record: {path}", highlight=False, soft_wrap=True)
        raise SystemExit(save.exit_code(_shown(record, json)))


def _visible(backend: str) -> int:
    """Return the number of visible GPUs, but at least two, so that a single GPU is a reason in the result."""
    if backend != "cuda":
        return 2
    from prism_bench.monitor.nvml import devices, opened, visible

    with opened() as nvml:
        return max(2, len(visible(devices(nvml))))


def _shown(record: "RunRecord", json: bool) -> int:
    """Print the record; return the exit code."""
    from prism_bench.extensions.links.session import exit_code, links_json, links_view, rows

    links = rows(record)
    options.show(lambda: links_json(links), lambda: links_view(links), json=json)
    return exit_code(links)


def _read(source: Path) -> "RunRecord":
    from prism_bench.errors import ResultsError
    from prism_bench.extensions.links.session import rows
    from prism_bench.record import store

    path = store.newest(source) if source.is_dir() else source
    record = store.read(path)
    if not rows(record):
        raise ResultsError(f"{path}: a record without links; 'prism-bench show' shows records of kernels")
    return record


def main() -> None:
    """Run the command of this module; it ends as those of `prism-bench` do."""
    run_guarded(lambda arguments: command_alone(command)(arguments, prog_name="python -m prism_bench.extensions.links"))


if __name__ == "__main__":
    main()

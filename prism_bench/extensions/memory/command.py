"""`prism-bench memory`: counts what programs allocate, and compares allocators."""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import measuring, options
from prism_bench.cli.measuring import progress_bar
from prism_bench.errors import unknown
from prism_bench.io import files
from prism_bench.io.files import Saver
from prism_bench.io.installation import pip_install

if TYPE_CHECKING:  # these take long to load
    from prism_bench.doctor import Check
    from prism_bench.extensions.memory.replay import Contest
    from prism_bench.record.run_record import RunRecord
    from prism_bench.run.task_run import TaskPlan
    from prism_bench.run.task_worker import Programs


_CasesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CASES]...",
        help="Choose cupy, size_class, async, none or rmm, or read these trace files; default: all.",
    ),
]


def command(
    cases: _CasesArgument = None,
    processes: measuring.ProcessesOption = 5,
    time_limit: options.TimeLimitOption = None,
    records: options.RecordsOption = None,
    source: options.SourceOption = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Compare allocators on recorded traces and whole programs.

    Each is measured in turn with CuPy's own pool. Without trace files, pipelines and a run are recorded on the GPU.
    --from TRACE counts the allocations of a trace, which needs no GPU.

    Ends with 0 whichever is faster; 2 where nothing could be measured.
    """
    if source and not source.is_dir():
        _count(source, json)
        return
    if source:
        _print(_read(source), json)
        return
    from prism_bench.extensions.memory.pool import ALLOCATORS
    from prism_bench.extensions.memory.replay import contest, installed_programs
    from prism_bench.run.pool import worker_of
    from prism_bench.run.task_run import TaskPlan

    trace = [Path(word) for word in cases or () if Path(word).is_file()]
    allocator = [word for word in cases or () if not Path(word).is_file()]
    for name in allocator:
        if name not in ALLOCATORS:
            raise unknown("allocator", name, ALLOCATORS)
    begun, opened = time.perf_counter(), options.choose_backend("cuda", quiet=json).name
    save = Saver(_writer(records))
    with files.held():
        worker = worker_of("prism_bench.extensions.memory.worker")
        plan = TaskPlan(options.open_catalogue(catalogue), opened, (), worker, processes=processes)
        with tempfile.TemporaryDirectory() as folder:
            programs = installed_programs()
            traces = trace or _recorded(plan, records or Path(folder), programs)
            tasks = (*(f"replay:{path}" for path in traces), *(programs.names if programs else ()))
            plan = replace(plan, tasks=tasks, limit=time_limit and begun + time_limit - time.perf_counter())
            measured, missing = _measured(plan, allocator, save)
        for path in save.finish(measured) or []:
            options.err().print(f"record: {path}", highlight=False, soft_wrap=True)
        _print(contest(measured, missing), json)
        raise SystemExit(save.exit_code(0 if all(record.complete for record in measured.values()) else 2))


def _count(path: Path, json: bool) -> None:
    """Print the allocations that the trace has."""
    from prism_bench.extensions.memory import trace as traces
    from prism_bench.extensions.memory.replay import planned
    from prism_bench.extensions.memory.report import traces_json, tracked_view

    trace = traces.read(path)
    tracked, plan = trace.tracked(), planned(trace)
    options.show(
        lambda: traces_json([(trace, tracked, plan)]), lambda: tracked_view(trace.name, tracked, plan), json=json
    )


def _read(folder: Path) -> "Contest":
    from prism_bench.errors import ResultsError
    from prism_bench.extensions.memory.pool import ALLOCATORS
    from prism_bench.extensions.memory.replay import contest
    from prism_bench.record import store

    kept = [name for name in ALLOCATORS if (folder / name).is_dir()]
    if not kept:
        raise ResultsError(f"no records of allocators in {folder}; 'prism-bench memory --records FOLDER' makes them")
    records = {name: store.read(store.newest(folder / name)) for name in kept}
    return contest(records, {name: "not measured in these records" for name in ALLOCATORS if name not in kept})


def _measured(
    plan: "TaskPlan", allocators: list[str], save: "Callable[[dict[str, RunRecord]], None]"
) -> "tuple[dict[str, RunRecord], dict[str, str]]":
    """Return the records of the measured allocators, and the reasons of the missing ones."""
    from prism_bench.extensions.memory.pool import ALLOCATORS
    from prism_bench.extensions.memory.replay import BASE
    from prism_bench.run.task_run import ComparisonSide, measure_sides

    sides = [ComparisonSide(name, name) for name in dict.fromkeys([BASE, *(allocators or ALLOCATORS)])]
    with progress_bar() as report:
        records = measure_sides(plan, sides, report, save)
    return records, {side.name: side.missing for side in sides if side.missing}


def _recorded(plan: "TaskPlan", folder: Path, programs: "Programs | None") -> list[Path]:
    """Record traces of the installed programs and of a catalogue run; add one made at random."""
    from prism_bench.extensions.memory import trace
    from prism_bench.extensions.memory.trace import random_trace
    from prism_bench.run.task_run import ComparisonSide, measure_sides

    kept = (folder / "traces").resolve()
    side = ComparisonSide("recording")
    tasks = tuple(f"record:{what}={kept}" for what in (*(["programs"] if programs else []), "catalogue"))
    with files.allowed(), options.err().status("recording traces"):
        measure_sides(replace(plan, tasks=tasks, timed=False), [side])
    for failed in side.failures:
        options.err().print(f"not recorded: {failed.name}: {failed.reason}", soft_wrap=True)
    return [*map(Path, side.recorded), trace.save(random_trace(), kept / "random.json.gz")]


def _writer(folder: Path | None) -> "Callable[[dict[str, RunRecord]], list[Path]]":
    """Return a function that saves each version of the records below `folder`, if set, and returns their paths."""
    from prism_bench.record import store

    places: dict[str, store.RecordPlace] = {}

    def write(records: "dict[str, RunRecord]") -> list[Path]:
        for name in records if folder else ():
            places.setdefault(name, store.RecordPlace(Path(folder or ".") / name))
        return [places[name].save(record) for name, record in records.items() if name in places]

    return write


def _print(contest: "Contest", json: bool) -> None:
    from prism_bench.extensions.memory.report import contest_json, contest_view

    options.show(lambda: contest_json(contest), lambda: contest_view(contest), json=json)


def checks() -> "Iterator[Check]":
    """Yield a check of the doctor for each library of allocators, without its import, which could take seconds."""
    from prism_bench.doctor.checks import missing, works

    for module, cure in (("cupy", f"{pip_install('cuda13')}, or cuda12"), ("rmm", "install rmm-cu13")):
        if find_spec(module) is None:
            yield missing(f"allocators of {module}", "not installed; 'prism-bench memory' leaves them out", cure)
        else:
            yield works(f"allocators of {module}", "installed")

"""`prism-bench memory`: what programs ask memory for, and which allocator serves them best."""

import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from prism_bench import interrupts, options
from prism_bench.errors import UsageError
from prism_bench.options import pairs
from prism_bench.options.progress import progress_bar
from prism_bench.saving import Saver

NAME = "memory"
PROGRAMS = ("time_series:allocating", "image:allocating", "together:allocating")


def command(
    trace: Annotated[
        list[Path] | None,
        typer.Option(help="a recorded trace; without it pipelines and a catalogue run are recorded on the GPU"),
    ] = None,
    allocator: Annotated[
        list[str] | None, typer.Option(help="cupy, size_class, async, none or rmm; all without")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="the published tracker's demonstration, synthetic")] = False,
    count: Annotated[bool, typer.Option("--count", help="count what traces ask for and end: no GPU needed")] = False,
    processes: pairs.ProcessesOption = 5,
    limit_seconds: pairs.LimitOption = None,
    keep: Annotated[Path | None, typer.Option(help="folder for traces and records")] = None,
    source: Annotated[Path | None, typer.Option("--from", help="show the newest records of such a folder")] = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Compare allocators on recorded traces and whole programs.

    Each with CuPy's own pool, in processes in turn.

    Ends with 0 whichever is faster; 2 where nothing could be measured.
    """
    if demo or count:
        _count(demo, trace or [], json)
        return
    if source:
        _tell(_read(source), json)
        return
    from prism_bench.extensions.memory.contest import contest

    begun, opened = time.perf_counter(), options.choose_backend("cuda", quiet=json).name
    save = Saver(_writing(keep))
    with interrupts.held():
        with tempfile.TemporaryDirectory() as folder:
            rest = options.open_catalogue(catalogue), opened, processes, limit_seconds and begun + limit_seconds
            records, missing = _measured(trace, allocator, rest, keep or Path(folder), save=save)
        _name(save.finish(records))
        _tell(contest(records, missing), json)
        raise SystemExit(save.exit_code(0 if all(record.complete for record in records.values()) else 2))


def _count(demo, paths, json):
    if not (demo or paths):
        raise UsageError("--count: which traces? Name them with --trace FILE; 'prism-bench memory --keep' makes some")
    from prism_bench.extensions.memory import trace as traces
    from prism_bench.extensions.memory.books import planned
    from prism_bench.extensions.memory.report import traces_json, tracked_view
    from prism_bench.extensions.memory.tracker import published_demo

    read = [traces.read(path) for path in paths]
    found = [(one, one.tracked(), planned(one)) for one in read]
    if json:
        options.print_json({**({"published_demo": published_demo().plain()} if demo else {}), **traces_json(found)})
        return
    if demo:
        options.out().print(tracked_view("published demo", published_demo()))
    for one, tracked, plan in found:
        options.out().print(tracked_view(one.name, tracked, plan))


def _read(folder):
    from prism_bench import store
    from prism_bench.errors import ResultsError
    from prism_bench.extensions.memory.contest import contest
    from prism_bench.extensions.memory.names import ALLOCATORS

    kept = [name for name in ALLOCATORS if (folder / name).is_dir()]
    if not kept:
        raise ResultsError(f"no records of allocators in {folder}; 'prism-bench memory --keep FOLDER' makes them")
    records = {name: store.read(store.newest(folder / name)) for name in kept}
    return contest(records, {name: "not measured in these records" for name in ALLOCATORS if name not in kept})


def _measured(paths, allocators, rest, folder, *, save):
    """Records by allocator, and by allocator why there is none; the time that recording takes counts too."""
    from prism_bench.extensions.memory.contest import BASE
    from prism_bench.extensions.memory.names import ALLOCATORS
    from prism_bench.extensions.pipelines.run import Plan, Side, measure

    catalogue, backend, processes, end = rest
    traces = paths or _recorded(catalogue, backend, folder)
    names = list(dict.fromkeys([BASE, *(allocators or ALLOCATORS)]))
    sides = [Side(name, name) for name in names]
    tasks = (*(f"replay:{path}" for path in traces), *PROGRAMS)
    left = None if end is None else end - time.perf_counter()
    with progress_bar() as report:
        records = measure(Plan(catalogue, backend, tasks, "S0", processes, limit=left), sides, report, save)
    return records, {side.name: side.missing for side in sides if side.missing}


def _recorded(catalogue, backend, folder):
    """The traces of the pipelines and of a catalogue run, with one made at random beside them."""
    from prism_bench.extensions.memory import trace
    from prism_bench.extensions.memory.synthetic import random_trace
    from prism_bench.extensions.pipelines.run import Plan, Side, measure

    kept = (folder / "traces").resolve()
    side = Side("recording")
    tasks = (f"record:pipelines={kept}", f"record:catalogue={kept}")
    with interrupts.allowed(), options.err().status("recording traces"):
        measure(Plan(catalogue, backend, tasks, timed=False), [side])
    for failed in (one for results in side.results.values() for one in results):
        options.err().print(f"not recorded: {failed.name}: {failed.reason}", soft_wrap=True)
    return [*map(Path, side.recorded), trace.save(random_trace(), kept / "random.json.gz")]


def _name(paths):
    for path in paths or ():
        options.err().print(f"record: {path}", highlight=False, soft_wrap=True)


def _writing(folder):
    """What keeps every version of the records below the folder, if there is one; it returns their paths."""
    from prism_bench import store

    places = {}

    def write(records):
        for name in records if folder else ():
            places.setdefault(name, store.RecordPlace(folder / name))
        return [places[name].save(record) for name, record in records.items() if name in places]

    return write


def _tell(found, json):
    from prism_bench.extensions.memory.report import contest_json, contest_view

    if json:
        options.print_json(contest_json(found))
    else:
        options.out().print(contest_view(found))

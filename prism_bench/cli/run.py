"""`prism-bench run`: the main job."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from prism_bench import interrupts, options, saving
from prism_bench.errors import PrismBenchError
from prism_bench.monitor.sampler import HERTZ
from prism_bench.options.progress import progress_bar
from prism_bench.options.tuned import TunedOption, configured

NAME = "run"
PartOption = Annotated[
    str | None,
    typer.Option(metavar="I/N", help="only the I-th of N shares of the kernels, each with its variants; see merge"),
]


def command(
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    processes: Annotated[int, typer.Option(min=1, help="fresh processes that measure every case")] = 3,
    lanes: options.LanesOption = None,
    seed: Annotated[int, typer.Option(help="of the order of cases")] = 0,
    timeout: Annotated[float, typer.Option(min=1, help="seconds one case may take in one process")] = 180.0,
    peers: Annotated[bool, typer.Option(help="time the library peers beside the kernels")] = True,
    hertz: Annotated[float, typer.Option(min=0, max=100, help="how often the GPU's state is read; 0: never")] = HERTZ,
    tuned: TunedOption = True,
    energy: Annotated[bool, typer.Option(help="measure the energy of one launch of S1")] = True,
    part: PartOption = None,
    output: Annotated[Path | None, typer.Option(help="file, not <runs>/<machine>/<UTC>-<commit>.json.gz")] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Verify, then time every case, and write one run record. Labels: S0 off the GPU."""
    from prism_bench.run import Settings, Watching, lanes_for, run, share

    opened = options.choose_backend(backend, quiet=json)
    found = options.open_catalogue(catalogue)
    labels = options.chosen_labels(label, ("S0", "S1", "S2") if opened.name == "cuda" else ("S0",))
    cases = found.cases(filter or (), labels)
    chosen = configured(share(cases, part) if part is not None else cases, opened, tuned)
    settings = Settings(
        processes=processes, lanes=lanes or lanes_for(opened.name), seed=seed, timeout=timeout, peers=peers,
        watching=Watching(hertz=hertz, energy=energy),
    )  # fmt: skip
    keep = saving.Saver(_writing(output, runs, dict(chosen.told)))
    with interrupts.held():
        with progress_bar() as report:
            record = run(found, opened.name, list(chosen.cases), settings, report, keep=keep)
        raise SystemExit(_finish(record, keep, found, json))


def _finish(record, keep, found, json):
    """Keep the record and print it, whether or not it could be kept; returns the exit code."""
    if not record.cases:
        raise PrismBenchError("the run was ended before anything was measured, so there is no record")
    path = keep.finish(record)
    _tell(record, found, json)
    if path and not json:
        options.out().print(f"record: {path}", highlight=False, soft_wrap=True)
    return keep.exit_code(_code(record, found))


def _writing(output, runs, tuning):
    """What writes the record, with the choices that its launches were tuned by, to its place."""
    from prism_bench import store

    place = store.RecordPlace(runs, output)
    return lambda record: place.save(replace(record, tuning=tuning))


def _tell(record, found, json):
    from prism_bench.report.json_view import view
    from prism_bench.report.terminal.record import summary_view

    if json:
        options.print_json(view(record, found))
    else:
        options.out().print(summary_view(record, found))


def _code(record, found):
    """Return 2 where the run was cut short or had no cache, else what the findings come to: 1 or 3 where one is bad."""
    from prism_bench.analysis.findings import exit_code
    from prism_bench.analysis.reading import read

    if not record.complete or options.cache_was_refused(record):
        return 2
    return 1 if found.problems else exit_code(read(record, found).findings)

"""`prism-bench run`: the main job."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from prism_bench import interrupts, options, saving
from prism_bench.catalogue import Catalogue
from prism_bench.errors import PrismBenchError
from prism_bench.monitor.sampler import HERTZ
from prism_bench.options import pairs
from prism_bench.options.announcement import EarlierRecords, RunPlan, announce
from prism_bench.options.limits import CASE_SECONDS, TimeoutOption
from prism_bench.options.progress import progress_bar
from prism_bench.options.shards import add_to_shards
from prism_bench.options.tuned import TunedOption, configured
from prism_bench.run_record import RunRecord

NAME = "run"


_PeerTimeoutOption = Annotated[
    float, typer.Option("--peer-timeout", min=1, help="End the process of a peer that is silent for so many seconds.")
]
_SeedOption = Annotated[int, typer.Option(help="Set the seed of the random order.")]
_PeersOption = Annotated[bool, typer.Option(help="Time the library peers next to the kernels.")]
_HertzOption = Annotated[
    float, typer.Option(min=0, max=100, help="Read the GPU's state so often in a second; 0: never.")
]
_EnergyOption = Annotated[bool, typer.Option(help="Measure the energy of one launch of S1.")]
_FirstCallsOption = Annotated[
    bool, typer.Option("--all-first-calls", help="Measure the first calls of code whose first call was recorded, too.")
]
_PartOption = Annotated[
    str | None,
    typer.Option(metavar="I/N", help="Run the I-th of N shares of the kernels, with their variants; see merge."),
]
_OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write this file, not <runs>/<machine>/<UTC>-<commit>.json.gz.")
]


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    processes: pairs.ProcessesOption = 3,
    lanes: options.LanesOption = None,
    seed: _SeedOption = 0,
    timeout: TimeoutOption = CASE_SECONDS,
    peer_timeout: _PeerTimeoutOption = 60.0,
    peers: _PeersOption = True,
    hertz: _HertzOption = HERTZ,
    tuned: TunedOption = True,
    energy: _EnergyOption = True,
    all_first_calls: _FirstCallsOption = False,
    part: _PartOption = None,
    output: _OutputOption = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Verify and time every case, and write one run record. Labels are S0, S1 and S2 on a GPU, else S0."""
    from prism_bench.run import Settings, Watching, known_code, lanes_for, run, share, with_ceilings

    opened = options.choose_backend(backend, quiet=json)
    found = options.open_catalogue(catalogue)
    listed = found.cases(options.patterns(cases, filter), options.chosen_labels(label, _labels_on(opened.name)))
    chosen = configured(share(listed, part) if part is not None else listed, opened, tuned)
    earlier = EarlierRecords(runs, opened)
    settings = Settings(
        processes=processes, lanes=lanes or lanes_for(opened.name), seed=seed, timeout=timeout, peers=peers,
        peer_timeout=peer_timeout, watching=Watching(hertz=hertz, energy=energy),
        known_code={} if all_first_calls else known_code(earlier, opened.facts()),
    )  # fmt: skip
    keep = saving.Saver(_writing(output, runs, dict(chosen.facts)))
    plan = RunPlan(with_ceilings(found, opened.name, chosen.cases), len(chosen.cases), settings)
    with interrupts.held():
        with progress_bar(announce(plan, opened, earlier, quiet=json)) as report:
            record = run(found, opened.name, list(chosen.cases), settings, report, keep=keep)
        raise SystemExit(_finish(record, keep, found, json))


def _labels_on(backend: str) -> tuple[str, ...]:
    """Return the labels of a run that chooses none."""
    return ("S0", "S1", "S2") if backend == "cuda" else ("S0",)


def _finish(record: RunRecord, keep: "saving.Saver[RunRecord, Path]", found: Catalogue, json: bool) -> int:
    """Keep the record and print it, whether or not it could be kept; return the exit code."""
    from prism_bench.report.json_view import view
    from prism_bench.report.terminal.record import summary_view

    if not record.cases:
        raise PrismBenchError("the run was ended before anything was measured, so there is no record")
    path = keep.finish(record)
    add_to_shards([path] if path else [])
    if json:
        options.print_json(view(record, found))
    else:
        options.out().print(summary_view(record, found))
    if path and not json:
        options.line(f"record: {path}")
    return keep.exit_code(_code(record, found))


def _writing(output: Path | None, runs: Path, tuning: dict[str, object]) -> Callable[[RunRecord], Path]:
    """Return what writes the record to its place, with the choices that its launches were tuned by."""
    from prism_bench import store

    place = store.RecordPlace(runs, output)
    return lambda record: place.save(replace(record, tuning=tuning))


def _code(record: RunRecord, found: Catalogue) -> int:
    """Return 2 where the run was cut short or had no cache, else 1 or 3 where a finding is bad."""
    from prism_bench.analysis.findings import exit_code
    from prism_bench.analysis.reading import read

    if not record.complete or options.was_hindered(record):
        return 2
    return 1 if found.problems else exit_code(read(record, found).findings)

"""`prism-bench run`: the main job."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism_bench.catalogue import Catalogue
from prism_bench.cli import measuring, options
from prism_bench.cli.measuring import (
    DescribedBackend,
    EarlierRecords,
    FleetOption,
    RunPlan,
    TunedOption,
    WorkersOption,
    announce,
    configured,
    opened_fleet,
    progress_bar,
)
from prism_bench.cli.options import CASE_SECONDS, TimeoutOption, add_to_shards
from prism_bench.errors import PrismBenchError, UsageError
from prism_bench.io import files
from prism_bench.monitor.sampler import HERTZ
from prism_bench.record.run_record import RunRecord

if TYPE_CHECKING:
    from prism_bench.run import Settings
    from prism_bench.spec.case import Case
    from prism_bench.workflows.tuning.choice import Applied

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
    processes: measuring.ProcessesOption = 3,
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
    fleet: FleetOption = None,
    workers: WorkersOption = None,
    output: _OutputOption = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Verify and time every case, and write one run record. Labels are S0, S1 and S2 on a GPU, else S0."""
    chosen = _Chosen(options.patterns(cases, filter), label, catalogue, part, tuned)
    watching = {"hertz": hertz, "energy": energy}
    effort = _Effort(processes, lanes, seed, timeout, peers, peer_timeout, watching, all_first_calls)
    place = _RecordOutput(output, runs, json)
    if fleet is None and workers is not None:
        raise UsageError(f"--workers {workers}: it is for --fleet")
    raise SystemExit(
        _here(backend, chosen, effort, place)
        if fleet is None
        else _on_fleet((fleet, workers, backend or "cuda"), chosen, effort, place)
    )


@dataclass(frozen=True)
class _Chosen:
    """Which cases are measured, and whether as they were tuned."""

    patterns: tuple[str, ...]
    labels: list[str] | None
    catalogue: Path | None
    part: str | None
    tuned: bool

    def cases(self, found: Catalogue, backend: DescribedBackend) -> "Applied":
        """Return the cases of the catalogue as the backend launches them."""
        from prism_bench.run import share

        listed = self.listed(found, backend.name)
        return configured(share(listed, self.part) if self.part is not None else listed, backend, self.tuned)

    def listed(self, found: Catalogue, backend: str) -> "Sequence[Case]":
        """Return the cases that the names and labels choose; an error names what is unknown."""
        return found.cases(self.patterns, options.chosen_labels(self.labels, _labels_on(backend)))


@dataclass(frozen=True)
class _Effort:
    """How the cases are measured, as the options say."""

    processes: int
    lanes: int | None
    seed: int
    timeout: float
    peers: bool
    peer_timeout: float
    watching: dict[str, Any]
    all_first_calls: bool

    def settings(self, backend: DescribedBackend, earlier: EarlierRecords) -> "Settings":
        """Return the settings of the run."""
        from prism_bench.run import Settings, Watching, known_code, lanes_for, verification_seconds

        return Settings(
            processes=self.processes,
            lanes=self.lanes or lanes_for(backend.name),
            seed=self.seed,
            timeout=self.timeout,
            peers=self.peers,
            peer_timeout=self.peer_timeout,
            watching=Watching(**self.watching),
            known_code={} if self.all_first_calls else known_code(earlier, backend.facts()),
            known_seconds=verification_seconds(earlier, backend.name),
        )


@dataclass(frozen=True)
class _RecordOutput:
    """Where the record goes, and whether it is printed as JSON."""

    output: Path | None
    runs: Path
    json: bool

    def saver(self, chosen: "Applied") -> "files.Saver[RunRecord, Path]":
        """Return what keeps every version of the record, with the choices that its launches were tuned by."""
        return files.Saver(_writing(self.output, self.runs, dict(chosen.facts)))


def _here(backend: str | None, choice: _Chosen, effort: _Effort, place: _RecordOutput) -> int:
    """Measure on the GPU of this process; return the exit code."""
    from prism_bench.run import run, with_ceilings

    opened = options.choose_backend(backend, quiet=place.json)
    found = options.open_catalogue(choice.catalogue)
    chosen, earlier = choice.cases(found, opened), EarlierRecords(place.runs, opened)
    settings, keep = effort.settings(opened, earlier), place.saver(chosen)
    plan = RunPlan(with_ceilings(found, opened.name, chosen.cases), len(chosen.cases), settings)
    with files.held():
        with progress_bar(announce(plan, opened, earlier, quiet=place.json)) as report:
            record = run(found, opened.name, list(chosen.cases), settings, report, keep=keep)
        return _finish(record, keep, found, place.json)


def _on_fleet(words: tuple[str, int | None, str], choice: _Chosen, effort: _Effort, place: _RecordOutput) -> int:
    """Measure on every board of the fleet that the words name, with its workers and backend; return the exit code."""
    from prism_bench.run import with_ceilings

    fleet, workers, backend = words
    found = options.open_catalogue(choice.catalogue)
    choice.listed(found, backend)  # what is unknown is refused before workers start
    with files.held():
        with opened_fleet(fleet, workers, backend, found.folder, quiet=place.json) as opened:
            chosen, earlier = choice.cases(found, opened.backend), EarlierRecords(place.runs, opened.backend)
            settings, keep = effort.settings(opened.backend, earlier), place.saver(chosen)
            plan = RunPlan(with_ceilings(found, backend, chosen.cases), len(chosen.cases), settings)
            announce(plan, opened.backend, earlier, quiet=place.json, boards=opened.boards)
            record = opened.run(found, chosen.cases, settings, effort.lanes, earlier, keep)
        return _finish(record, keep, found, place.json)


def _labels_on(backend: str) -> tuple[str, ...]:
    """Return the labels of a run that chooses none."""
    return ("S0", "S1", "S2") if backend == "cuda" else ("S0",)


def _finish(record: RunRecord, keep: "files.Saver[RunRecord, Path]", found: Catalogue, json: bool) -> int:
    """Keep the record and print it, whether or not it could be kept; return the exit code."""
    from prism_bench.report.plain import view
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
    from prism_bench.record import store

    place = store.RecordPlace(runs, output)
    return lambda record: place.save(replace(record, tuning=tuning))


def _code(record: RunRecord, found: Catalogue) -> int:
    """Return 2 where the run was cut short or had no cache, else 1 or 3 where a finding is bad."""
    from prism_bench.analysis.run_analysis import exit_code, read

    if not record.complete or options.was_hindered(record):
        return 2
    return 1 if found.problems else exit_code(read(record, found).findings)

"""`prism-bench run`: the main job."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.analysis.compare import START
from prism_bench.cli import measuring, options
from prism_bench.cli.measuring import (
    DescribedBackend,
    EarlierRecords,
    FleetOption,
    TunedOption,
    WorkersOption,
    announce,
    configured,
    opened_fleet,
    progress_bar,
)
from prism_bench.cli.options import CASE_SECONDS, TimeoutOption, add_to_shards
from prism_bench.errors import PrismBenchError, UsageError
from prism_bench.io import files, project
from prism_bench.monitor.sampler import HERTZ

if TYPE_CHECKING:
    from prism_bench.backends import Backend
    from prism_bench.catalogue import Catalogue
    from prism_bench.record.run_record import RunRecord
    from prism_bench.run import Carrier, Settings
    from prism_bench.spec.case import Case

NAME = "run"


_PeersOption = Annotated[bool, typer.Option(help="Time the library peers next to the kernels.")]
_EnergyOption = Annotated[
    bool | None, typer.Option("--energy/--no-energy", help="Measure the energy of one launch of S1; default: on a GPU.")
]


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    processes: measuring.RangeOption = None,
    lanes: options.LanesOption = None,
    seed: options.SeedOption = 0,
    timeout: TimeoutOption = CASE_SECONDS,
    peers: _PeersOption = True,
    interval: measuring.IntervalOption = 1 / HERTZ,
    tuned: TunedOption = None,
    energy: _EnergyOption = None,
    all: options.AllOption = False,
    part: options.PartOption = None,
    fleet: FleetOption = None,
    workers: WorkersOption = None,
    output: options.RecordFileOption = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Verify and time every case, and write one run record. Labels are S0, S1 and S2 on a GPU, else S0.

    A peer that is silent for a third of --timeout is ended. On a GPU a kernel is verified, and its first call measured,
    only where something changed since it was here, and once in three weeks; with --all always. With --processes 1-3
    an unchanged case is a control, measured once; three times where its time is in doubt, and once a week.
    """
    from prism_bench.run import run, share, with_ceilings

    opened = _opened(backend, fleet, workers, quiet=json)
    name = opened.name if opened else backend or "cuda"
    kernels = options.open_catalogue(catalogue)
    labels = options.chosen_labels(label, ("S0", "S1", "S2") if name == "cuda" else ("S0",))
    listed = kernels.cases(options.patterns(cases, filter), labels)  # unknown names are refused before workers start
    settings = _settings(processes, interval, energy=energy, controls=fleet is None and name == "cuda" and not all)
    settings = replace(settings, seed=seed or 0, timeout=timeout, peers=peers, peer_timeout=timeout / 3)
    with ExitStack() as signals:
        if fleet is not None:  # a fleet is closed before a signal ends the command
            signals.enter_context(files.held())
        with opened_fleet(fleet, workers, name, kernels.folder, quiet=json) if fleet else nullcontext() as boards:
            described = boards.backend if boards else opened
            assert described, "a backend is open here or on the boards"
            chosen = configured(share(listed, part) if part is not None else listed, described, tuned)
            _remark_on_energies(described if energy and not boards else None, chosen.cases, settings)
            earlier = EarlierRecords(runs, described)
            settings = _informed(settings, earlier, described, lanes=lanes, all_first_calls=all)
            keep = files.Saver(_writing(output, runs, dict(chosen.facts)))
            carrier = None if boards or all else _carrier(kernels, described, settings, earlier)
            measured, count = with_ceilings(kernels, name, chosen.cases), len(chosen.cases)
            announced = partial(announce, measured, count, settings, described, earlier, carrier, quiet=json)
            if boards:
                announced(boards=boards.boards)
                record = boards.run(kernels, chosen.cases, settings, lanes, earlier, keep)
            else:
                signals.enter_context(files.held())
                with progress_bar(announced()) as report:
                    record = run(kernels, name, list(chosen.cases), settings, report, keep=keep, carrier=carrier)
        code = _finish(record, keep, kernels, runs, json)
    raise SystemExit(code)


def _opened(backend: str | None, fleet: str | None, workers: int | None, *, quiet: bool) -> "Backend | None":
    """Return the backend of this machine; None for a fleet, whose workers open theirs."""
    if fleet is not None:
        return None
    if workers is not None:
        raise UsageError(f"--workers {workers}: it is for --fleet")
    return options.choose_backend(backend, quiet=quiet)


def _remark_on_energies(backend: DescribedBackend | None, cases: "Sequence[Case]", settings: "Settings") -> None:
    """Print why no energy of the cases will be measured on the open backend, if none will."""
    from prism_bench.backends.null import scripts_energies
    from prism_bench.monitor.energy import missing_counter

    watching = settings.watching
    if backend is None:
        return
    if backend.name not in ("cuda", "null"):
        reason = missing_counter(backend.name, None)
    elif not any(case.label in watching.energy_labels for case in cases):
        reason = f"of {', '.join(watching.energy_labels)} only, and no such case is chosen"
    elif backend.name == "null":
        reason = None if scripts_energies() else "the null backend has an energy counter where its script has joules"
    elif not watching.hertz:
        reason = "with --interval 0 nobody reads the GPU's counter"
    else:
        reason = missing_counter(backend.name, backend.facts().get("uuid"))
    if reason:
        options.remark(f"--energy: no energies are measured: {reason}", "yellow")


def _informed(
    settings: "Settings",
    earlier: EarlierRecords,
    backend: DescribedBackend,
    *,
    lanes: int | None,
    all_first_calls: bool,
) -> "Settings":
    """Return the settings with what the backend and its earlier records decide."""
    from prism_bench.run import known_code, lanes_for, verification_seconds

    return replace(
        settings,
        lanes=lanes or lanes_for(backend.name),
        known_code={} if all_first_calls else known_code(earlier, backend.facts()),
        known_seconds=verification_seconds(earlier, backend.name),
    )


def _carrier(
    kernels: "Catalogue", backend: DescribedBackend, settings: "Settings", earlier: EarlierRecords
) -> "Carrier | None":
    """Return what carries over a GPU's verification of unchanged kernels, and with them their times.

    Elsewhere verification costs little, or is the purpose.
    """
    from prism_bench.analysis.compare.noise import stored_noise
    from prism_bench.record.identity import machine
    from prism_bench.run import Carrier, controls_of

    if backend.name != "cuda":
        return None
    facts = backend.facts()
    carrier = Carrier(kernels, backend.name, facts, settings.seeds)
    if settings.control_processes:
        noise = stored_noise(machine(facts)["id"], project.stored(measuring.DEFAULT_NOISE, project.current()))
        carrier.controls = controls_of(earlier, backend.name, facts, settings, noise)
    return carrier


def _settings(count: int | None, interval: float, *, energy: bool | None, controls: bool) -> "Settings":
    """Return the settings for that many processes, by default three; a range begins with those of controls.

    With controls, the first processes measure peers and copies too, which no verdict needs from each.
    """
    from prism_bench.run import Settings, Watching

    first = START if count is None else int(count)
    most = count.most if isinstance(count, measuring.ProcessCount) else first
    watching = Watching(hertz=1 / interval if interval else 0.0, energy=energy is not False)
    settings = Settings(processes=most, watching=watching)
    if not controls or first == most:
        return settings
    first_only = (*settings.first_process_only, "end_to_end_time")
    return replace(
        settings,
        control_processes=first,
        peer_processes=min(first, settings.peer_processes),
        first_process_only=first_only,
    )


def _writing(output: Path | None, runs: Path, tuning: dict[str, object]) -> Callable[["RunRecord"], Path]:
    """Return a function that writes the record to its place, with the choices that its launches were tuned by."""
    from prism_bench.record import store

    place = store.RecordPlace(runs, output)
    return lambda record: place.save(replace(record, tuning=tuning))


def _finish(
    record: "RunRecord", keep: "files.Saver[RunRecord, Path]", kernels: "Catalogue", runs: Path, json: bool
) -> int:
    """Keep the record and print it, whether or not it could be kept; return the exit code.

    The code is 2 where the run was cut short or had no cache, else 1 or 3 where a finding is bad.
    """
    from prism_bench.analysis.run_analysis import exit_code, read
    from prism_bench.report.gate import attention
    from prism_bench.report.plain import view
    from prism_bench.report.terminal.record import summary_view

    if not record.cases:
        raise PrismBenchError("the run was ended before anything was measured, so there is no record")
    path = keep.finish(record)
    add_to_shards([path] if path else [])
    reading = read(record, kernels)
    verdict = measuring.judged(reading, path or Path("not kept"), runs)
    if json:
        options.print_json(view(reading) | attention(verdict))
    else:
        options.out().print(summary_view(reading, verdict))
    if path and not json:
        options.line(f"record: {path}")
    if not record.complete or options.was_hindered(record):
        code = 2
    else:
        code = 1 if kernels.problems else exit_code(reading.findings)
    return keep.exit_code(code)

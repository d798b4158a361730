"""Options and progress of the commands that measure: what is announced, where it runs, how far it is."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from prism_bench.analysis.compare import MOST, START
from prism_bench.cli import options
from prism_bench.errors import ResultsError, UsageError
from prism_bench.extension import offered
from prism_bench.io import project
from prism_bench.io.files import number_variable
from prism_bench.units import count_text, duration_text

if TYPE_CHECKING:
    from prism_bench.analysis.gate.checks import Gate
    from prism_bench.analysis.run_analysis import Reading
    from prism_bench.catalogue import Catalogue
    from prism_bench.io.files import Saver
    from prism_bench.record.run_record import RunRecord
    from prism_bench.run import Carrier, Forecast, Settings
    from prism_bench.run import Progress as Event
    from prism_bench.run.builds import Build, Growth
    from prism_bench.spec.case import Case, Device
    from prism_bench.workflows.pairs import PairEffort, PairJudge, Records
    from prism_bench.workflows.tuning.choice import Applied
    from prism_bench.workflows.tuning_session import Bench, TuningPlan, TuningResult


# The progress of a run on standard error: a bar on a terminal; elsewhere a line a minute, and one for each stage.

SECONDS = "PRISM_BENCH_PROGRESS_SECONDS"
LINE_SECONDS = 60.0


@contextmanager
def progress_bar(expected: "Forecast | None" = None) -> Iterator[Callable[["Event"], None]]:
    """Yield a function that shows the progress events of a run; with a forecast, the time that is left by it."""
    console, left = options.err(), _time_left(expected) if expected else None
    if not console.is_terminal:
        yield _lines(console, left)
        return
    rest = TextColumn("{task.fields[left]}") if left else TimeRemainingColumn()
    columns = (
        TextColumn("{task.fields[stage]}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        rest,
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        job = bar.add_task("starting", total=None, stage="process 1", left="")

        def report(event: "Event") -> None:
            left_text = left(event) if left else ""
            bar.update(
                job,
                description=event.task,
                total=event.total,
                completed=event.done,
                stage=_stage(event),
                left=left_text,
            )

        yield report


def _stage(event: "Event") -> str:
    return event.stage or f"process {event.process + 1}"


def line_seconds() -> float:
    """Return the seconds between two lines: PRISM_BENCH_PROGRESS_SECONDS, or LINE_SECONDS."""
    return number_variable(SECONDS, LINE_SECONDS, "a number of seconds")


def _time_left(expected: "Forecast") -> Callable[["Event"], str]:
    """Return a function that returns in words how much time is left."""
    began = time.monotonic()
    return lambda event: duration_text(expected.left(event.done, time.monotonic() - began))


def _lines(console: Console, left: Callable[["Event"], str] | None) -> Callable[["Event"], None]:
    """Return a function that prints the progress once in a while, so that a log shows how far a job was."""
    began, interval = time.monotonic(), line_seconds()
    printed, stage = began, ""

    def report(event: "Event") -> None:
        nonlocal printed, stage
        now = time.monotonic()
        if now - printed >= interval or event.stage != stage:
            printed, stage = now, event.stage
            rest = f", about {left(event)} left" if left else ""
            where = f"{_stage(event)}, {event.done} of {event.total}{rest}"
            text = f"{now - began:.0f} s: {where}: {event.task}"
            console.print(text, highlight=False, soft_wrap=True)

    return report


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show what the command does during the block: as a status on a terminal, elsewhere as a line."""
    console = options.err()
    if not console.is_terminal:
        console.print(text, highlight=False, soft_wrap=True)
    with console.status(text):
        yield


# The first sentence of a run: what is measured, and how long it will take.


class DescribedBackend(Protocol):
    """What is known of a backend, whether it was opened here or by the worker of a fleet."""

    @property
    def name(self) -> str:
        """The name of the backend."""
        ...

    @property
    def device(self) -> "Device":
        """What launches may ask of the device."""
        ...

    def facts(self) -> dict[str, Any]:
        """Return what it reports of the device."""
        ...


class EarlierRecords:
    """The records of the backend's kind of machine below `runs`, the newest first, each read once and when needed."""

    def __init__(self, runs: Path, backend: DescribedBackend) -> None:
        from prism_bench.record import store
        from prism_bench.record.identity import machine

        self._unread = store.readable(runs, machine(backend.facts())["id"])
        self._read: list[RunRecord] = []

    def __iter__(self) -> Iterator["RunRecord"]:
        yield from self._read
        for _, record in self._unread:
            self._read.append(record)
            yield record


def announce(
    cases: Sequence["Case"],
    chosen: int,
    settings: "Settings",
    backend: DescribedBackend,
    earlier: Iterable["RunRecord"],
    carrier: "Carrier | None" = None,
    *,
    quiet: bool,
    boards: int = 1,
) -> "Forecast":
    """Print how long the run will take, by the `earlier` records, if `quiet` on standard error; return the forecast.

    The `cases` are the `chosen` ones and the ceiling benchmarks that are added. The text is `745 cases, 3 processes,
    peers: about 21 min (from the record of 2026-11-22)`. Several `boards` share the work: the time of one is printed.
    """
    from prism_bench.run import forecast

    expected = forecast(cases, settings, backend.name, earlier, carrier)
    if not chosen:  # a run of nothing ends with its error only
        return expected
    added, controls = len(cases) - chosen, len(carrier.controls_of(cases).known) if carrier else 0
    parts = [
        count_text(chosen, "case") + (f" and {count_text(added, 'ceiling benchmark')}" if added else ""),
        count_text(settings.processes, "process", "processes"),
        *([f"{count_text(controls, 'control')} in {settings.control_processes}"] if controls else []),
        *(["peers"] if settings.peers and any(case.spec.peers for case in cases) else []),
    ]
    alone = " on one board" if boards > 1 else ""
    text = f"{', '.join(parts)}: about {duration_text(expected.seconds)}{alone} ({expected.source})"
    (options.remark if quiet else options.line)(text)
    return expected


# `--tuned/--untuned`: whether a measuring command launches cases by the choices kept for this machine.

TunedOption = Annotated[
    bool | None,
    typer.Option(
        "--tuned/--untuned", help="Launch as prism-bench tune found best, or as specs do; default: untuned to compare."
    ),
]
STORE = Path("reports/tuning")


def configured(cases: Sequence["Case"], backend: DescribedBackend | str, tuned: bool | None) -> "Applied":
    """Return the cases as they are launched on the backend, open or named, tuned by default; print remarks."""
    from prism_bench.backends import open_backend
    from prism_bench.record.identity import machine
    from prism_bench.workflows.tuning.choice import TuningMachine, applied, untuned

    if tuned is False:
        return untuned(cases)
    opened = open_backend(backend) if isinstance(backend, str) else backend
    facts, folder = opened.facts(), project.stored(STORE, project.current())
    choices = applied(cases, TuningMachine(machine(facts)["id"], facts, opened.name, opened.device), folder)
    for note in choices.notes:
        options.remark(note)
    return choices


# Options of the commands that measure two builds in turn.

DEFAULT_NOISE = Path("reports/noise")


def judged(reading: "Reading", path: Path, runs: Path) -> "Gate":
    """Return what `check` finds in the record at `path`; where earlier ones hinder that, what it finds in it alone."""
    from prism_bench.analysis.gate.checks import gate, judged_reading

    try:
        return judged_reading(reading, path, runs, project.stored(DEFAULT_NOISE, project.current()))
    except ResultsError as error:
        options.remark(f"not compared with earlier records: {error}", "yellow")
        return gate(reading, path)


NoiseOption = Annotated[Path, typer.Option("--noise", help="Set the folder of the noise floors of machines.")]


IntervalOption = Annotated[
    float,
    typer.Option(
        "--interval", min=0, max=3600, metavar="SECONDS", help="Read the GPU's state once in this time; 0: never."
    ),
]


class ProcessCount(int):
    """Number of processes that measure each case, and the `most` that may be added where it is undecided."""

    most: int


def processes_of(text: object) -> ProcessCount:
    """Return the count that the text has, `5` or `3-15`."""
    first, dash, last = str(text).partition("-")
    if not (first.isdecimal() and (last.isdecimal() if dash else not last)):
        raise typer.BadParameter(f"{text}: write a number such as 5, or for compare and run a range such as 3-15")
    count = ProcessCount(first)
    count.most = int(last) if dash else int(count)
    if not 1 <= count <= count.most:
        raise typer.BadParameter(f"{text}: at least 1, and the first number of a range is the smaller one")
    return count


def _fixed(count: ProcessCount) -> int:
    """Return the count as a plain number, which records can hold."""
    if count.most != count:
        raise typer.BadParameter(f"{int(count)}-{count.most}: only compare and run add processes; give one number")
    return int(count)


_PROCESSES = f"Measure each case in this many fresh processes; compare: from {START} to {MOST}, until it is decided."
# A comparison begins with START and adds; a run needs as many to see how processes differ. What is compared once, in a
# claim or against itself, takes 5; a step of bisect 2, since it is measured again where it matters.
ProcessesOption = Annotated[
    int, typer.Option("--processes", parser=processes_of, callback=_fixed, metavar="N", help=_PROCESSES)
]
RangeOption = Annotated[int | None, typer.Option("--processes", parser=processes_of, metavar="N|N-N", help=_PROCESSES)]
LeastOption = Annotated[
    float | None,
    typer.Option("--least", metavar="SHARE", help="Report changes from this share on; default: 0.01, of trend 0.02."),
]


def not_run(old: str, cases: Sequence[str] = ()) -> str:
    """Return why changes of kernels are not measured where references run, and what is known without a GPU.

    `old` is the old side, a commit or a folder; `cases` are those that changed.
    """
    from prism_bench.spec.metric import STAND_INS

    kernels = list(dict.fromkeys(case.partition("[")[0] for case in cases))
    few = f" of {', '.join(kernels[:3])}{' and others' if len(kernels) > 3 else ''}" if kernels else ""
    name = STAND_INS["numpy_reference"].name
    what = "the source or launch" + few + " changed, which the backend does not run" if cases else "it runs no kernel"
    return (
        f"the backend numpy_reference runs the {name}, and {what}; "
        f"'prism-bench compile --against {old}' compares machine code, 'prism-bench verify --backend emulator' checks "
        "results, and times need a GPU"
    )


def pair_labels(labels: Sequence[str] | None, backend: str) -> tuple[str, ...]:
    """Return the given labels, else those that end while a person waits."""
    return options.chosen_labels(labels, ("S0", "S1") if backend == "cuda" else ("S0",))


def measured(
    builds: "tuple[Build, Build]", effort: "PairEffort", growth: "Growth | None" = None
) -> "tuple[tuple[RunRecord, RunRecord], Saver[Records, object]]":
    """Measure both builds with a progress bar; return the records and what keeps them."""
    from prism_bench.workflows.pairs import measure_pair

    a, b = (configured(build.cases, effort.backend, effort.tuned) for build in builds)
    with progress_bar() as report:
        return measure_pair(builds, (a, b), effort, report, growth)


# Places that measure: the GPU of this process, or, by an extension, the boards of a fleet.

FleetOption = Annotated[
    str | None,
    typer.Option(
        "--fleet",
        metavar="SPEC",
        help="Share the kernels among many GPUs: local, tcp://HOST:PORT, slurm:JOBS or ssh:HOST,HOST.",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", min=1, max=1024, help="Use this many workers of this host, one for each GPU."),
]


class FleetPlace(Protocol):
    """Many boards as one place to measure, which shows its progress."""

    @property
    def backend(self) -> "DescribedBackend":
        """The backend of all boards."""
        ...

    @property
    def boards(self) -> int:
        """How many boards measure."""
        ...

    def run(
        self,
        catalogue: "Catalogue",
        cases: "Sequence[Case]",
        settings: "Settings",
        lanes: int | None,
        earlier: "EarlierRecords",
        keep: "Callable[[RunRecord], object]",
    ) -> "RunRecord":
        """Measure the cases on all boards; return one record. `keep` gets incomplete ones on the way."""
        ...

    def compare(
        self, builds: "tuple[Build, Build]", effort: "PairEffort", looks: tuple[int, ...], judge: "PairJudge"
    ) -> "tuple[Records, Saver[Records, object]]":
        """Measure both builds; return the records and what keeps them."""
        ...

    def tune(
        self,
        bench: "Bench",
        plan: "TuningPlan",
        cases: "Sequence[Case]",
        noise: "Path",
        save: "Callable[[TuningResult], object]",
    ) -> "TuningResult":
        """Tune the cases; `noise` is the folder of noise floors, `save` gets interim results."""
        ...


def require_energy(backend: DescribedBackend, option: str) -> None:
    """Raise BackendUnavailable where the device of an open backend has no energy counter, before it is measured."""
    from prism_bench.errors import BackendUnavailable
    from prism_bench.monitor.energy import missing_counter

    if reason := missing_counter(backend.name, backend.facts().get("uuid")):
        raise BackendUnavailable(f"{option}: {reason}")


def opened_fleet(
    fleet: str, workers: int | None, backend: str, catalogue: Path, *, quiet: bool
) -> AbstractContextManager[FleetPlace]:
    """Return what opens the fleet that the words name; a UsageError where no extension measures on fleets."""
    opened = offered("fleet place")
    if opened is None:
        raise UsageError(f"--fleet {fleet}: no extension that measures on many GPUs is installed")
    return opened(fleet, workers, backend, catalogue, quiet=quiet)


@dataclass(frozen=True)
class PairPlace:
    """Where pairs are measured: on the GPU of this process, or on the boards of a fleet."""

    backend: "DescribedBackend"
    fleet: "FleetPlace | None" = None

    @property
    def name(self) -> str:
        """The name of the backend."""
        return self.backend.name

    def require(self, effort: "PairEffort") -> None:
        """Raise a UsageError for an option that a fleet has no meaning for."""
        if self.fleet:
            refused = {"--tuned": effort.tuned, "--time-limit": effort.limit is not None}
            options.refuse(refused, "leave it out with --fleet")

    def measured(
        self, builds: "tuple[Build, Build]", effort: "PairEffort", growth: "Growth", judge: "PairJudge"
    ) -> "tuple[tuple[RunRecord, RunRecord], Saver[Records, object]]":
        """Measure both builds; `growth` decides here, `judge` on a fleet, whether a case needs more processes.

        Return the records and what keeps them.
        """
        if self.fleet:
            return self.fleet.compare(builds, effort, growth.looks, judge)
        return measured(builds, effort, growth)


@contextmanager
def opened_place(
    fleet: str | None, workers: int | None, backend: str | None, catalogue: Path, *, quiet: bool
) -> Iterator[PairPlace]:
    """Yield the place that the options name; print what it is."""
    if fleet is None:
        if workers is not None:
            raise UsageError(f"--workers {workers}: it is for --fleet")
        yield PairPlace(options.choose_backend(backend, quiet=quiet))
        return
    with opened_fleet(fleet, workers, backend or "cuda", catalogue, quiet=quiet) as opened:
        yield PairPlace(opened.backend, opened)

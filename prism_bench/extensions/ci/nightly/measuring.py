"""The plan of a nightly run and its measuring steps: a process for each GPU, and more processes for doubtful cases."""

import os
import platform
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from prism_bench.analysis.compare import START
from prism_bench.analysis.compare.comparable import LAUNCHED
from prism_bench.analysis.compare.verdict import nightly_looks
from prism_bench.errors import PrismBenchError, UsageError
from prism_bench.extensions.ci.keeping.branch import own_folder
from prism_bench.extensions.ci.raw_samples import logged_process
from prism_bench.io import files
from prism_bench.io.files import lock_now, path_part
from prism_bench.io.project import relative
from prism_bench.io.workers import environment
from prism_bench.monitor.nvml import VISIBLE
from prism_bench.record import store
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.store.history import add_record
from prism_bench.run import merge
from prism_bench.run.settings import combined
from prism_bench.units import count_text

# Parts: a process for each GPU.

_GRACE_SECONDS = 120.0  # for a part that keeps what it measured
_MODULE = "prism_bench.extensions.ci.nightly.worker"
_PROGRESS = {"PRISM_BENCH_PROGRESS_SECONDS": "2"}


@dataclass
class NightlyChild:
    """A running part: standard output in `output`, standard error in `log`."""

    process: "subprocess.Popen[bytes]"
    output: Path
    log: Path
    began: float = field(default_factory=time.monotonic)

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self.process.poll()

    @property
    def line(self) -> str:
        """The last line of its log, else of its output: its progress, or why it ended."""
        return _last_line(self.log) or _last_line(self.output)

    def end(self) -> int:
        """Interrupt the part if it runs, wait until it saved its measurements, and return its exit code."""
        if self.code is None:
            # SIGINT may be ignored, inherited from a shell that started the nightly run in the background.
            self.process.terminate()
        try:
            return self.process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            if self.process.stdin:
                self.process.stdin.close()


def started(arguments: Sequence[str], stem: Path, device: str | None) -> NightlyChild:
    """Start a part with the arguments of `prism-bench`, on one GPU or as the environment has it."""
    output, log = stem.with_suffix(".out"), stem.with_suffix(".log")
    inherited = {name: value for name, value in environment().items() if name != "FORCE_COLOR"}
    chosen = {VISIBLE: device} if device is not None else {}
    process = logged_process(_MODULE, arguments, {**inherited, **_PROGRESS, **chosen}, (output, log))
    return NightlyChild(process, output, log)


def _last_line(path: Path) -> str:
    """Return the last line of a log that is not empty."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


# The plan: options and places of a nightly run, and the equivalent commands.

_RECORD = "RECORD"  # the path of the record, which has its name when it is measured


@dataclass(frozen=True)
class NightlyKeys:
    """Keys of the table `nightly` of the project's configuration; options of the command win over them.

    `run` are cases and options of `prism-bench run`; `history` fetches the history before and keeps it afterwards.
    """

    gpus: int = 1
    run: tuple[str, ...] = ()
    history: bool = False
    asv: bool = True


@dataclass(frozen=True)
class NightlyPlan:
    """Plan of a nightly run: the `arguments` of `prism-bench run`, the number of `gpus`, and places of the results.

    Of the arguments, `processes` is the number that measure each case; `options` are all but those and the cases.
    """

    root: Path
    arguments: tuple[str, ...]
    gpus: int
    catalogue: Path | None
    runs: Path
    site: Path
    noise: Path
    asv: bool = True
    history: str | None = None  # its address, where it is fetched and kept
    processes: int = START
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        visible = os.environ.get(VISIBLE)
        if visible is not None and self.gpus > 1 and len(visible.split(",")) < self.gpus:
            raise UsageError(f"--workers {self.gpus}: {VISIBLE}={visible} names fewer; give as many, or unset it")

    @property
    def alert_state(self) -> Path:
        """The folder of the alerts that were sent."""
        return self.runs.parent / "alerts"

    @property
    def devices(self) -> list[str]:
        """The GPU of each part, as CUDA_VISIBLE_DEVICES names it."""
        visible = os.environ.get(VISIBLE)
        return visible.split(",") if visible else [str(i) for i in range(self.gpus)]

    def shown(self, path: Path) -> str:
        """Return a path as a user in the current folder would write it."""
        return str(relative(path))

    def run_arguments(self, part: int, output: Path) -> list[str]:
        """Return the arguments of `prism-bench` for a part, counted from 1; of several, `output` is its record."""
        arguments = ["run", "--runs", str(self.runs), *self._catalogue()]
        if self.gpus > 1:
            arguments += ["--lanes", str(max(1, (os.cpu_count() or 1) // self.gpus))]
        arguments += self.arguments
        return [*arguments, "--part", f"{part}/{self.gpus}", "--output", str(output)] if self.gpus > 1 else arguments

    def again_arguments(self, output: Path, cases: Sequence[str], processes: int) -> list[str]:
        """Return the arguments of `prism-bench` that measure cases again; peers were measured before."""
        arguments = ["run", *self._catalogue(), *self.options, "--no-peers", "--processes", str(processes)]
        return [*arguments, "--output", str(output), *cases]

    def _catalogue(self) -> list[str]:
        return ["--catalogue", str(self.catalogue)] if self.catalogue else []

    def commands(self, logs: Path) -> Iterator[str]:
        """Yield the equivalent commands, each as a line."""
        if self.history:
            yield _command("store", "fetch", "--to", self.history, "--runs", str(self.runs))
        parts = [logs / f"{part}.json.gz" for part in range(1, self.gpus + 1)]
        for part, output in enumerate(parts, 1):
            device = f"{VISIBLE}={self.devices[part - 1]} " if self.gpus > 1 else ""
            yield device + _command(*self.run_arguments(part, relative(output)))
        if self.gpus > 1:
            yield _command("store", "merge", *map(str, map(relative, parts)), "--runs", str(self.runs))
        files = "--output", str(self.site / "check.md"), "--output", str(self.site / "check.xml")
        places = "--runs", str(self.runs), "--noise", str(self.noise)
        yield _command("check", _RECORD, *places, *self._catalogue(), "--alert", *files)
        yield _command("report", _RECORD, "--runs", str(self.runs), *self._catalogue(), "--output", str(self.site))
        if self.history:
            yield _command("store", "keep", "--to", self.history, "--runs", str(self.runs))


def _command(*arguments: str) -> str:
    return shlex.join(["prism-bench", *arguments])


# Measuring: all parts at once, and their records merged.

_LOOK_SECONDS = 0.2
_LARGEST = 3  # of a run's exit codes; larger codes, and codes of signals, count as 2
_TAIL = 3  # lines of the log of a part that was lost


@dataclass(frozen=True)
class PartState:
    """Progress of a part: its number of `count`, seconds since it began, its last line, and its exit code."""

    number: int
    count: int
    seconds: float
    line: str
    code: int | None


@dataclass(frozen=True)
class NightlyMeasurement:
    """Result of measuring: the largest exit code of the parts, the record if there is one, and the lost parts."""

    code: int
    record: Path | None
    interrupted: bool
    problems: tuple[str, ...] = ()


Report = Callable[[Sequence[PartState]], object]


def measured(plan: NightlyPlan, logs: Path, report: Report) -> NightlyMeasurement:
    """Measure the plan and return its record; `report` gets the state of the parts several times a second.

    A signal ends the parts; their measurements so far are saved as a record that is marked incomplete.
    """
    parts = [
        started(plan.run_arguments(part, _record(logs, part)), logs / f"run-{part}", device)
        for part, device in enumerate(plan.devices[: plan.gpus] if plan.gpus > 1 else [None], 1)
    ]
    with files.held():
        interrupted = watched(parts, report)
        codes = [part.end() for part in parts]
        measurement = _one_record(plan, logs, parts, interrupted=interrupted)
        return replace(measurement, code=max(measurement.code, _worst_code(codes)))


def watched(parts: Sequence[NightlyChild], report: Report) -> bool:
    """Report until all parts have ended; return whether a signal came first. Any error ends the parts as well."""
    try:
        with files.allowed():
            while any(part.code is None for part in parts):
                now = time.monotonic()
                report(
                    [
                        PartState(number, len(parts), now - part.began, part.line, part.code)
                        for number, part in enumerate(parts, 1)
                    ]
                )
                time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        return True
    except BaseException:
        for part in parts:
            part.end()
        raise
    return False


def _worst_code(codes: Iterable[int]) -> int:
    """Return the largest exit code of the parts, 0 without parts; codes that `run` does not have count as 2."""
    return max((code if 0 <= code <= _LARGEST else 2 for code in codes), default=0)


def _record(logs: Path, part: int) -> Path:
    return logs / f"{part}.json.gz"


def _one_record(
    plan: NightlyPlan, logs: Path, parts: Sequence[NightlyChild], *, interrupted: bool
) -> NightlyMeasurement:
    """Return the record of a single part, or the merged record of several; None if a part is lost."""
    if plan.gpus == 1:
        lines = parts[0].output.read_text(errors="replace").splitlines()
        path = next((Path(line.removeprefix("record: ")) for line in lines if line.startswith("record: ")), None)
        lost = () if path else _lost_parts(parts)
        return NightlyMeasurement(0, path, interrupted, lost)
    kept = [path for part in range(1, plan.gpus + 1) if (path := _record(logs, part)).is_file()]
    lost = _lost_parts(part for i, part in enumerate(parts, 1) if not _record(logs, i).is_file())
    if not kept or (lost and not interrupted):
        return NightlyMeasurement(2, None, interrupted, lost)
    try:
        records = [(str(path), store.read(path)) for path in kept]
        whole = merge(records) if len(records) > 1 else records[0][1]
        complete = whole.complete and len(records) == plan.gpus  # parts may be missing after an interrupt
        path = store.RecordPlace(plan.runs).save(replace(whole, complete=complete))
        add_record(path, plan.runs)
    except PrismBenchError as error:
        return NightlyMeasurement(error.exit_code, None, interrupted, (*lost, f"the parts cannot be merged: {error}"))
    return NightlyMeasurement(0, path, interrupted, lost)


def _lost_parts(parts: Iterable[NightlyChild]) -> tuple[str, ...]:
    """Return a sentence for each part without a record, with the end of its log."""
    sentences: list[str] = []
    for part in parts:
        lines = [line.strip() for line in part.log.read_text(errors="replace").splitlines() if line.strip()]
        tail = " | ".join(lines[-_TAIL:]) or "it printed nothing"
        sentences.append(f"{part.log.stem} was not measured ({part.log}): {tail}")
    return tuple(sentences)


# Measuring again: more processes for the cases that the gate could not decide.
#
# A round measures them on the GPU that measured them before, and the record gets the processes of both. The rounds are
# a sequential design: the record's protocol has the number of judgements (`looks`), so that a later judgement requires
# the same evidence as the nightly run.

MOST_SECONDS = 1800.0  # after which no further round begins

Undecided = Callable[[Path], Collection[str]]  # names of the cases of a record that more processes may decide


def measured_again(
    plan: NightlyPlan,
    measurement: NightlyMeasurement,
    logs: Path,
    undecided: Undecided,
    report: Report,
    tell: Callable[[str], object],
) -> NightlyMeasurement:
    """Measure the undecided cases of the record in more processes until they are decided; return the new result.

    Each round replaces the record. No round begins after MOST_SECONDS. A part that cannot measure is a problem and ends
    the rounds; a signal ends them too, and earlier measurements are kept.
    """
    path, began = measurement.record, time.monotonic()
    if path is None or measurement.interrupted:
        return measurement
    looks = nightly_looks(plan.processes)
    record = store.read(path)
    _keep(replace(record, protocol={**record.protocol, "looks": len(looks)}), path, plan)
    for number, (before, processes) in enumerate(zip(looks, looks[1:], strict=False), 1):
        cases = sorted(undecided(path))
        if not cases or time.monotonic() - began > MOST_SECONDS:
            break
        more = processes - before
        tell(
            f"{count_text(len(cases), 'undecided case')}: measured again in {count_text(more, 'process', 'processes')}"
        )
        with files.held():
            round_ = _round(plan, path, logs / f"again-{number}", cases, more, report)
        measurement = replace(
            measurement,
            code=max(measurement.code, round_.code),
            interrupted=round_.interrupted,
            problems=(*measurement.problems, *round_.problems),
        )
        if round_.interrupted or round_.problems:
            break
    return measurement


def _round(
    plan: NightlyPlan, path: Path, stem: Path, cases: Sequence[str], processes: int, report: Report
) -> NightlyMeasurement:
    """Measure the cases in `processes` more processes, and add them to the record at `path`."""
    record = store.read(path)
    parts: list[NightlyChild] = []
    for part, cases_there in _shares(plan, record, cases):
        stem_of_part = stem.with_name(f"{stem.name}-{part}")
        arguments = plan.again_arguments(stem_of_part.with_suffix(".json.gz"), cases_there, processes)
        parts.append(started(arguments, stem_of_part, plan.devices[part - 1] if plan.gpus > 1 else None))
    interrupted = watched(parts, report)
    code = _worst_code(part.end() for part in parts)
    outputs = [part.log.with_suffix(".json.gz") for part in parts]
    measured = [store.read(output) for output in outputs if output.is_file()]
    lost = _lost_parts(part for part, output in zip(parts, outputs, strict=True) if not output.is_file())
    if measured:
        _keep(grown(record, measured), path, plan)
    return NightlyMeasurement(code, path, interrupted, () if interrupted else lost)


def _shares(plan: NightlyPlan, record: RunRecord, cases: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield each part that measured some of the cases, with those cases, so that they stay on its GPU."""
    if plan.gpus == 1:
        yield 1, list(cases)
        return
    kernels = {case.name: case.kernel for case in record.cases}
    for number, part in enumerate(record.parts, 1):
        cases_there = [name for name in cases if kernels.get(name) in part["kernels"]]
        if cases_there:
            yield number, cases_there


def _keep(record: RunRecord, path: Path, plan: NightlyPlan) -> None:
    store.save(record, path)
    add_record(path, plan.runs)


def grown(record: RunRecord, more: Sequence[RunRecord]) -> RunRecord:
    """Return the record with the processes that `more` measured of its cases, if code and board are the same."""
    again = {case.name: (other, case) for other in more for case in other.cases if not case.ceiling}

    def joined(case: CaseResult) -> CaseResult:
        other, result = again.get(case.name, (record, None))
        if result is None or other.board_of(result) != record.board_of(case):
            return case
        if any(case.code.get(name) != result.code.get(name) for name in (*LAUNCHED, "source")):
            return case
        return combined([case, replace(result, board=case.board)])

    return replace(
        record,
        cases=tuple(map(joined, record.cases)),
        duration=round(record.duration + max((other.duration for other in more), default=0.0), 1),
        monitor=(*record.monitor, *(entry for other in more for entry in other.monitor)),
    )


# The lock of a machine and repository, and the folders of logs.

KEPT_LOGS = 20


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the lock of this machine and repository; raise UsageError if another nightly run holds it.

    The system releases the lock when the process ends for any reason.
    """
    folder = own_folder(root) / "nightly"
    folder.mkdir(exist_ok=True)
    path = folder / f"{path_part(platform.node() or 'machine')}.lock"
    with path.open("a+") as file:
        try:
            lock_now(file.fileno())
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "its process is unknown"
            raise UsageError(f"another nightly run is measuring here ({holder}); wait for its end, or end it") from None
        file.truncate(0)
        file.write(f"process {os.getpid()}, since {datetime.now(UTC):%Y-%m-%d %H:%M} UTC\n")
        file.flush()
        yield


def new_logs(root: Path) -> Path:
    """Return a new folder for the logs of one nightly run; only the newest KEPT_LOGS stay."""
    home = own_folder(root) / "nightly" / "logs"
    folder = home / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}Z"
    folder.mkdir(parents=True)
    for old in sorted(home.iterdir())[:-KEPT_LOGS]:
        shutil.rmtree(old, ignore_errors=True)
    return folder

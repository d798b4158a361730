"""Batch of submissions to one task: a queue over the GPUs, a process for each candidate; verdicts are kept."""

import hashlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from time import monotonic, sleep
from typing import Protocol

import msgspec

from prism_bench.errors import BackendUnavailable, PrismBenchError, UsageError
from prism_bench.extensions.judge.submission import identity_of, read_submission
from prism_bench.extensions.judge.task import drawn_secret
from prism_bench.extensions.judge.verdict import (
    BatchRow,
    JudgeVerdict,
    Objection,
    leaderboard_html,
    printable,
    readable,
)
from prism_bench.io.files import write_atomically
from prism_bench.io.workers import WorkerEnvironment, WorkerProcess, usable_cores
from prism_bench.monitor.nvml import VISIBLE, devices, opened, visible
from prism_bench.report.site.page import file_name

_CANDIDATE_SECONDS, _LEAVING_SECONDS = 1800.0, 15.0  # of a judgement, and for its clean-up after a signal
_TIMED = ("right", "unchecked")  # rulings of submissions that a GPU launches
_CORES_OF_CANDIDATE = 4  # that a candidate keeps busy, most of the time without the GPU


class Judging(Protocol):
    """Judgement of a candidate by the arguments of a command, on a GPU by its UUID; returns how the command ended."""

    def __call__(self, arguments: list[str], gpu: str) -> str: ...

    def end(self) -> None:
        """End all running judgements of an interrupted batch."""
        ...


class JudgingProcesses:
    """Processes of the running judgements. A terminal's signal does not reach them: `end` ends them.

    Each process gets some seconds to end its own processes and to remove its files.
    """

    def __init__(self) -> None:
        self._lock, self._running, self._is_over = Lock(), set[WorkerProcess](), False

    def __call__(self, arguments: list[str], gpu: str) -> str:
        """Run the command for a candidate, on a GPU by its UUID; return how it ended."""
        process = self._started(arguments, {VISIBLE: gpu} if gpu else {})
        if process is None:
            return "it was not judged: the batch was interrupted"
        try:
            if process.wait(_CANDIDATE_SECONDS) is None:
                os.kill(process.pid, signal.SIGTERM)
                process.wait(_LEAVING_SECONDS)
                return f"it was not judged within {_CANDIDATE_SECONDS:.0f} s"
            return process.ending()
        finally:
            with self._lock:
                self._running.discard(process)
            process.end()

    def end(self) -> None:
        """Ask all running processes to end, start no others, and kill those that do not end in time."""
        with self._lock:
            self._is_over = True
            running = [process for process in self._running if process.is_alive()]
            for process in running:
                os.kill(process.pid, signal.SIGTERM)
        until = monotonic() + _LEAVING_SECONDS
        while any(process.is_alive() for process in running) and monotonic() < until:
            sleep(0.05)
        for process in running:
            process.kill()

    def _started(self, arguments: list[str], variables: dict[str, str]) -> WorkerProcess | None:
        with self._lock:
            if self._is_over:
                return None
            where = WorkerEnvironment("prism_bench", variables=variables)
            process = WorkerProcess(where, arguments, stdin=subprocess.DEVNULL, stdout=subprocess.STDOUT)
            self._running.add(process)
            return process


@dataclass(frozen=True)
class _Candidate:
    """Card, its name in the leaderboard, the name of its results, and the hashes of code and card."""

    card: Path
    name: str
    stem: str
    identity: tuple[str, str]


@dataclass(frozen=True)
class JudgeBatch:
    """Judgement of every card below `folder` by `task`; `results` gets the verdicts, each command gets `arguments`.

    `task_sha256` is the task's: a verdict on another task is not kept. `run` judges a candidate and returns how its
    process ended. `report` is called with each finished row. All candidates have the hidden sizes and seeds of the same
    `secret`: the given secret, that of an interrupted batch, or a new one. A verdict shows the secret, so later
    submissions are judged by a new one.
    """

    folder: Path
    results: Path
    task: str
    arguments: Sequence[str] = ()
    gpus: Sequence[str] = ("",)
    run: Judging = field(default_factory=JudgingProcesses)
    report: Callable[[str], None] = field(default=lambda text: None)
    task_sha256: str = ""
    secret: int | None = None

    def rows(self) -> list[BatchRow]:
        """Judge candidates without a verdict, write the leaderboard, and return its rows, the best first."""
        cards = sorted(path for path in self.folder.rglob("*.toml") if self.results not in path.parents)
        if not cards:
            raise UsageError(f"{self.folder}: here is no card, a TOML file")
        self.results.mkdir(parents=True, exist_ok=True)
        entered = [self._entered(card) for card in cards]
        free = SimpleQueue[str]()
        secret = self._secret([entry for entry in entered if isinstance(entry, _Candidate)])
        for gpu in self.gpus:
            free.put(gpu)
        with ThreadPoolExecutor(len(self.gpus)) as pool:
            try:
                rows = list(pool.map(lambda entry: self._any_row(entry, free, secret), entered))
            except BaseException:
                self.run.end()
                raise
        rows.sort(key=lambda row: (row.ruling != "right", -row.score, row.candidate))
        write_atomically(self.results / "index.html", leaderboard_html(self.task, rows).encode())
        self._unfinished.unlink(missing_ok=True)
        return rows

    @property
    def _unfinished(self) -> Path:
        """File with the secret of a batch and a digest of its candidates, until its leaderboard is complete."""
        return self.results / "unfinished.txt"

    def _secret(self, entered: Sequence[_Candidate]) -> int:
        """Return the secret for candidates without a verdict: the unfinished batch's if its candidates are the same."""
        if self.secret is not None:
            return self.secret
        sent = hashlib.sha256(
            repr(sorted((candidate.name, candidate.identity) for candidate in entered)).encode()
        ).hexdigest()
        kept = self._unfinished.read_text().split() if self._unfinished.is_file() else []
        if len(kept) != 2 or not kept[0].isdecimal() or kept[1] != sent:
            kept = [str(drawn_secret()), sent]
            write_atomically(self._unfinished, " ".join(kept).encode())
        return int(kept[0])

    def _entered(self, card: Path) -> _Candidate | BatchRow:
        """Return the candidate of a card, or the final row of a card that cannot be read."""
        path = readable(str(card.relative_to(self.folder)))
        name = path.removesuffix(card.suffix)
        try:
            return _Candidate(card, name, _result_name(path), identity_of(read_submission(card)))
        except PrismBenchError as error:
            return BatchRow(name, "refused", 0.0, (str(Objection("form", readable(str(error)))),))
        except Exception as error:  # a sender's file may raise anything
            return _without_verdict(name, error)

    def _any_row(self, entry: _Candidate | BatchRow, free: "SimpleQueue[str]", secret: int) -> BatchRow:
        """Return a candidate's row; any error becomes a row without a verdict."""
        if isinstance(entry, BatchRow):
            return entry
        try:
            return self._row(entry, free, secret)
        except Exception as error:
            return _without_verdict(entry.name, error)

    def _row(self, candidate: _Candidate, free: "SimpleQueue[str]", secret: int) -> BatchRow:
        output, page = self.results / f"{candidate.stem}.json", self.results / f"{candidate.stem}.html"
        verdict = self._kept(output, candidate.identity)
        if verdict is None or ("--gpu" in self.arguments and verdict.ruling in _TIMED and not verdict.times):
            new = output.with_suffix(".new.json")  # a verdict on other files never gets the final name
            gpu = free.get()
            try:
                command = ["judge", str(candidate.card), self.task, "--output", str(new), "--output", str(page)]
                ended = self.run([*command, "--seed", str(secret), *self.arguments], gpu)
            finally:
                free.put(gpu)
            verdict = self._kept(new, candidate.identity)
            if verdict is None and new.is_file():
                ended = "its files changed while the batch was judged"
            self.report(printable(f"{candidate.name}: {verdict.ruling if verdict else ended}"))
            if verdict is None:
                new.unlink(missing_ok=True)
                return BatchRow(candidate.name, "unchecked", 0.0, (f"no verdict: {ended}",))
            new.replace(output)
        return BatchRow(candidate.name, verdict.ruling, verdict.score, verdict.reasons, page.name)

    def _kept(self, path: Path, identity: tuple[str, str]) -> JudgeVerdict | None:
        """Return the verdict in a file if it is on the same task, code and card, else None."""
        try:
            content = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
            content = {name: raw for name, raw in content.items() if name in JudgeVerdict.__struct_fields__}
            verdict = msgspec.json.decode(msgspec.json.encode(content), type=JudgeVerdict)
        except (OSError, msgspec.MsgspecError):
            return None
        judged = verdict.task, verdict.task_sha256, verdict.source_sha256, verdict.card_sha256
        is_drawn = self.secret in (None, verdict.secret)
        return verdict if is_drawn and judged == (self.task, self.task_sha256, *identity) else None


def _without_verdict(name: str, error: Exception) -> BatchRow:
    return BatchRow(name, "unchecked", 0.0, (f"no verdict: {type(error).__name__}: {readable(str(error))}",))


def _result_name(path: str) -> str:
    """Return the name of a candidate's results: its path with its suffix, so that no name is `index`.

    A path that is no valid file name gets a digest, so that different paths have different names.
    """
    name = file_name(path)
    return name if name == path else f"{name}-{hashlib.sha256(path.encode()).hexdigest()[8:40]}"


def open_gpus() -> list[str]:
    """Return the UUIDs of the GPUs that CUDA sees; raise BackendUnavailable without a GPU."""
    with opened() as nvml:
        uuids = [device.uuid for device in visible(devices(nvml))]
    if not uuids:
        raise BackendUnavailable("no GPU is visible here; without --gpu the emulator judges")
    return uuids


def slots(gpus: Sequence[str] = ("",)) -> list[str]:
    """Return the GPU of each candidate that is judged at the same time, "" without one; those of a GPU take turns."""
    return [*gpus] * max(1, usable_cores() // (_CORES_OF_CANDIDATE * len(gpus)))


def leaderboard_lines(rows: Sequence[BatchRow]) -> Iterator[str]:
    """Yield the leaderboard as lines of text, each with the first line of the reason of its ruling."""
    width = max((len(row.candidate) for row in rows), default=0)
    for row in rows:
        why = f"  {row.reasons[0].partition(chr(10))[0]}" if row.reasons and row.ruling != "right" else ""
        yield printable(f"{row.candidate:{width}}  {row.ruling:9}  {row.score:8.3g}{why}")

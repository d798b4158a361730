"""Many submissions to one task: a queue over the GPUs, a process tree for each candidate, resumed where it stopped."""

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
from prism_bench.io.workers import WorkerEnvironment, WorkerProcess
from prism_bench.monitor.nvml import VISIBLE, devices, opened, visible
from prism_bench.report.site.page import file_name

_CANDIDATE_SECONDS, _LEAVING_SECONDS = 1800.0, 15.0  # of a judgement, and to end what it started after a signal
_TIMED = ("right", "unchecked")  # rulings of what a GPU launches
_CORES_OF_ONE = 4  # that a candidate keeps busy where no GPU is what it waits for


class Judging(Protocol):
    """What judges one candidate by the words of a command, on a GPU by its UUID, and returns how that ended."""

    def __call__(self, words: list[str], gpu: str) -> str: ...

    def end(self) -> None:
        """End what is judged now: the batch is interrupted."""
        ...


class JudgingProcesses:
    """The processes of candidates that are judged now. A terminal's signal does not reach them: `end` ends them.

    Each gets some seconds to end what it started and to remove its files.
    """

    def __init__(self) -> None:
        self._lock, self._running, self._is_over = Lock(), set[WorkerProcess](), False

    def __call__(self, words: list[str], gpu: str) -> str:
        """Run the command line for one candidate, on a GPU by its UUID; return how it ended."""
        process = self._started(words, {VISIBLE: gpu} if gpu else {})
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
            process.kill()
            process.wait()
            process.release()

    def end(self) -> None:
        """Let all that run end, and start no others; kill those that do not end."""
        with self._lock:
            self._is_over = True
            running = [one for one in self._running if one.is_alive()]
            for process in running:
                os.kill(process.pid, signal.SIGTERM)
        until = monotonic() + _LEAVING_SECONDS
        while any(one.is_alive() for one in running) and monotonic() < until:
            sleep(0.05)
        for process in running:
            process.kill()

    def _started(self, words: list[str], variables: dict[str, str]) -> WorkerProcess | None:
        with self._lock:
            if self._is_over:
                return None
            where = WorkerEnvironment("prism_bench", variables=variables)
            process = WorkerProcess(where, words, stdin=subprocess.DEVNULL, stdout=subprocess.STDOUT)
            self._running.add(process)
            return process


@dataclass(frozen=True)
class Candidate:
    """A card, its name in the leaderboard, that of its results, and the hashes of what was sent with it."""

    card: Path
    name: str
    stem: str
    identity: tuple[str, str]


@dataclass(frozen=True)
class JudgeBatch:
    """Every card below `folder`, judged by `task`; verdicts are in `results`. `words` are passed on to each command.

    `task_sha256` is the task's: a verdict on another one is not kept. `run` judges one candidate and returns how its
    process ended. `report` is called with each that is done. All candidates have the hidden sizes and seeds of one
    `secret`: the given one, that of a batch that was interrupted, or a new one. Who sees a verdict knows it, so that
    nothing that was sent afterwards is judged by it.
    """

    folder: Path
    results: Path
    task: str
    words: Sequence[str] = ()
    gpus: Sequence[str] = ("",)
    run: Judging = field(default_factory=JudgingProcesses)
    report: Callable[[str], None] = field(default=lambda words: None)
    task_sha256: str = ""
    secret: int | None = None

    def rows(self) -> list[BatchRow]:
        """Judge what has no verdict yet; write the leaderboard and return its rows, the best first."""
        cards = sorted(path for path in self.folder.rglob("*.toml") if self.results not in path.parents)
        if not cards:
            raise UsageError(f"{self.folder}: here is no card, a TOML file")
        self.results.mkdir(parents=True, exist_ok=True)
        entered = [self._entered(card) for card in cards]
        secret, free = self._secret([one for one in entered if isinstance(one, Candidate)]), SimpleQueue[str]()
        for gpu in self.gpus:
            free.put(gpu)
        with ThreadPoolExecutor(len(self.gpus)) as pool:
            try:
                rows = list(pool.map(lambda one: self._any_row(one, free, secret), entered))
            except BaseException:
                self.run.end()
                raise
        rows.sort(key=lambda row: (row.ruling != "right", -row.score, row.candidate))
        write_atomically(self.results / "index.html", leaderboard_html(self.task, rows).encode())
        self._unfinished.unlink(missing_ok=True)
        return rows

    @property
    def _unfinished(self) -> Path:
        """The file with the secret of a batch, and a digest of what was sent, until its leaderboard is complete."""
        return self.results / "unfinished.txt"

    def _secret(self, entered: Sequence[Candidate]) -> int:
        """Return the secret for what has no verdict yet: a new one where anything came after the last one was drawn."""
        if self.secret is not None:
            return self.secret
        sent = hashlib.sha256(repr(sorted((one.name, one.identity) for one in entered)).encode()).hexdigest()
        words = self._unfinished.read_text().split() if self._unfinished.is_file() else []
        if len(words) != 2 or not words[0].isdecimal() or words[1] != sent:
            words = [str(drawn_secret()), sent]
            write_atomically(self._unfinished, " ".join(words).encode())
        return int(words[0])

    def _entered(self, card: Path) -> Candidate | BatchRow:
        """Return what was sent with a card; its row, where it cannot be read: nothing else comes of that."""
        path = readable(str(card.relative_to(self.folder)))
        name = path.removesuffix(card.suffix)
        try:
            return Candidate(card, name, _result_name(path), identity_of(read_submission(card)))
        except PrismBenchError as error:
            return BatchRow(name, "refused", 0.0, (str(Objection("form", readable(str(error)))),))
        except Exception as error:  # files are the sender's, and so is what reading them does
            return _without_verdict(name, error)

    def _any_row(self, one: Candidate | BatchRow, free: "SimpleQueue[str]", secret: int) -> BatchRow:
        """Return a candidate's row, whatever goes wrong with it."""
        if isinstance(one, BatchRow):
            return one
        try:
            return self._row(one, free, secret)
        except Exception as error:
            return _without_verdict(one.name, error)

    def _row(self, one: Candidate, free: "SimpleQueue[str]", secret: int) -> BatchRow:
        output, page = self.results / f"{one.stem}.json", self.results / f"{one.stem}.html"
        verdict = self._kept(output, one.identity)
        if verdict is None or ("--gpu" in self.words and verdict.ruling in _TIMED and not verdict.times):
            new = output.with_suffix(".new")  # that of other files than those of the batch never gets the name
            gpu = free.get()
            try:
                words = ["judge", str(one.card), "--task", self.task, "--output", str(new), "--html", str(page)]
                ended = self.run([*words, "--secret", str(secret), *self.words], gpu)
            finally:
                free.put(gpu)
            verdict = self._kept(new, one.identity)
            if verdict is None and new.is_file():
                ended = "its files changed while the batch was judged"
            self.report(printable(f"{one.name}: {verdict.ruling if verdict else ended}"))
            if verdict is None:
                new.unlink(missing_ok=True)
                return BatchRow(one.name, "unchecked", 0.0, (f"no verdict: {ended}",))
            new.replace(output)
        return BatchRow(one.name, verdict.ruling, verdict.score, verdict.reasons, page.name)

    def _kept(self, path: Path, identity: tuple[str, str]) -> JudgeVerdict | None:
        """Return the verdict in a file where it is on the same task, code and card."""
        try:
            content = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
            content = {name: raw for name, raw in content.items() if name in JudgeVerdict.__struct_fields__}
            verdict = msgspec.json.decode(msgspec.json.encode(content), type=JudgeVerdict)
        except (OSError, msgspec.MsgspecError):
            return None
        found = verdict.task, verdict.task_sha256, verdict.source_sha256, verdict.card_sha256
        is_drawn = self.secret in (None, verdict.secret)
        return verdict if is_drawn and found == (self.task, self.task_sha256, *identity) else None


def _without_verdict(name: str, error: Exception) -> BatchRow:
    return BatchRow(name, "unchecked", 0.0, (f"no verdict: {type(error).__name__}: {readable(str(error))}",))


def _result_name(path: str) -> str:
    """Return the name of a candidate's results by its path, with its ending, so that none is called index.

    A path that no file's name can be has a digest that nobody finds again for another one.
    """
    name = file_name(path)
    return name if name == path else f"{name}-{hashlib.sha256(path.encode()).hexdigest()[8:40]}"


def open_gpus() -> list[str]:
    """Return the UUIDs of the GPUs that CUDA sees; BackendUnavailable where there is none."""
    with opened() as nvml:
        found = [one.uuid for one in visible(devices(nvml))]
    if not found:
        raise BackendUnavailable("no GPU is visible here; without --gpu the emulator judges")
    return found


def slots() -> list[str]:
    """Return a place for each candidate that is judged at the same time, without GPUs."""
    return [""] * max(1, (os.cpu_count() or 1) // _CORES_OF_ONE)


def leaderboard_lines(rows: Sequence[BatchRow]) -> Iterator[str]:
    """Yield the leaderboard as lines of text, each with the first line of why its candidate is not right."""
    width = max((len(row.candidate) for row in rows), default=0)
    for row in rows:
        why = f"  {row.reasons[0].partition(chr(10))[0]}" if row.reasons and row.ruling != "right" else ""
        yield printable(f"{row.candidate:{width}}  {row.ruling:9}  {row.score:8.3g}{why}")

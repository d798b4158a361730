"""Items of a study dealt over the GPUs of a host: a process for each place, whose table grows, and one table of all."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.extensions.judge.batch import open_gpus
from prism_bench.io.files import temporary_folder
from prism_bench.io.workers import WorkerEnvironment, WorkerProcess
from prism_bench.monitor.nvml import VISIBLE
from prism_bench.workflows.compile_table import write_csv

ENDING_SECONDS = 15.0  # for a process to end what it started, after SIGTERM
NOT_ALL = 3  # the exit code where some items have no answer
Row = TypeVar("Row")


@dataclass(frozen=True)
class DealtStudy:
    """`module` runs in each place with `words`, its items behind `option`, and `--output` for its table.

    `--part` names a folder in which each item is `claimed` before it is worked on, and `--then` the items of the other
    places: who has ended its own takes what nobody has begun. The tables are next to `output`, the table of all. They
    stay where this process is killed, so that `--resume` finds what they have.
    """

    module: str
    words: Sequence[str]
    option: str
    output: Path

    def tables(self) -> list[Path]:
        """Return the tables of places that are there."""
        return sorted(self.output.parent.glob(f"{self.output.stem}.part*{self.output.suffix}"))

    def forget(self) -> None:
        """Remove the tables of places."""
        for path in self.tables():
            path.unlink()

    def kept(
        self, before: Sequence[Row], items: Sequence[str], gpus: Sequence[str], jobs: int, read: Callable[[], list[Row]]
    ) -> list[Row]:
        """Run the items and return the rows that `read` then finds, which are in `output`, as those of `before` are.

        A signal or an error costs nothing that was judged.
        """
        if before:
            write_csv(before, self.output)
        self.forget()
        try:
            self.run(items, gpus, jobs)
        finally:
            rows = read()
            if rows:
                write_csv(rows, self.output)
            self.forget()
        return rows

    def run(self, items: Sequence[str], gpus: Sequence[str], jobs: int) -> None:
        """Deal the items, in order, over `jobs` places of each GPU, and print how each process ended that failed.

        BackendUnavailable where all failed and none has a table.
        """
        places = [gpu for _ in range(jobs) for gpu in gpus][: len(items)]
        with temporary_folder("prism-judge-claims-") as claims:
            dealt = [items[number :: len(places)] for number in range(len(places))]
            running = [
                self._started(gpu, own, [one for one in items if one not in own], number + 1, claims)
                for number, (gpu, own) in enumerate(zip(places, dealt, strict=True))
            ]
            try:
                failures = [one.last_words() for one in running if one.wait() not in (0, 1, NOT_ALL)]
            finally:
                _end(running)
        if failures and len(failures) == len(places) and not self.tables():
            raise BackendUnavailable(failures[0])
        for words in failures:
            print(f"{self.module.rpartition('.')[2]}: {words}", file=sys.stderr)

    def _started(
        self, gpu: str, items: Sequence[str], others: Sequence[str], number: int, claims: Path
    ) -> WorkerProcess:
        table = self.output.with_name(f"{self.output.stem}.part{number}{self.output.suffix}")
        where = WorkerEnvironment(self.module, variables={VISIBLE: gpu} if gpu else {})
        arguments = [*self.words, "--part", str(claims), "--output", str(table), self.option, *items, "--then", *others]
        return WorkerProcess(where, arguments, stdin=subprocess.DEVNULL)


def add_part_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that a place of a study gets and no user gives."""
    parser.add_argument("--part", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--then", nargs="*", default=[], help=argparse.SUPPRESS)


def claimed(folder: Path | None, item: str) -> bool:
    """Return whether nobody has begun an item so far, which the caller has herewith; without a folder nobody shares."""
    if folder is None:
        return True
    try:
        (folder / item).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def passed_on(chosen: argparse.Namespace) -> list[str]:
    """Return the options that each process of a study has from the command line."""
    words = ["--seconds", str(chosen.seconds)]
    words += ["--trust-source"] if chosen.trust_source else []
    return words + (["--catalogue", str(chosen.catalogue)] if chosen.catalogue else [])


def chosen_gpus(names: Sequence[str]) -> list[str]:
    """Return the GPUs that a command line names; `all` is each that CUDA sees; UsageError for one twice."""
    found = open_gpus() if list(names) == ["all"] else list(names)
    twice = next((one for one in found if found.count(one) > 1), None)
    if twice:
        raise UsageError(f"--gpus names {twice} twice; --jobs is how many are judged at a time on each")
    return found


def at_least_one(text: str) -> int:
    """Return the number that an option gives; ValueError, which `argparse` reports, where it is less than 1."""
    if (number := int(text)) < 1:
        raise ValueError
    return number


def _end(running: Sequence[WorkerProcess]) -> None:
    """End processes that still run, in order where they do within some seconds."""
    for one in _alive(running):
        with suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGTERM)
    for one in running:
        if one.wait(ENDING_SECONDS) is None:
            one.kill()
            one.wait()
        one.release()


def _alive(running: Sequence[WorkerProcess]) -> Iterator[WorkerProcess]:
    return (one for one in running if one.is_alive())


# Contexts: each process that opens a GPU has one, and the driver makes one after another.

_DEVICES = "/dev/nvidia-uvm"  # which the driver opens with a process's first context
_SECONDS = 0.05  # between two looks: a context lasts for longer


class DeviceContexts:
    """Processes of this host that had a GPU open within a `with` block, by number and time of start."""

    def __init__(self, processes: Path = Path("/proc")) -> None:
        self._processes, self._over = processes, Event()
        self.seen: set[tuple[str, str]] = set()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> "DeviceContexts":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()
        self.look()

    def look(self) -> None:
        """Add the processes that have a GPU open now."""
        for process in self._processes.glob("[0-9]*"):
            with suppress(OSError, IndexError):  # it has ended
                started = (process / "stat").read_text().rpartition(")")[2].split()[19]
                if (process.name, started) in self.seen:
                    continue
                if any(str(file.readlink()).startswith(_DEVICES) for file in (process / "fd").iterdir()):
                    self.seen.add((process.name, started))

    def _look(self) -> None:
        while not self._over.wait(_SECONDS):
            self.look()

"""Soak: runs are ended at random points, two at a time in one folder, and what they leave there is checked.

A kill may cost the tasks since the last save and nothing else: every record can be read and holds what was saved by the
journal, no other record is touched, no child goes on, and the next writer removes temporary files. A burst of
signals, which a run can see, may cost nothing but the task under way.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random

from lab import REPOSITORY
from lab.soak_job import results_of
from prism_bench.errors import ResultsError
from prism_bench.io.files import ENDING, INTERVAL
from prism_bench.io.workers import children_of, environment
from prism_bench.record import store
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv

GAPS = (0.05, 0.075, 0.1)  # seconds between the signals of a burst
SLOWER = 1.8  # than a run alone is one of several at once
PATIENCE = 30.0  # seconds after which what should have ended has not


@dataclass(frozen=True)
class Plan:
    """How often runs are ended (`kills`, `bursts`), how many run at once, and how often each saves, in seconds."""

    catalogue: Path
    kills: int = 100
    bursts: int = 20
    writers: int = 2
    save_seconds: float = 0.05
    seed: int = 17


@dataclass(frozen=True)
class SoakTrial:
    """One run that was ended: how, when, and what was found. The columns of the table, in their order.

    `saved` are results in the last save that the run noted, `found` those in its record; `unsaved` are tasks that were
    finished after that save. `wrong` lists defects, empty where all is well.
    """

    number: int
    how: str
    seconds: float
    saves: int
    saved: int
    found: int
    unsaved: int
    records: int
    temporaries: int
    wrong: str


COLUMNS = tuple(field.name for field in fields(SoakTrial))


@dataclass(frozen=True)
class Noted:
    """Contents of a journal: the saves, the newest record's name and results, and how many tasks came after it."""

    saves: int = 0
    name: str = ""
    results: int = 0
    unsaved: int = 0


class _SoakProcess:
    """A run under way."""

    def __init__(self, plan: Plan, folder: Path, journal: Path) -> None:
        self.journal = journal
        words = [str(folder), str(journal), str(plan.catalogue)]
        self._errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lab.soak_job", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,
            env={**environment(), INTERVAL: str(plan.save_seconds)},
        )

    def end(self, how: str) -> list[int]:
        """End it; returns the children that it leaves behind."""
        children = _below(self.process.pid)
        numbers = [signal.SIGKILL] if how == "kill" else [signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGINT]
        for number, gap in zip(numbers, (*GAPS, 0.0), strict=False):
            if self.process.poll() is None:
                (os.kill if how == "kill" else os.killpg)(self.process.pid, number)
            if how != "kill":
                time.sleep(gap)
        self.process.wait(PATIENCE)
        _until(lambda: not any(map(_runs, children)))
        return [child for child in children if _runs(child)]

    def complaint(self, how: str) -> str:
        """Return what is wrong with how it ended; ask once."""
        with self._errors as errors:
            errors.seek(0)
            said, code = errors.read().decode(errors="replace"), self.process.returncode
        if "Traceback" in said:
            return f"traceback: {said.strip().splitlines()[-1]}"
        return "" if code in ((-9, 0, 2) if how == "kill" else (0, 2)) else f"exit code {code}"


def soak(plan: Plan, folder: Path) -> Iterator[SoakTrial]:
    """End run after run in `folder`; yields each as it was found. At last a whole run must still be possible."""
    random, span = Random(plan.seed), SLOWER * _duration(plan, folder)
    ways = ["kill"] * plan.kills + ["burst"] * plan.bursts
    number = 0
    while ways:
        now, ways = ways[: plan.writers], ways[plan.writers :]
        for trial in _together(plan, folder, now, (number, random, span)):
            yield trial
            number += 1
    _duration(plan, folder)


def _together(plan: Plan, folder: Path, ways: Sequence[str], rest: tuple[int, Random, float]) -> Iterator[SoakTrial]:
    """Start runs at once in one folder, end one after the other, and yield what is found when all have ended."""
    first, random, span = rest
    stale, contents = set(folder.rglob(f".*{ENDING}")), _contents(folder)
    jobs = [_SoakProcess(plan, folder, folder.parent / f"journal-{first + n}") for n in range(len(ways))]
    begun, left, ended = time.monotonic(), [], []
    for job, how, after in zip(jobs, ways, sorted(random.uniform(0, span) for _ in ways), strict=True):
        if how == "burst":
            _until(lambda job=job: job.journal.exists())
        time.sleep(max(0.0, begun + after - time.monotonic()))
        left.append(job.end(how))
        ended.append(time.monotonic() - begun)
    noted = [_noted(job.journal) for job in jobs]
    stale = {path for path in stale if path.exists()} if any(one.saves for one in noted) else set()
    touched = [name for name, content in contents.items() if _contents(folder).get(name) != content]
    for offset, (job, how) in enumerate(zip(jobs, ways, strict=True)):
        one = noted[offset]
        found, wrong = found_of(folder, one)
        if how == "burst" and one.unsaved:
            wrong.append(f"{one.unsaved} finished tasks are lost")
        wrong += [job.complaint(how)] + [f"child {child} goes on" for child in left[offset]]
        wrong += [f"{path.name} is stale" for path in stale] + [f"{name} was changed" for name in touched]
        wrong += [f"{path.name} cannot be read" for path in folder.rglob("*.json.gz") if not _can_be_read(path)]
        yield SoakTrial(
            first + offset,
            how,
            round(ended[offset], 2),
            one.saves,
            one.results,
            found,
            one.unsaved,
            len(_contents(folder)),
            len([*folder.rglob(f".*{ENDING}")]),
            "; ".join(filter(None, wrong)),
        )


def found_of(folder: Path, noted: Noted) -> tuple[int, list[str]]:
    """Return the results in the record that was saved last, and what is wrong with it."""
    if not noted.name:
        return 0, []
    try:
        found = results_of(store.read(next(iter(folder.rglob(noted.name)), folder / noted.name)))
    except ResultsError as error:
        return 0, [str(error)]
    return found, [] if found >= noted.results else [f"{noted.results - found} saved results are lost"]


def _noted(journal: Path) -> Noted:
    """Read a journal, whose last line may be cut."""
    lines = journal.read_text().split("\n")[:-1] if journal.exists() else []
    done, saves = 0, []
    for words in map(str.split, lines):
        done = int(words[1]) if words[0] == "begin" else done
        saves += [words[1:]] if words[0] == "saved" else []
    if not saves:
        return Noted(unsaved=done)
    name, results, at = saves[-1]
    return Noted(len(saves), name, int(results), done - int(at))


def _duration(plan: Plan, folder: Path) -> float:
    """Return how long a run takes that nobody ends; a ResultsError where it cannot be done."""
    begun = time.monotonic()
    job = _SoakProcess(plan, folder, folder.parent / "journal-whole")
    code = job.process.wait()
    complaint = job.complaint("whole")
    if code != 0:
        raise ResultsError(f"{folder}: a run that nobody ends is not possible here: {complaint or 'it is cut short'}")
    return time.monotonic() - begun


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.json.gz")}


def _can_be_read(path: Path) -> bool:
    try:
        return bool(store.read(path))
    except ResultsError:
        return False


def _below(pid: int) -> list[int]:
    """Return the processes that `pid` started, at any depth."""
    own = sorted(children_of(pid))
    return own + [deeper for one in own for deeper in _below(one)]


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)


def summary(trials: Sequence[SoakTrial]) -> str:
    """Return in one line what the trials found."""
    kinds = {how: sum(one.how == how for one in trials) for how in ("kill", "burst")}
    wrong, unsaved = sum(bool(one.wrong) for one in trials), [one.unsaved for one in trials if one.how == "kill"]
    return (
        f"{kinds['kill']} kills and {kinds['burst']} bursts of signals: {wrong} with anything wrong; "
        f"{count_text(sum(one.saves for one in trials), 'save')}; "
        f"at most {max(unsaved, default=0)} tasks after the last save"
    )


def main() -> int:
    """Soak as the command line demands, and write the table; return the exit code, 1 where anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--bursts", type=int, default=20, help="SIGINT and SIGTERM, 50 to 100 ms apart")
    parser.add_argument("--writers", type=int, default=2, help="runs at once in one folder")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--folder", type=Path, help="where the runs write; a temporary folder unless named")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "reports" / "robustness" / "soak.csv")
    chosen = parser.parse_args()
    plan = Plan(REPOSITORY / "tests" / "toys", chosen.kills, chosen.bursts, chosen.writers, seed=chosen.seed)
    trials: list[SoakTrial] = []
    with tempfile.TemporaryDirectory() as folder:
        for trial in soak(plan, (chosen.folder or Path(folder)) / "runs"):
            trials.append(trial)
            print(*vars(trial).values(), sep=",", flush=True)
    write_csv(trials, chosen.output, COLUMNS)
    print(summary(trials))
    return 1 if any(trial.wrong for trial in trials) else 0

"""Nightly runs under asv: a commit for every run, so that asv draws an unbroken series."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prism_bench.errors import ResultsError, UsageError
from prism_bench.io.documents import json_line, json_text
from prism_bench.io.files import path_part, write_atomically
from prism_bench.io.installation import pip_install
from prism_bench.record import store
from prism_bench.record.run_record import RunRecord

# Ledger of the nightly runs of one machine: a line of JSON for each.

_TOOLS = ("driver", "nvrtc", "numpy")


@dataclass(frozen=True)
class NightlyRun:
    """A record: when it was begun (UTC, ISO 8601), its file's name, the measured commit and the software."""

    created: str
    record: str
    commit: str | None
    software: dict[str, str]

    @property
    def moment(self) -> int:
        """Seconds since 1970."""
        return round(datetime.fromisoformat(self.created.replace("Z", "")).replace(tzinfo=UTC).timestamp())

    @property
    def message(self) -> str:
        """The message that asv shows for the run's commit."""
        facts = ", ".join(f"{name} {version}" for name, version in sorted(self.software.items()))
        return f"{self.created} {(self.commit or 'no commit')[:8]}\n\n{self.record}\n{facts}\n"


def entered(record: RunRecord, name: str, ledger: Path) -> list[NightlyRun]:
    """Return the runs of the ledger, oldest first, with that of the record called `name`; append a new one."""
    runs = read(ledger)
    if name not in [run.record for run in runs]:
        software = {tool: record.software[tool] for tool in _TOOLS if tool in record.software}
        runs = [*runs, NightlyRun(record.created, name, record.commit, software)]
        # All values are texts; compact JSON would change the lines that other machines hold, and merging compares.
        write_atomically(ledger, "".join(json_line(asdict(run)) + "\n" for run in runs).encode())
    return runs


def read(ledger: Path) -> list[NightlyRun]:
    """Return the runs of a ledger in the order of entry; raise ResultsError with the number of an invalid line."""
    runs: list[NightlyRun] = []
    for number, line in enumerate(ledger.read_text("utf-8").splitlines() if ledger.exists() else (), 1):
        try:
            run = NightlyRun(**json.loads(line))
            _ = run.moment, run.message  # raise for fields of a wrong form
        except (ValueError, TypeError, AttributeError) as error:
            raise ResultsError(f"{ledger}:{number}: not a nightly run ({error}); remove or correct the line") from error
        runs.append(run)
    return runs


# Repository of nightly runs: a branch for each machine, an empty commit for each run.

_WHO = "Prism Bench <nights@localhost>"  # part of the commits' hashes, which kept results are named by


def commits(ledgers: Mapping[str, Sequence[NightlyRun]], repository: Path) -> dict[str, list[str]]:
    """Make the repository, a branch per machine and an empty commit per run; return the hashes by machine."""
    _git("init", "--quiet", "--bare", "--initial-branch", next(iter(ledgers)), str(repository))
    stream: list[str] = []
    for machine, runs in ledgers.items():
        stream.append(f"reset refs/heads/{machine}\n")
        for run in runs:
            stream.append(f"commit refs/heads/{machine}\ncommitter {_WHO} {run.moment} +0000\n")
            stream.append(f"data {len(run.message.encode())}\n{run.message}\n")
    _git("--git-dir", str(repository), "fast-import", "--quiet", "--force", stdin="".join(stream))
    listed = ("--git-dir", str(repository), "rev-list", "--reverse")
    return {machine: _git(*listed, f"refs/heads/{machine}").split() for machine in ledgers}


def _git(*arguments: str, stdin: str = "") -> str:
    try:
        done = subprocess.run(["git", *arguments], input=stdin.encode(), capture_output=True)
    except OSError as error:
        raise ResultsError(f"asv's pages need git, which does not answer ({error}): install it") from error
    if done.returncode:
        raise ResultsError(f"git {arguments[-1]}: {done.stderr.decode().strip()}")
    return done.stdout.decode()


# A record's samples as asv's own results, and asv's pages of all nightly runs.

_CONFIGURATION = "asv.conf.json"
_PLUGIN = ".prism_bench.report.asv.publisher"
_WRONG_KERNEL = 2  # asv's exit code where a benchmark failed, which the check has reported already


@dataclass(frozen=True)
class AsvProject:
    """asv's configuration in `folder`, and where the results and pages of nightly runs are: below `home`, in `site`."""

    folder: Path
    home: Path
    site: Path

    @property
    def generated(self) -> Path:
        """The folder of files that are made again for every run."""
        return self.folder / ".prism-bench" / "asv"

    def relative(self, path: Path) -> str:
        """Return the path as asv's configuration in `generated` names it."""
        return os.path.relpath(path.resolve(), self.generated.resolve())


def project_at(folder: Path, home: Path, site: Path) -> AsvProject | None:
    """Return asv's project in `folder`; None where asv.conf.json is missing or does not use our suites.

    Raise UsageError if it does and asv is not installed, a ResultsError for a file that cannot be read.
    """
    if not (folder / _CONFIGURATION).is_file():
        return None
    try:
        from asv.util import load_json
    except ImportError:
        raise UsageError(f"{folder / _CONFIGURATION} needs asv: {pip_install('asv')}") from None
    try:
        settings = load_json(str(folder / _CONFIGURATION), js_comments=True)
    except Exception as error:  # asv raises its own errors for invalid JSON
        raise ResultsError(f"{folder / _CONFIGURATION}: not readable ({error})") from error
    return AsvProject(folder, home, site) if _PLUGIN in settings.get("plugins", []) else None


def configuration(project: AsvProject, branches: list[str]) -> dict[str, Any]:
    """Return asv's configuration for the runs, to be written into the own folder; its paths are relative to that."""
    from asv.util import load_json

    settings = load_json(str(project.folder / _CONFIGURATION), js_comments=True)
    places = {
        name: project.relative(project.folder / settings[name])
        for name in ("benchmark_dir", "env_dir")
        if name in settings
    }
    results, pages = project.relative(project.home / "asv-nights"), project.relative(project.site / "nights")
    ours = {"repo": "runs.git", "branches": branches, "results_dir": results, "html_dir": pages}
    return {**settings, **places, **ours, "environment_type": "existing"}


def entered_run(project: AsvProject, path: Path) -> tuple[str, str]:
    """Enter the record's run and make repository and configuration; return the machine and the run's commit."""
    record, folder = store.read(path), project.home / "nights"
    machine = path_part(record.machine["id"])  # a file, a branch and a word of asv's command
    entered(record, path.name, folder / f"{machine}.jsonl")
    ledgers = {ledger.stem: runs for ledger in sorted(folder.glob("*.jsonl")) if (runs := read(ledger))}
    project.generated.mkdir(parents=True, exist_ok=True)
    hashes = commits(ledgers, project.generated / "runs.git")
    text = json_text(configuration(project, list(ledgers)), indent=1)
    write_atomically(project.generated / "asv.json", text.encode())
    return machine, hashes[machine][[run.record for run in ledgers[machine]].index(path.name)]


def hand_over(project: AsvProject, record: Path, log: Path) -> Path:
    """Give asv the record's samples and let it write its pages; return their first page.

    Raise ResultsError if a step fails; `log` has what asv printed.
    """
    machine, commit = entered_run(project, record)
    with log.open("ab") as stream:
        _asv(project, stream.fileno(), "machine", "--yes", "--machine", machine)
        _asv(
            project,
            stream.fileno(),
            "run",
            "--machine",
            machine,
            "--set-commit-hash",
            commit,
            "--record-samples",
            "--environment",
            f"existing:{sys.executable}",
            "--launch-method",
            "forkserver",
            record=record,
        )
        _asv(project, stream.fileno(), "publish", "--no-pull")
    return project.site / "nights" / "index.html"


def _asv(project: AsvProject, log: int, *arguments: str, record: Path | None = None) -> None:
    command = [sys.executable, "-m", "asv", "--config", str(project.generated / "asv.json"), *arguments]
    chosen = {"PRISM_BENCH_ASV_RECORD": str(record.resolve())} if record else {}
    # asv removes the paths of PYTHONPATH from sys.path, also the standard library's path if it is one of them.
    done = subprocess.run(command, cwd=project.folder, env={**os.environ, **chosen}, stdout=log, stderr=log)
    if done.returncode and not (record and done.returncode == _WRONG_KERNEL):
        raise ResultsError(f"asv {arguments[0]} ended with {done.returncode}")

"""A record's samples as asv's own results, and asv's pages of all nightly runs."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_bench.errors import ResultsError, UsageError
from prism_bench.extensions.ci.asv_runs.commits import commits
from prism_bench.extensions.ci.asv_runs.ledger import entered, read
from prism_bench.io.documents import json_text
from prism_bench.io.files import path_part, write_atomically
from prism_bench.io.installation import pip_install
from prism_bench.record import store

CONFIGURATION = "asv.conf.json"
PLUGIN = ".prism_bench.report.asv.publisher"
_WRONG_KERNEL = 2  # asv's exit code where a benchmark failed, which the check has reported already


@dataclass(frozen=True)
class AsvProject:
    """asv's configuration in `folder`, and where the results and pages of nightly runs are: below `home`, in `site`."""

    folder: Path
    home: Path
    site: Path

    @property
    def own(self) -> Path:
        """The folder of what is made again for every run."""
        return self.folder / ".prism-bench" / "asv"

    def relative(self, path: Path) -> str:
        """Return the path as asv's configuration in `own` names it."""
        return os.path.relpath(path.resolve(), self.own.resolve())


def project_at(folder: Path, home: Path, site: Path) -> AsvProject | None:
    """Return asv's project in `folder`; None where asv.conf.json is missing or does not use our suites.

    Raise a UsageError where it does and asv is not installed, a ResultsError for a file that cannot be read.
    """
    if not (folder / CONFIGURATION).is_file():
        return None
    try:
        from asv.util import load_json
    except ImportError:
        raise UsageError(f"{folder / CONFIGURATION} needs asv: {pip_install('asv')}") from None
    try:
        given = load_json(str(folder / CONFIGURATION), js_comments=True)
    except Exception as error:  # asv has own errors for what is no JSON
        raise ResultsError(f"{folder / CONFIGURATION}: not readable ({error})") from error
    return AsvProject(folder, home, site) if PLUGIN in given.get("plugins", []) else None


def configuration(project: AsvProject, branches: list[str]) -> dict[str, Any]:
    """Return asv's configuration for the runs, to be written into the own folder; its paths are relative to that."""
    from asv.util import load_json

    given = load_json(str(project.folder / CONFIGURATION), js_comments=True)
    places = {name: project.relative(project.folder / given[name]) for name in ("benchmark_dir", "env_dir")
              if name in given}  # fmt: skip
    results, pages = project.relative(project.home / "asv-nights"), project.relative(project.site / "nights")
    ours = {"repo": "runs.git", "branches": branches, "results_dir": results, "html_dir": pages}
    return {**given, **places, **ours, "environment_type": "existing"}


def entered_run(project: AsvProject, path: Path) -> tuple[str, str]:
    """Enter the record's run and make repository and configuration; return the machine and the run's commit."""
    record, folder = store.read(path), project.home / "nights"
    machine = path_part(record.machine["id"])  # a file, a branch and a word of asv's command
    entered(record, path.name, folder / f"{machine}.jsonl")
    ledgers = {ledger.stem: runs for ledger in sorted(folder.glob("*.jsonl")) if (runs := read(ledger))}
    project.own.mkdir(parents=True, exist_ok=True)
    hashes = commits(ledgers, project.own / "runs.git")
    text = json_text(configuration(project, list(ledgers)), indent=1)
    write_atomically(project.own / "asv.json", text.encode())
    return machine, hashes[machine][[run.record for run in ledgers[machine]].index(path.name)]


def hand_over(project: AsvProject, record: Path, log: Path) -> Path:
    """Give asv the record's samples and let it write its pages; return their first page.

    Raise a ResultsError where a step fails; `log` has what asv printed.
    """
    machine, commit = entered_run(project, record)
    with log.open("ab") as stream:
        _asv(project, stream.fileno(), "machine", "--yes", "--machine", machine)
        _asv(project, stream.fileno(), "run", "--machine", machine, "--set-commit-hash", commit, "--record-samples",
             "--environment", f"existing:{sys.executable}", "--launch-method", "forkserver", record=record)  # fmt: skip
        _asv(project, stream.fileno(), "publish", "--no-pull")
    return project.site / "nights" / "index.html"


def _asv(project: AsvProject, log: int, *words: str, record: Path | None = None) -> None:
    command = [sys.executable, "-m", "asv", "--config", str(project.own / "asv.json"), *words]
    chosen = {"PRISM_BENCH_ASV_RECORD": str(record.resolve())} if record else {}
    # asv takes what PYTHONPATH names out of sys.path, the standard library too where it is named.
    done = subprocess.run(command, cwd=project.folder, env={**os.environ, **chosen}, stdout=log, stderr=log)
    if done.returncode and not (record and done.returncode == _WRONG_KERNEL):
        raise ResultsError(f"asv {words[0]} ended with {done.returncode}")

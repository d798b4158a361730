"""Repository of nightly runs: a branch for each machine, an empty commit for each run."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.extensions.ci.asv_runs.ledger import NightlyRun

_WHO = "Prism Bench <nights@localhost>"  # part of the commits' hashes, which kept results are named by


def commits(ledgers: Mapping[str, Sequence[NightlyRun]], repository: Path) -> dict[str, list[str]]:
    """Make the repository, a branch per machine and an empty commit per run; return the hashes by machine."""
    _git("init", "--quiet", "--bare", "--initial-branch", next(iter(ledgers)), str(repository))
    stream = "".join(_branch(machine, runs) for machine, runs in ledgers.items())
    _git("--git-dir", str(repository), "fast-import", "--quiet", "--force", stdin=stream)
    listed = ("--git-dir", str(repository), "rev-list", "--reverse")
    return {machine: _git(*listed, f"refs/heads/{machine}").split() for machine in ledgers}


def _branch(machine: str, runs: Sequence[NightlyRun]) -> str:
    made = [f"reset refs/heads/{machine}\n"]
    for run in runs:
        message = run.message.encode()
        made.append(f"commit refs/heads/{machine}\ncommitter {_WHO} {run.moment} +0000\n")
        made.append(f"data {len(message)}\n{run.message}\n")
    return "".join(made)


def _git(*words: str, stdin: str = "") -> str:
    try:
        done = subprocess.run(["git", *words], input=stdin.encode(), capture_output=True)
    except OSError as error:
        raise ResultsError(f"asv's pages need git, which does not answer ({error}): install it") from error
    if done.returncode:
        raise ResultsError(f"git {words[-1]}: {done.stderr.decode().strip()}")
    return done.stdout.decode()

"""A commit for every nightly run, so that asv draws an unchanged commit again and again.

asv names a result by its commit: measured again, the same commit's old numbers are overwritten. So every nightly run
gets another commit in a small repository that holds nothing else, and asv gets that commit.

    reports/nights/<machine>.jsonl   the ledger: one line for each run; kept
    reports/asv-nights/              asv's results, by run; kept
    .asv/nights.git                  the repository, made again from the ledgers: the same lines give the same commits
    .asv/nights.json                 asv's configuration for it: asv.conf.json with the places changed

`python -m suites.nights RECORD` enters the record's run, once however often it is called, and prints machine and
commit.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suites.listing import CHECKOUT

if TYPE_CHECKING:
    from prism_bench.run_record import RunRecord

_WHO = "Prism Bench <nights@localhost>"


@dataclass(frozen=True)
class Night:
    """One record: when it was begun (UTC, ISO 8601), its file's name, what was measured and with which software."""

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


def entered(record: RunRecord, name: str, ledger: Path) -> list[Night]:
    """Return the runs of the ledger, oldest first, with that of the record called `name`; append a new one."""
    from prism_bench.files import write_atomically

    nights = read(ledger)
    if name not in [night.record for night in nights]:
        software = {tool: record.software[tool] for tool in ("driver", "nvrtc", "numpy") if tool in record.software}
        nights = [*nights, Night(record.created, name, record.commit, software)]
        write_atomically(ledger, "".join(json.dumps(asdict(night)) + "\n" for night in nights).encode())
    return nights


def read(ledger: Path) -> list[Night]:
    """Return the runs of a ledger in the order of entry; raise a ResultsError with the line that is none."""
    from prism_bench.errors import ResultsError

    nights = []
    for number, line in enumerate(ledger.read_text("utf-8").splitlines() if ledger.exists() else (), 1):
        try:
            night = Night(**json.loads(line))
            _ = night.moment, night.message  # a line that has neither is no run
        except (ValueError, TypeError, AttributeError) as error:
            raise ResultsError(f"{ledger}:{number}: not a nightly run ({error}); remove or correct the line") from error
        nights.append(night)
    return nights


def commits(ledgers: dict[str, list[Night]], repository: Path) -> dict[str, list[str]]:
    """Make the repository, a branch per machine and an empty commit per run; return the hashes by machine."""
    _git("init", "--quiet", "--bare", "--initial-branch", next(iter(ledgers)), str(repository))
    stream = "".join(_branch(machine, nights) for machine, nights in ledgers.items())
    _git("--git-dir", str(repository), "fast-import", "--quiet", "--force", stdin=stream)
    listed = ("--git-dir", str(repository), "rev-list", "--reverse")
    return {machine: _git(*listed, f"refs/heads/{machine}").split() for machine in ledgers}


def _branch(machine: str, nights: list[Night]) -> str:
    made = [f"reset refs/heads/{machine}\n"]
    for night in nights:
        message = night.message.encode()
        made.append(f"commit refs/heads/{machine}\ncommitter {_WHO} {night.moment} +0000\n")
        made.append(f"data {len(message)}\n{night.message}\n")
    return "".join(made)


def _git(*words: str, stdin: str = "") -> str:
    done = subprocess.run(["git", *words], input=stdin.encode(), capture_output=True)
    if done.returncode:
        sys.exit(f"suites.nights: git {words[-1]}: {done.stderr.decode().strip()}")
    return done.stdout.decode()


def configuration(branches: list[str]) -> dict[str, Any]:
    """Return asv's configuration for the runs, to be written into .asv; paths are relative to that folder."""
    from asv.util import load_json

    given = load_json(CHECKOUT / "asv.conf.json", js_comments=True)
    places = {name: f"../{given[name]}" for name in ("benchmark_dir", "env_dir")}
    ours = {"repo": "nights.git", "branches": branches, "results_dir": "../reports/asv-nights"}
    return {**given, **places, **ours, "html_dir": "../reports/site/nights", "environment_type": "existing"}


def main(path: Path) -> str:
    """Enter the record's run and make repository and configuration; return the machine and the run's commit."""
    from prism_bench import store
    from prism_bench.files import path_part, write_atomically

    record, folder = store.read(path), CHECKOUT / "reports" / "nights"
    machine = path_part(record.machine["id"])  # a file, a branch and a word of the shell
    entered(record, path.name, folder / f"{machine}.jsonl")
    ledgers = {ledger.stem: nights for ledger in sorted(folder.glob("*.jsonl")) if (nights := read(ledger))}
    hashes = commits(ledgers, CHECKOUT / ".asv" / "nights.git")
    text = json.dumps(configuration(list(ledgers)), indent=1)
    write_atomically(CHECKOUT / ".asv" / "nights.json", text.encode())
    return f"{machine} {hashes[machine][[night.record for night in ledgers[machine]].index(path.name)]}"


if __name__ == "__main__":
    from prism_bench.errors import PrismBenchError

    try:
        print(main(Path(sys.argv[1])))
    except PrismBenchError as error:
        sys.exit(f"suites.nights: {error}")

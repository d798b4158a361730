"""A commit for every night, so that asv draws an unchanged commit night after night.

asv names a result by its commit: measured again, the same commit's old numbers are overwritten. So every night gets a
commit of its own in a small repository that holds nothing else, and asv is told that one.

    reports/nights/<machine>.jsonl   the ledger: one line for each night; kept
    reports/asv-nights/              asv's results, by night; kept
    .asv/nights.git                  the repository, made again from the ledgers: the same lines give the same commits
    .asv/nights.json                 asv's configuration for it: asv.conf.json with the places changed

`python -m suites.nights RECORD` enters the record's night, once however often asked, and prints machine and commit.
"""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from suites.listing import CHECKOUT

_WHO = "Prism Bench <nights@localhost>"


@dataclass(frozen=True)
class Night:
    """One record: when it was begun (UTC, ISO 8601), its file's name, what was measured and with which software."""

    created: str
    record: str
    commit: str | None
    software: dict

    @property
    def moment(self) -> int:
        """Seconds since 1970."""
        return round(datetime.fromisoformat(self.created.replace("Z", "")).replace(tzinfo=UTC).timestamp())

    @property
    def message(self) -> str:
        """What asv shows for the night's commit."""
        facts = ", ".join(f"{name} {version}" for name, version in sorted(self.software.items()))
        return f"{self.created} {(self.commit or 'no commit')[:8]}\n\n{self.record}\n{facts}\n"


def entered(record, name: str, ledger: Path) -> list[Night]:
    """The nights of the ledger, oldest first, with that of the record called `name`; a new one is appended."""
    from prism_bench.files import write_atomically

    nights = read(ledger)
    if name not in [night.record for night in nights]:
        software = {tool: record.software[tool] for tool in ("driver", "nvrtc", "numpy") if tool in record.software}
        nights = [*nights, Night(record.created, name, record.commit, software)]
        write_atomically(ledger, "".join(json.dumps(asdict(night)) + "\n" for night in nights).encode())
    return nights


def read(ledger: Path) -> list[Night]:
    """The nights of a ledger in the order in which they were entered; a ResultsError with the line that is none."""
    from prism_bench.errors import ResultsError

    nights = []
    for number, line in enumerate(ledger.read_text("utf-8").splitlines() if ledger.exists() else (), 1):
        try:
            night = Night(**json.loads(line))
            night.moment, night.message  # noqa: B018 - a line that has neither is no night
        except (ValueError, TypeError, AttributeError) as error:
            raise ResultsError(f"{ledger}:{number}: not a night ({error}); take the line out or mend it") from error
        nights.append(night)
    return nights


def commits(ledgers: dict[str, list[Night]], repository: Path) -> dict[str, list[str]]:
    """Make the repository: a branch for each machine, an empty commit for each night; the hashes by machine."""
    _git("init", "--quiet", "--bare", "--initial-branch", next(iter(ledgers)), str(repository))
    stream = "".join(_branch(machine, nights) for machine, nights in ledgers.items())
    _git("--git-dir", str(repository), "fast-import", "--quiet", "--force", stdin=stream)
    listed = ("--git-dir", str(repository), "rev-list", "--reverse")
    return {machine: _git(*listed, f"refs/heads/{machine}").split() for machine in ledgers}


def _branch(machine, nights):
    made = [f"reset refs/heads/{machine}\n"]
    for night in nights:
        message = night.message.encode()
        made.append(f"commit refs/heads/{machine}\ncommitter {_WHO} {night.moment} +0000\n")
        made.append(f"data {len(message)}\n{night.message}\n")
    return "".join(made)


def _git(*words, stdin=""):
    done = subprocess.run(["git", *words], input=stdin.encode(), capture_output=True)
    if done.returncode:
        sys.exit(f"nights: git {words[-1]}: {done.stderr.decode().strip()}")
    return done.stdout.decode()


def configuration(branches: list[str]) -> dict:
    """asv's configuration for the nights, to lie in .asv; places are seen from there, as asv sees them."""
    from asv.util import load_json

    given = load_json(CHECKOUT / "asv.conf.json", js_comments=True)
    places = {name: f"../{given[name]}" for name in ("benchmark_dir", "env_dir")}
    ours = {"repo": "nights.git", "branches": branches, "results_dir": "../reports/asv-nights"}
    return {**given, **places, **ours, "html_dir": "../reports/site/nights", "environment_type": "existing"}


def main(path: Path) -> str:
    """Enter the record's night and make repository and configuration; the machine and the night's commit."""
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
        sys.exit(f"nights: {error}")

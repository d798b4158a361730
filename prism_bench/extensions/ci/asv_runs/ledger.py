"""Ledger of the nightly runs of one machine: a line of JSON for each."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.io.documents import json_line
from prism_bench.io.files import write_atomically
from prism_bench.record.run_record import RunRecord

_TOOLS = ("driver", "nvrtc", "numpy")


@dataclass(frozen=True)
class NightlyRun:
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
    """Return the runs of a ledger in the order of entry; raise a ResultsError with the line that is none."""
    runs: list[NightlyRun] = []
    for number, line in enumerate(ledger.read_text("utf-8").splitlines() if ledger.exists() else (), 1):
        try:
            run = NightlyRun(**json.loads(line))
            _ = run.moment, run.message  # a line that has neither is no run
        except (ValueError, TypeError, AttributeError) as error:
            raise ResultsError(f"{ledger}:{number}: not a nightly run ({error}); remove or correct the line") from error
        runs.append(run)
    return runs

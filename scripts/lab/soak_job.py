"""The run that a soak kills: the null backend, frequent saves, and a journal of what was done.

Started as `python -m lab.soak_job FOLDER JOURNAL CATALOGUE`. Lines of the journal: `begin DONE` where a
task begins and DONE are finished, and `saved NAME RESULTS DONE` when a save has ended. All records are of one second,
as if the clock had been set back for each.
"""

from prism_bench.io import files

if __name__ == "__main__":
    files.starting()

import sys
from dataclasses import replace
from pathlib import Path

from prism_bench.catalogue import discover
from prism_bench.io.files import Saver
from prism_bench.measure import Criterion
from prism_bench.record import store
from prism_bench.record.run_record import RunRecord
from prism_bench.run import Progress, Settings, run

CREATED = "2026-01-01T00:00:00"
QUICK = dict.fromkeys(("cold_time", "hot_time", "wall_time"), Criterion(min_samples=3, max_samples=3))


def results_of(record: RunRecord) -> int:
    """Return how many results of a case in a process the record holds."""
    return sum(max((len(one.processes) for one in case.measurements), default=1) for case in record.cases)


class SoakJournal:
    """What the job did, written line by line, so that a kill leaves every line before it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self._done = 0

    def begin(self, progress: Progress) -> None:
        """Note a task that begins."""
        self._done = progress.done
        self._file.write(f"begin {progress.done}\n")

    def saved(self, path: Path, record: RunRecord) -> None:
        """Note a save that has ended."""
        self._file.write(f"saved {path.name} {results_of(record)} {self._done}\n")


@files.guarded
def job(folder: Path, journal: SoakJournal, catalogue: Path) -> None:
    """Measure the catalogue as `prism-bench run` does; ends with 2 where it was ended before its time."""
    place, found = store.RecordPlace(folder), discover(catalogue)

    def write(record: RunRecord) -> Path:
        path = place.save(replace(record, created=CREATED))
        journal.saved(path, record)
        return path

    keep = Saver(write)
    settings = Settings(processes=3, criteria={**Settings().criteria, **QUICK})
    with files.held():
        record = run(found, "null", found.cases(labels=["S0"]), settings, journal.begin, keep=keep)
        if record.cases:
            keep.finish(record)
        raise SystemExit(keep.exit_code(0 if record.complete else 2))


if __name__ == "__main__":
    try:
        job(Path(sys.argv[1]), SoakJournal(Path(sys.argv[2])), Path(sys.argv[3]))
    finally:
        files.closed()

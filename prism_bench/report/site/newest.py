"""The newest run of each machine, backend and environment; a record that cannot be read is skipped and named."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.record import store
from prism_bench.record.raw_source import is_present
from prism_bench.record.run_record import RunRecord
from prism_bench.record.store import History
from prism_bench.report.site.places import Places


@dataclass(frozen=True)
class NewestRecord:
    """The newest readable `record` of one owner, at `path`, and the newer files that were passed by."""

    machine: str
    record: RunRecord
    path: Path
    passed_by: tuple[str, ...] = ()


def newest_of_each(
    history: History, places: Places, given: RunRecord | None = None, path: Path | None = None
) -> list[NewestRecord]:
    """Return that of the newest commit of each machine, backend and environment; first the `given` one, or the newest.

    A ResultsError where no record can be read.
    """
    found = [] if given is None or path is None else [_given(given, path, history)]
    known = {one.record.owner for one in found}
    problems = tuple(f"{one.file}: {one.reason}" for one in history.problems)
    for facts in reversed(history.records):
        if facts.owner not in known and is_present(places.runs / facts.file):
            known.add(facts.owner)
            record = store.read(places.runs / facts.file)
            found.append(NewestRecord(facts.machine, record, places.runs / facts.file, _of(facts.machine, problems)))
    if not found:
        store.newest(places.runs)
        raise ResultsError(history.problems[0].reason)
    return found


def _given(record: RunRecord, path: Path, history: History) -> NewestRecord:
    problems = tuple(f"{one.file}: {one.reason}" for one in history.problems)
    machine = str(record.machine["id"])
    return NewestRecord(machine, record, path, _of(machine, problems))


def _of(machine: str, problems: Sequence[str]) -> tuple[str, ...]:
    """Return the problems of files in the machine's folder."""
    return tuple(problem for problem in problems if problem.startswith(f"{machine}/"))

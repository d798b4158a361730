"""What the exporter serves of the newest record: its times, energies and budgets."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from prism_bench.analysis.run_analysis import read
from prism_bench.catalogue import of_project
from prism_bench.errors import ResultsError
from prism_bench.monitor.exporter import Newest
from prism_bench.record import store

_MOST_TRIED = 64  # records, the newest first, until one can be read


def _print(text: str) -> None:
    print(text, file=sys.stderr)


def exported(runs: Path, folder: Path | None, report: Callable[[str], None] = _print) -> Newest:
    """Return the figures of the newest readable record, and which newer ones cannot be read; empty without a record.

    `folder` is the catalogue's; `report` takes lines about problems.
    """
    unreadable: list[str] = []
    for path in reversed(store.records_in(runs)[-_MOST_TRIED:]):
        figures = _figures(path, _stamp(path), folder, report)
        if figures:
            return replace(figures, unreadable=tuple(unreadable))
        unreadable.append(f"{path.parent.name}/{path.name}")
    return Newest(unreadable=tuple(unreadable))


def _stamp(path: Path) -> tuple[int, int]:
    """Return what changes when a run that is under way writes its record again."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=_MOST_TRIED)
def _figures(path: Path, stamp: tuple[int, int], folder: Path | None, report: Callable[[str], None]) -> Newest | None:
    """Return the figures of the record, None where it cannot be read; read it when it is new, not at every scrape."""
    catalogue = of_project(folder)
    for problem in catalogue.problems:
        report(f"catalogue {problem}")
    try:
        reading = read(store.read(path), catalogue)
    except ResultsError as error:
        report(f"not served: {error}")
        return None
    timed = [(case.name, one) for case in reading.cases for one in case.measurements if one.subject == "kernel"]
    valid = [(name, one) for name, one in timed if one.valid]
    return Newest(
        seconds=[(name, one.metric, one.median) for name, one in valid if one.median is not None],
        joules=[(name, one.energy.joules) for name, one in valid if one.energy and one.energy.joules is not None],
        budgets=[
            (one.case, one.budget.metric, one.verdict == "met")
            for one in reading.budgets
            if one.verdict in ("met", "missed")
        ],
    )

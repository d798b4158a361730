"""Figures of the newest record that the exporter serves: times, energies and budgets."""

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
from prism_bench.spec.metric import MEASURED

_MOST_TRIED = 64  # records, the newest first, until one can be read


def exported(runs: Path, folder: Path | None, report: Callable[[str], None] | None = None) -> Newest:
    """Return the figures of the newest readable record, and which newer ones cannot be read; empty without a record.

    `folder` is the catalogue's; `report` takes lines about problems, which go to stderr without it.
    """
    report = report or _print
    unreadable: list[str] = []
    for path in reversed(store.records_in(runs)[-_MOST_TRIED:]):
        figures = _figures(path, _stamp(path), folder, report)
        if figures:
            return replace(figures, unreadable=tuple(unreadable))
        unreadable.append(f"{path.parent.name}/{path.name}")
    return Newest(unreadable=tuple(unreadable))


def _print(text: str) -> None:
    print(text, file=sys.stderr)


def _stamp(path: Path) -> tuple[int, int]:
    """Return time and size of the file, which change when a run in progress writes its record again."""
    try:
        stat = path.stat()
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=_MOST_TRIED)
def _figures(path: Path, stamp: tuple[int, int], folder: Path | None, report: Callable[[str], None]) -> Newest | None:
    """Return the figures of the record, None if it cannot be read; `stamp` identifies its version in the cache."""
    catalogue = of_project(folder)
    for problem in catalogue.problems:
        report(f"catalogue {problem}")
    try:
        reading = read(store.read(path), catalogue)
    except ResultsError as error:
        report(f"not served: {error}")
        return None
    timed = [
        (case.name, measurement)
        for case in reading.cases
        for measurement in case.measurements
        if measurement.subject == "kernel"
    ]
    valid = [(name, measurement) for name, measurement in timed if measurement.valid]
    return Newest(
        seconds=[
            (name, measurement.metric, measurement.median)
            for name, measurement in valid
            if measurement.median is not None and measurement.metric in MEASURED
        ],
        joules=[
            (name, measurement.energy.joules)
            for name, measurement in valid
            if measurement.energy and measurement.energy.joules is not None
        ],
        budgets=[
            (budget.case, budget.budget.metric, budget.verdict == "met")
            for budget in reading.budgets
            if budget.verdict in ("met", "missed")
        ],
    )

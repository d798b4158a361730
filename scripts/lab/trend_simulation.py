"""Generated series and histories through our trend, asv's detector and Apache Otava's: reports/judgement/trends.csv.

The rows are made by `scripts/lab/trends.py`, which defines each detector, and by
`scripts/lab/planted_causes.py`: histories of records in which the cause of a step is known.
"""

import argparse
import csv
from collections.abc import Collection, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from lab import REPOSITORY, planted_causes, trends
from prism_bench.workflows.compile_table import write_csv


def kept(path: Path, names: Collection[str]) -> list[dict[str, str]]:
    """Return the rows of the table at `path` that are of other detectors: every series follows from its seed."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return [line for line in csv.DictReader(file) if line["detector"] not in names]


def main() -> None:
    """Simulate, write the table and print its rows."""
    known = [*trends.DETECTORS, planted_causes.DETECTOR]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    listed = ", ".join(known).replace("%", "%%")  # argparse formats help texts
    parser.add_argument("detectors", nargs="*", help=f"only these, of {listed}; the other rows stay")
    parser.add_argument("--series", type=int, default=400, help="for each row with a step")
    parser.add_argument("--null", type=int, default=1000, help="for each row without one")
    parser.add_argument("--histories", type=int, default=40, help="for each cause and noise")
    parser.add_argument("--processes", type=int, help="default: one per core")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "reports" / "judgement" / "trends.csv")
    chosen = parser.parse_args()
    names = chosen.detectors or known
    detectors = [name for name in names if name in trends.DETECTORS]
    absent = [name for name in detectors if not trends.version(name)]
    why = [{"detector": name, "why": f"{trends.DETECTORS[name][1]} is not installed"} for name in absent]
    present = [name for name in detectors if name not in absent]
    with ProcessPoolExecutor(chosen.processes, mp_context=get_context("fork")) as pool:
        rows: list[Mapping[str, object]] = list(pool.map(trends.row, trends.cells(present, chosen.series, chosen.null)))
        if planted_causes.DETECTOR in names:
            rows += pool.map(planted_causes.row, planted_causes.cells(chosen.histories))
    rows += [*kept(chosen.output, names), *why]
    write_csv(rows, chosen.output, trends.COLUMNS)
    for line in rows:
        print(*(line.get(name, "") for name in trends.COLUMNS), sep="  ")

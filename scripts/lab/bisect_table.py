"""How often a bisection names the right commit, and what that costs: `reports/judgement/bisect.csv`.

The ways to search are those of `scripts/lab/bisect_methods.py`; all search the same histories. In a clean
history nothing changed, and whatever is named is wrong.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from lab import REPOSITORY
from lab.bisect_methods import METHODS, GeneratedHistory, version
from lab.trends import wilson
from prism_bench.workflows.compile_table import write_csv

COMMITS, SLOWDOWNS = {64: 1.0, 512: 0.4}, (0.0, 0.02, 0.05)  # commits with the share of histories that are generated
COLUMNS = (
    "method", "version", "commits", "slowdown", "histories", "named_right", "lower", "upper", "named_wrong",
    "nothing_named", "mean_processes", "most_processes_of_95", "why",
)  # fmt: skip
_SEED = 20261126


@dataclass(frozen=True)
class BisectCell:
    """One row of the table: a `method` on so many `histories` of so many `commits`, each with a planted `slowdown`."""

    method: str
    commits: int
    slowdown: float
    histories: int


def cells(methods: Sequence[str], planted: int, clean: int) -> Iterator[BisectCell]:
    """Yield the cells of these methods: so many histories with a slowdown, and so many without one."""
    for commits, share in COMMITS.items():
        for slowdown in SLOWDOWNS:
            histories = round(share * (planted if slowdown else clean))
            yield from (BisectCell(method, commits, slowdown, histories) for method in methods)


def row(cell: BisectCell) -> dict[str, str | int | float | None]:
    """Return the cell's row: the share of histories in which the planted commit was named, another answer, or none.

    Several named commits are wrong, also where the planted one is among them. `lower` and `upper` bound the first of
    these with 95 %; in clean histories, the share in which any was named.
    """
    search, right, wrong, costs = METHODS[cell.method][0], 0, 0, list[int]()
    for number in range(cell.histories):
        rng = np.random.default_rng([_SEED, cell.commits, round(1e3 * cell.slowdown), number])
        place = int(rng.integers(1, cell.commits))
        history = GeneratedHistory(cell.commits, place, cell.slowdown, rng)
        found = search(history)
        is_right = bool(cell.slowdown) and found == place
        right, wrong = right + is_right, wrong + (found is not None and not is_right)
        costs.append(history.processes)
    share, lower, upper = wilson(right if cell.slowdown else wrong, cell.histories)
    return {
        "method": cell.method,
        "version": version(cell.method),
        "commits": cell.commits,
        "slowdown": cell.slowdown,
        "histories": cell.histories,
        "named_right": f"{share:.4f}" if cell.slowdown else "",
        "lower": f"{lower:.4f}",
        "upper": f"{upper:.4f}",
        "named_wrong": f"{wrong / cell.histories:.4f}",
        "nothing_named": f"{1 - (right + wrong) / cell.histories:.4f}",
        "mean_processes": f"{np.mean(costs):.1f}",
        "most_processes_of_95": int(np.quantile(costs, 0.95, method="higher")),
    }


def main() -> None:
    """Simulate, write the table and print its rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planted", type=int, default=500, help="histories for each slowdown")
    parser.add_argument("--clean", type=int, default=1000, help="histories without one")
    parser.add_argument("--jobs", type=int, default=1, help="rows that are simulated at once")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "reports" / "judgement" / "bisect.csv")
    chosen = parser.parse_args()
    present = [name for name in METHODS if version(name)]
    rows: list[Mapping[str, object]] = []
    with ProcessPoolExecutor(chosen.jobs, get_context("spawn")) as pool:
        for line in pool.map(row, cells(present, chosen.planted, chosen.clean)):
            print(*line.values(), sep=",", flush=True)
            rows.append(line)
    rows += [{"method": name, "why": "its package is not installed"} for name in METHODS if name not in present]
    write_csv(rows, chosen.output, COLUMNS)


if __name__ == "__main__":
    main()

"""How often `prism-bench bisect` names the planted commit on this machine: reports/judgement/<machine>/bisect.csv.

Each search has a history of 16 commits in a new git repository. One commit adds 5 % or 2 % to a kernel's time, or none
does; the seed is fixed. Searches that the table has are not repeated, so a later call goes on. One that the limit of
the whole call ended is not kept. A GPU takes about 45 s for a search, and 15 s at the beginning of a new table.
"""

import argparse
import csv
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import REPOSITORY
from lab.own_repository.histories import CASE, ITERATIONS, PlantedHistory, added_iterations, iterations_of_all, plant
from lab.own_repository.trial import TrialCommand, TrialRepository, machine_of
from prism_bench import __version__
from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv

COLUMNS = (
    "slowdown", "history", "commits", "codes", "added_iterations", "planted", "answer", "found", "ended", "probability",
    "measured_slowdown", "measurements", "processes", "seconds", "exit_code", "version",
)  # fmt: skip
SLOWDOWNS = (0.05, 0.02, 0.0)
_LEAST = 60.0  # seconds that a search is expected to take before one was made

SearchRow = Mapping[str, object]


@dataclass(frozen=True)
class SearchEffort:
    """What a search may take: `seconds`, and so many `processes` a side for each measurement, on `backend`."""

    backend: str
    processes: int
    seconds: float


def searched(history: PlantedHistory, added: int, effort: SearchEffort) -> SearchRow:
    """Search the history in a new repository; return the row of the table."""
    with tempfile.TemporaryDirectory(prefix="prism-bench-bisect-") as folder:
        repository = TrialRepository(Path(folder))
        commits = plant(repository, history, added)
        done = repository.command(
            "bisect",
            commits[0],
            commits[-1],
            CASE,
            "--json",
            "--backend",
            effort.backend,
            "--processes",
            str(effort.processes),
            "--time-limit",
            str(round(max(1.0, effort.seconds))),
        )
    return row(history, added, commits, done)


def row(history: PlantedHistory, added: int, commits: Sequence[str], done: TrialCommand) -> SearchRow:
    """Return the row of a search that ended. `found` is `right`, `wrong` (another commit, or several) or `nothing`.

    Where nothing is planted, `right` is that nothing is named.
    """
    plain: Mapping[str, Any] = done.plain
    answer = [commits.index(culprit[0]) for culprit in plain["culprits"]]
    planted, nodes = history.planted, plain["nodes"]
    is_right = plain["ended"] == "decided" and answer == ([] if planted is None else [planted])
    last = nodes[-1]["ratio"]
    return {
        "slowdown": history.slowdown,
        "history": history.number,
        "commits": history.commits,
        "codes": len(nodes),
        "added_iterations": added,
        "planted": "" if planted is None else planted,
        "answer": " ".join(map(str, answer)),
        "found": "right" if is_right else "wrong" if answer else "nothing",
        "ended": plain["ended"],
        "probability": f"{max(one['change'] for one in nodes) if answer else plain['none']:.4f}",
        "measured_slowdown": "" if last is None else f"{last - 1:.5f}",
        "measurements": plain["measurements"],
        "processes": 2 * sum(one["processes"] for one in nodes),
        "seconds": done.seconds,
        "exit_code": done.exit_code,
        "version": __version__,
    }


def kept_rows(path: Path) -> list[SearchRow]:
    """Return the rows of a table of an earlier call; a ResultsError where it is another table."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if any(tuple(one) != COLUMNS for one in rows):
        raise ResultsError(f"{path}: its columns are others: name another file, or remove it")
    return list(rows)


def missing(rows: Sequence[SearchRow], wanted: Sequence[PlantedHistory]) -> list[PlantedHistory]:
    """Return the histories that no row is of."""
    done = {tuple(str(one[name]) for name in ("slowdown", "history", "commits", "codes")) for one in rows}
    return [
        one for one in wanted if (str(one.slowdown), str(one.number), str(one.commits), str(one.codes + 1)) not in done
    ]


def whole_of(rows: Sequence[SearchRow], backend: str) -> float:
    """Return how many iterations take as long as the kernel: as an earlier call measured it, else measured now."""
    for one in rows:
        if float(str(one["slowdown"])) and int(str(one["added_iterations"])):
            return int(str(one["added_iterations"])) / float(str(one["slowdown"]))
    with tempfile.TemporaryDirectory(prefix="prism-bench-bisect-") as folder:
        return iterations_of_all(TrialRepository(Path(folder)), backend)


def searches(
    rows: list[SearchRow], wanted: Sequence[PlantedHistory], effort: SearchEffort, limit: float
) -> Iterator[SearchRow]:
    """Yield the rows of the histories that have none yet, until the next one would end after `limit` seconds."""
    end, longest = time.monotonic() + limit, _LEAST
    todo = missing(rows, wanted)
    whole = whole_of(rows, effort.backend) if any(one.slowdown for one in todo) else float(ITERATIONS)
    for history in todo:
        left = end - time.monotonic()
        if left < min(longest, effort.seconds):
            return
        allowed = min(left, effort.seconds)
        found = searched(
            history, added_iterations(history.slowdown, whole), SearchEffort(effort.backend, effort.processes, allowed)
        )
        if found["ended"] == "time limit" and allowed < effort.seconds:
            return
        longest = max(longest, float(str(found["seconds"])))
        yield found


def summary(rows: Sequence[SearchRow]) -> list[str]:
    """Return a line for each slowdown: how many searches were right, and what they took."""
    lines: list[str] = []
    for slowdown in sorted({float(str(one["slowdown"])) for one in rows}, reverse=True):
        own = [one for one in rows if float(str(one["slowdown"])) == slowdown]
        right = sum(one["found"] == "right" for one in own)
        seconds = sum(float(str(one["seconds"])) for one in own) / len(own)
        lines.append(
            f"{slowdown:.0%}: {right} of {count_text(len(own), 'search', 'searches')} right, {seconds:.0f} s each"
        )
    return lines


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="histories for each slowdown")
    parser.add_argument("--seconds", type=float, default=550, help="no search begins that would end later")
    parser.add_argument("--search-seconds", type=float, default=240, help="a search ends undecided after these")
    parser.add_argument("--slowdown", type=float, action="append", help="0.05, 0.02 and 0 unless given")
    parser.add_argument("--commits", type=int, default=16, help="of each history")
    parser.add_argument("--codes", type=int, default=5, help="commits of each history that change the machine code")
    parser.add_argument("--processes", type=int, default=2, help="of each side of a measurement")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--output", type=Path, help="the table; below reports/judgement unless given")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Search histories and write the table after each; return 2 where that did not work."""
    chosen = _options(words)
    slowdowns: tuple[float, ...] = tuple(chosen.slowdown or SLOWDOWNS)
    try:
        wanted = [
            PlantedHistory(slowdown, number, chosen.commits, chosen.codes)
            for number in range(chosen.repeat)
            for slowdown in slowdowns
        ]
        output: Path = chosen.output or REPOSITORY / "reports" / "judgement" / machine_of(chosen.backend) / "bisect.csv"
        rows = kept_rows(output)
        effort = SearchEffort(chosen.backend, chosen.processes, chosen.search_seconds)
        for found in searches(rows, wanted, effort, chosen.seconds):
            print(*found.values(), sep=",", flush=True)
            rows.append(found)
            write_csv(rows, output, COLUMNS)
    except PrismBenchError as error:
        print(f"measure_bisect: {error}", file=sys.stderr)
        return 2
    left = len(missing(rows, wanted))
    print(*summary(rows), f"{count_text(left, 'search', 'searches')} left; {output}", sep="\n")
    return 0

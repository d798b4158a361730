"""Fuzz of every command that reads records, in several processes: damaged records, and reports/robustness/records.csv.

No answer may be a traceback or a wrong number; reports/robustness/README.md explains the table. The seed is fixed; one
core takes about half an hour for 10,000 records. Ends with 1 where an answer was wrong.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from prism_bench import store
from prism_bench.strict_json import json_text
from prism_bench.studies import REPOSITORY
from prism_bench.studies.csv_table import write_table
from prism_bench.studies.exported import exported
from prism_bench.studies.fuzz_bench import asking, bench_in
from prism_bench.studies.record_fuzz import Findings, fuzz

COLUMNS = ("of", "name", "asked", "refused", "ended_with_0", "ended_with_1", "ended_with_3", "tracebacks", "wrong")


def table(findings: Findings) -> Iterator[dict[str, object]]:
    """Yield a line for each kind of damage, where `asked` counts records, and for each command."""
    lines = [
        ("damage", kind, count, findings.refused[kind], "", "", "") for kind, count in sorted(findings.records.items())
    ]
    lines += [("command", name, count, *(findings.codes[name, code] for code in (2, 0, 1, 3)))
              for name, count in findings.asked.items()]  # fmt: skip
    for line in lines:
        place = ("command", "damage").index(line[0])
        odd = [sum(one[place] == line[1] for one in found) for found in (findings.crashes, findings.wrong)]
        yield dict(zip(COLUMNS, (*line, *odd), strict=True))


def main(command_line: Callable[[], None]) -> int:
    """Fuzz the command line and write the table; return the exit code.

    Every process imports `command_line` by its name, so it is a function of a module.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes, each with a different seed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no record later")
    parser.add_argument("--seed", type=int, default=17, help="of the first process")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "reports" / "robustness" / "records.csv")
    chosen = parser.parse_args()
    count = -(-chosen.records // chosen.jobs)
    work = partial(fuzz_with_seed, command_line=command_line, count=count, seconds=chosen.seconds)
    found = Findings()
    with get_context("spawn").Pool(chosen.jobs) as pool:
        for one in pool.imap_unordered(work, range(chosen.seed, chosen.seed + chosen.jobs)):
            found.add(one)
        pool.close()
        pool.join()
    write_table(table(found), chosen.output.resolve(), COLUMNS)
    for one in [*found.crashes[:20], *found.wrong[:20]]:
        print(*one, sep="\n  ", end="\n\n")
    print(f"{sum(found.records.values())} damaged records, {sum(found.asked.values())} questions: "
          f"{len(found.crashes)} tracebacks, {len(found.wrong)} wrong answers")  # fmt: skip
    return 1 if found.crashes or found.wrong else 0


def fuzz_with_seed(seed: int, command_line: Callable[[], None], count: int, seconds: float) -> Findings:
    """Fuzz the command line in this process, in a temporary folder; return the findings."""
    path = store.newest(REPOSITORY / "reports" / "runs")
    if path is None:
        raise FileNotFoundError("reports/runs has no record")
    newest = store.read(path)
    profiled = store.read(max((REPOSITORY / "reports" / "profiles").glob("*/*.json.gz")))
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer) / "fuzz"
        folder.mkdir()
        os.environ["PRISM_BENCH_CACHE"] = str(folder / "cache")
        os.chdir(folder)
        bench = bench_in(folder, newest, profiled)
        ask = asking(command_line, lambda: json_text(vars(exported(bench.runs, bench.catalogue))))
        found = fuzz(bench, ask, seed=seed, count=count, seconds=seconds)
        os.chdir(REPOSITORY)
    return found

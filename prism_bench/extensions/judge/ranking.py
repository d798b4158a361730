"""Whether the judge ranks kernels as they are known to rank: for each task a slow one and a fast one."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from prism_bench.catalogue import Catalogue, of_project
from prism_bench.errors import PrismBenchError, UsageError, unknown
from prism_bench.extensions.judge.judging import judge
from prism_bench.extensions.judge.verdict import JudgeVerdict
from prism_bench.studies.csv_table import write_table
from prism_bench.units import count_text

SLOW, FAST = "naive", "good"


@dataclass(frozen=True)
class RankedPair:
    """A task and the scores of its two kernels; `words` is what is wrong, empty where they rank as they should.

    `slow_judged` and `fast_judged` are the seconds of the two judgements.
    """

    task: str
    slow: float
    fast: float
    timed_cases: int
    words: str = ""
    slow_judged: float = 0.0
    fast_judged: float = 0.0


def ranked_pair(folder: Path, catalogue: Catalogue, *, gpu: bool, trust_source: bool = False) -> RankedPair:
    """Judge the slow and the fast kernel of a task at the same hidden sizes; the folder has the task's name."""
    secret = SystemRandom().getrandbits(32)
    slow, fast = (
        judge(
            folder / f"{name}.toml", folder.name, catalogue=catalogue, gpu=gpu, secret=secret, trust_source=trust_source
        )
        for name in (SLOW, FAST)
    )
    took = [round(sum(one.seconds.values()), 1) for one in (slow, fast)]
    return RankedPair(folder.name, slow.score, fast.score, len(fast.scored), _complaint(slow, fast), *took)


def _complaint(slow: JudgeVerdict, fast: JudgeVerdict) -> str:
    for name, verdict in ((SLOW, slow), (FAST, fast)):
        if verdict.ruling != "right":
            return f"{name} is {verdict.ruling}: {'; '.join(verdict.reasons)}"
        if not verdict.scored:
            return f"{name} is right, and has no time"
    return "" if slow.score < fast.score else f"{SLOW} is not slower than {FAST}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the scores of each pair; 1 where one ranks otherwise or is not right, 2 without a GPU, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder for each task, with naive.toml and good.toml")
    parser.add_argument("--tasks", nargs="+", default=(), metavar="TASK", help="rank these alone; default: all")
    parser.add_argument("--catalogue", type=Path)
    parser.add_argument("--no-gpu", action="store_true", help="judge without times: whether all are right")
    parser.add_argument("--trust-source", action="store_true", help="use no jail")
    parser.add_argument("--output", type=Path, help="write a table with a line for each task")
    chosen = parser.parse_args(arguments)
    try:
        tasks = _tasks(chosen.folder, chosen.tasks)
        catalogue, how = of_project(chosen.catalogue), {"gpu": not chosen.no_gpu, "trust_source": chosen.trust_source}
        rows = list(_printed(ranked_pair(task, catalogue, **how) for task in tasks))
    except PrismBenchError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if chosen.output:
        write_table(rows, chosen.output)
    right = sum(not row.words for row in rows)
    print(f"{right} of {count_text(len(rows), 'pair')} in the right order")
    return int(right < len(rows))


def _tasks(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the folders of pairs, those of `names` where there are some."""
    found = {path.name: path for path in sorted(folder.glob("*/")) if (path / f"{FAST}.toml").is_file()}
    if not found:
        raise UsageError(f"{folder}: here is no folder with {SLOW}.toml and {FAST}.toml")
    odd = sorted(set(names) - set(found))
    if odd:
        raise unknown("task of the ranking", odd[0], list(found))
    return [path for name, path in found.items() if not names or name in names]


def _printed(rows: Iterator[RankedPair]) -> Iterator[RankedPair]:
    for row in rows:
        print(f"{row.task}: {SLOW} {row.slow:.3g}, {FAST} {row.fast:.3g}{row.words and f': {row.words}'}", flush=True)
        yield row

"""Whether the judge ranks kernels as they are known to rank: for each task a slow one and a fast one."""

import argparse
import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from time import perf_counter

import msgspec

from lab.judge.dealt_study import NOT_ALL, DealtStudy, add_part_options, at_least_one, chosen_gpus, claimed, passed_on
from lab.judge.sized_trial import SMALL, SizedJudge
from lab.judge.study_summary import write_summary
from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue import of_project
from prism_bench.errors import PrismBenchError, UsageError, unknown
from prism_bench.extensions.judge.referee.referee import WAITING
from prism_bench.extensions.judge.task import drawn_secret
from prism_bench.extensions.judge.verdict import JudgeVerdict, seconds_of_steps, steps_text
from prism_bench.io.files import guarded
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv

SLOW, FAST = "naive", "good"


@dataclass(frozen=True)
class RankedPair:
    """A task and the scores of its two kernels; `words` is what is wrong, empty where they rank as they should.

    `slow_judged` and `fast_judged` are the seconds of the two judgements, the others of steps of both: `waiting` those
    of `on_gpu` in which another judgement had the device.
    """

    task: str
    slow: float
    fast: float
    timed_cases: int
    words: str = ""
    slow_judged: float = 0.0
    fast_judged: float = 0.0
    compiling: float = 0.0
    emulating: float = 0.0
    on_gpu: float = 0.0
    waiting: float = 0.0


def ranked_pair(folder: Path, judge: SizedJudge) -> RankedPair:
    """Judge the slow and the fast kernel of a task at the same hidden sizes; the folder has the task's name."""
    secret, verdicts = drawn_secret(), list[JudgeVerdict]()
    for name in (SLOW, FAST):
        verdicts.append(judge.verdict(folder / f"{name}.toml", folder.name, secret))
        print(f"{folder.name}, {name}: {verdicts[-1].ruling} in {steps_text(verdicts[-1].seconds)}", flush=True)
    slow, fast = verdicts
    both = slow.seconds, fast.seconds
    return RankedPair(
        folder.name,
        slow.score,
        fast.score,
        len(fast.scored),
        _complaint(slow, fast),
        slow_judged=seconds_of_steps(slow.seconds, digits=1),
        fast_judged=seconds_of_steps(fast.seconds, digits=1),
        compiling=seconds_of_steps(*both, digits=1, beginning="machine code"),
        emulating=seconds_of_steps(*both, digits=1, beginning="emulator"),
        on_gpu=seconds_of_steps(*both, digits=1, beginning="GPU"),
        waiting=seconds_of_steps(*both, digits=1, ending=WAITING),
    )


def _complaint(slow: JudgeVerdict, fast: JudgeVerdict) -> str:
    for name, verdict in ((SLOW, slow), (FAST, fast)):
        if verdict.ruling != "right":
            return f"{name} is {verdict.ruling}: {'; '.join(verdict.reasons)}"
        if not verdict.scored:
            return f"{name} is right, and has no time"
    return "" if slow.score < fast.score else f"{SLOW} is not slower than {FAST}"


@guarded
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the scores of each pair; 1 where one ranks otherwise, 2 without a GPU, 3 where some have no answer."""
    chosen, begin = _parser().parse_args(arguments), perf_counter()
    try:
        tasks = _tasks(chosen.folder, [*chosen.tasks, *chosen.then])
        rows = _dealt(chosen, tasks) if chosen.gpus else _ranked_all(chosen, tasks)
    except (PrismBenchError, OSError, msgspec.ValidationError) as error:
        print(error, file=sys.stderr)
        return error.exit_code if isinstance(error, PrismBenchError) else 2
    right = sum(not row.words for row in rows)
    lacking = len({path.name for path in tasks} - {row.task for row in rows})
    if not chosen.part:
        if lacking:
            print(f"{count_text(lacking, 'pair')} without an answer: --resume goes on")
        print(f"{right} of {count_text(len(rows), 'pair')} in the right order")
        if chosen.output and rows:
            counts = {"in order": right, "otherwise": len(rows) - right, "without an answer": lacking}
            write_summary(chosen.output, "ranking", counts, perf_counter() - begin)
    return 1 if right < len(rows) else NOT_ALL if lacking else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder for each task, with naive.toml and good.toml")
    parser.add_argument("--tasks", nargs="+", default=(), metavar="TASK", help="rank these alone; default: all")
    parser.add_argument("--catalogue", type=Path)
    parser.add_argument("--no-gpu", action="store_true", help="judge without times: whether all are right")
    parser.add_argument(
        "--gpus", nargs="+", default=[], metavar="GPU", help="deal the tasks over these GPUs, or 'all'; needs --output"
    )
    parser.add_argument("--jobs", type=at_least_one, default=2, help="tasks that one of --gpus has at the same time")
    parser.add_argument("--trust-source", action="store_true", help="use no jail")
    parser.add_argument("--output", type=Path, help="write a table with a line for each task, and a summary next to it")
    parser.add_argument("--resume", action="store_true", help="keep the rows of --output that are in order")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="judge no further pair after that time")
    parser.add_argument(
        "--labels",
        nargs="+",
        default=SMALL,
        metavar="LABEL",
        help="sizes that the GPU launches, with hidden ones between them; default: S0, and hidden ones "
        "between it and a part of S1 that a judgement ends with in seconds",
    )
    add_part_options(parser)
    return parser


def _ranked_all(chosen: argparse.Namespace, tasks: Sequence[Path]) -> list[RankedPair]:
    """Judge the pairs; the table is written after each, so that a break costs one pair."""
    end, backend = perf_counter() + chosen.seconds, cache(partial[Backend](open_backend, "cuda"))
    judge = SizedJudge(
        of_project(chosen.catalogue), backend, chosen.labels, gpu=not chosen.no_gpu, jailed=not chosen.trust_source
    )
    rows = _read([chosen.output]) if chosen.resume else []
    for task in tasks:
        if task.name in {row.task for row in rows}:
            continue
        if perf_counter() > end:
            break
        if not claimed(chosen.part, task.name):
            continue
        row = ranked_pair(task, judge)
        print(f"{row.task}: {SLOW} {row.slow:.3g}, {FAST} {row.fast:.3g}{row.words and f': {row.words}'}", flush=True)
        rows.append(row)
        if chosen.output:
            write_csv(rows, chosen.output)
    return rows


def _dealt(chosen: argparse.Namespace, tasks: Sequence[Path]) -> list[RankedPair]:
    """Judge the pairs that have no row yet in processes of the GPUs; what these wrote is kept also where one fails."""
    if not chosen.output or chosen.no_gpu:
        raise UsageError("--gpus needs --output, next to which each process writes its table, and no --no-gpu")
    words = [str(chosen.folder), *passed_on(chosen), "--labels", *chosen.labels]
    study = DealtStudy(f"{__package__}.ranking", words, "--tasks", chosen.output)
    gpus = chosen_gpus(chosen.gpus)
    kept = _read([chosen.output, *study.tables()]) if chosen.resume else []
    known = {row.task for row in kept}
    opened = [one.name for one in tasks if one.name not in known]
    return study.kept(kept, opened, gpus, chosen.jobs, lambda: [*kept, *_read(study.tables(), in_order=False)])


def _read(files: Sequence[Path | None], *, in_order: bool = True) -> list[RankedPair]:
    """Return the rows of tables that are there, by default those in order alone."""
    rows: dict[str, RankedPair] = {}
    for file in files:
        if file and file.is_file():
            with file.open(newline="") as table:
                rows |= {row["task"]: msgspec.convert(row, RankedPair, strict=False) for row in csv.DictReader(table)}
    return [row for row in rows.values() if not (in_order and row.words)]


def _tasks(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the folders of pairs, those of `names` where there are some."""
    found = {path.name: path for path in sorted(folder.glob("*/")) if (path / f"{FAST}.toml").is_file()}
    if not found:
        raise UsageError(f"{folder}: here is no folder with {SLOW}.toml and {FAST}.toml")
    odd = sorted(set(names) - set(found))
    if odd:
        raise unknown("task of the ranking", odd[0], list(found))
    return [found[name] for name in dict.fromkeys(names)] or list(found.values())


if __name__ == "__main__":
    sys.exit(main())

"""`scripts/judge_kernelbench`: the verdict on a submission to a problem of KernelBench."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from prism_bench.catalogue import of_project
from prism_bench.errors import PrismBenchError, UsageError
from prism_bench.extensions.judge.judging import read_or_refuse
from prism_bench.extensions.judge.kernelbench.problem import KernelBenchProblem
from prism_bench.extensions.judge.plain_words import LONGEST, printable
from prism_bench.extensions.judge.task import JudgeTask
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.extensions.judge.verdict import JudgeVerdict
from prism_bench.extensions.judge.view import verdict_json
from prism_bench.io.documents import json_text


def judge_problem(submission: Path, problem: Path, sizes: Mapping[str, int] | None = None) -> JudgeVerdict:
    """Return the verdict on a submission to a problem, on the emulator; both are worked on in jails.

    `sizes` replace whole numbers at the problem's top level, which most need: their own are for a GPU.
    """
    with KernelBenchProblem(problem, sizes) as opened:
        task = JudgeTask(opened.spec(), of_project(None))
        taken = read_or_refuse(submission, task)
        return taken if isinstance(taken, JudgeVerdict) else SubmissionTrial(taken, task).verdict()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the verdict as JSON, the score and its reasons first; end as `prism-bench judge` does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("submission", type=Path, help="a card, or the folder with one")
    parser.add_argument("problem", type=Path, help="a file with Model, get_inputs and get_init_inputs")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=N", help="change a size of the problem")
    chosen = parser.parse_args(arguments)
    try:
        if not chosen.problem.is_file():
            raise UsageError(f"{chosen.problem}: there is no such file")
        verdict = judge_problem(chosen.submission, chosen.problem, dict(map(_size, chosen.set)))
    except PrismBenchError as error:
        print(printable(str(error)[:LONGEST]), file=sys.stderr)  # a problem's words are its author's
        return error.exit_code
    print(json_text(verdict_json(verdict)))
    return verdict.exit_code


def _size(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not number.isdecimal():
        raise UsageError(f"--set {text}: write NAME=N with a whole number")
    return name, int(number)

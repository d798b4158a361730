"""How often the judge rejects honest kernels: every form of a catalogue is judged as if a stranger had sent it."""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from prism_bench.catalogue import Catalogue, of_project
from prism_bench.catalogue.listing import edge_cases, timed_cases
from prism_bench.errors import PrismBenchError, SpecError
from prism_bench.extensions.judge.hidden import hidden_cases
from prism_bench.extensions.judge.spec_card import spec_card, write_submission
from prism_bench.extensions.judge.submission import read_submission
from prism_bench.extensions.judge.task import JudgeTask
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.extensions.judge.verdict import JudgeVerdict
from prism_bench.kernel import KernelSpec
from prism_bench.studies.csv_table import write_table
from prism_bench.units import count_text

Outcome = Literal["right", "unchecked", "rejected", "degenerate task", "no card"]
OUTCOMES: dict[str, Outcome] = {"right": "right", "unchecked": "unchecked", "wrong": "rejected", "refused": "rejected"}
SECRET = 20261123  # sizes that are drawn are known beforehand here, since a card has a launch for each workload


@dataclass(frozen=True)
class JudgedForm:
    """A kernel or variant, what the judge answered, why where that is not `right`, and the seconds of its steps."""

    form: str
    outcome: Outcome
    words: str = ""
    struck: int = 0
    compiling: float = 0.0
    no_work: float = 0.0
    emulating: float = 0.0


def forms(catalogue: Catalogue) -> Iterator[KernelSpec]:
    """Yield every kernel and variant, each as an own task."""
    for spec in catalogue.kernels.values():
        yield spec
        yield from (replace(spec.with_variant(name), name=f"{spec.name}__{name}") for name in spec.variants)


def judged_form(spec: KernelSpec, catalogue: Catalogue) -> JudgedForm:
    """Return what the judge answers to a form of the catalogue that judges itself."""
    known = [*(one for one in timed_cases(spec, None) if one.label == "S0"), *edge_cases(spec, None)]
    with tempfile.TemporaryDirectory(prefix="prism-judge-card-") as folder:
        try:
            if spec.requires is not None:
                raise SpecError("it has instructions of one architecture")
            card = spec_card(spec, [*known, *hidden_cases(spec, known, SECRET)])
            submission = read_submission(write_submission(Path(folder), spec, card))
        except SpecError as error:
            return JudgedForm(spec.name, "no card", str(error))
        return _outcome(spec.name, SubmissionTrial(submission, JudgeTask(spec, catalogue), secret=SECRET).verdict())


def _outcome(name: str, verdict: JudgeVerdict) -> JudgedForm:
    refuses_task = any(one.rule == "degenerate task" for one in verdict.objections)  # whoever sends what to it
    outcome = "degenerate task" if refuses_task else OUTCOMES[verdict.ruling]
    words = "" if outcome == "right" else "; ".join([*map(str, verdict.objections), *verdict.unjudged])
    struck = sum("own kernel" in one for one in verdict.struck)

    def seconds(beginning: str) -> float:
        return round(sum(took for step, took in verdict.seconds.items() if step.startswith(beginning)), 2)

    return JudgedForm(
        name, outcome, " ".join(words.split())[:300], struck, seconds("machine code"), seconds("kernels that"),
        seconds("emulator"),
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the forms, print each that is not right and the rate; 1 where an honest one was rejected, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", help="kernels whose forms are judged; default: all")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="judge each Nth form alone")
    parser.add_argument("--skip", type=int, default=0, metavar="K", help="begin after the first K forms")
    parser.add_argument("--catalogue", type=Path)
    parser.add_argument("--output", type=Path, help="write a table with a line for each form")
    chosen = parser.parse_args(arguments)
    try:
        catalogue = of_project(chosen.catalogue)
        named = {catalogue.kernel(name).name for name in chosen.kernels}
        found = [one for one in forms(catalogue) if not named or one.name.partition("__")[0] in named]
        rows = list(_printed(judged_form(one, catalogue) for one in found[max(0, chosen.skip) :: max(1, chosen.every)]))
    except PrismBenchError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if chosen.output:
        write_table(rows, chosen.output)
    counts = Counter(row.outcome for row in rows)
    taken = len(rows) - counts["no card"] - counts["degenerate task"]
    print(f"{count_text(len(rows), 'form')}: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    print(f"false rejections: {counts['rejected']} of {count_text(taken, 'submission')}")
    return int(counts["rejected"] > 0)


def _printed(rows: Iterator[JudgedForm]) -> Iterator[JudgedForm]:
    for row in rows:
        print(f"{row.form}: {row.outcome}{row.words and f': {row.words}'}", flush=True)
        yield row

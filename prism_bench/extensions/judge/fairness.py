"""How often the judge rejects honest kernels: every form of a catalogue is judged as if a stranger had sent it."""

import argparse
import csv
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Literal

import msgspec

from prism_bench.backends import Backend, open_backend
from prism_bench.case import Case
from prism_bench.catalogue import Catalogue, of_project
from prism_bench.catalogue.listing import edge_cases, timed_cases
from prism_bench.errors import PrismBenchError, SpecError
from prism_bench.extensions.judge.hidden import hidden_cases
from prism_bench.extensions.judge.on_gpu import OnGpu
from prism_bench.extensions.judge.referee.session import WHERE, WHERE_UNTIMED
from prism_bench.extensions.judge.spec_card import spec_card, write_submission
from prism_bench.extensions.judge.submission import read_submission
from prism_bench.extensions.judge.task import JudgeTask
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.extensions.judge.verdict import JudgeVerdict
from prism_bench.interrupts import guarded
from prism_bench.kernel import KernelSpec
from prism_bench.studies.csv_table import write_table
from prism_bench.units import count_text

Outcome = Literal["right", "unchecked", "rejected", "degenerate task", "no card"]
OUTCOMES: dict[str, Outcome] = {"right": "right", "unchecked": "unchecked", "wrong": "rejected", "refused": "rejected"}
SECRET = 20261123  # sizes that are drawn are known beforehand here, since a card has a launch for each workload
LABELS = ("S0", "S1")  # that a GPU launches, which an emulator need not


@dataclass(frozen=True)
class JudgedForm:
    """A kernel or variant, what the judge answered, why where that is not `right`, and the seconds of its steps.

    `launched` are the cases whose launches on a GPU were compared.
    """

    form: str
    outcome: Outcome
    words: str = ""
    struck: int = 0
    compiling: float = 0.0
    no_work: float = 0.0
    emulating: float = 0.0
    on_gpu: float = 0.0
    launched: int = 0


@dataclass
class FormTrial(SubmissionTrial):
    """The trial of a form by its own spec. A GPU launches published sizes alone: at others it may be wrong itself."""

    labels: Sequence[str] = LABELS

    def gpu_cases(self, spec: KernelSpec) -> list[Case]:
        return [*edge_cases(spec, None), *(case for case in timed_cases(spec, None) if case.label in self.labels)]


@dataclass(frozen=True)
class FairnessStudy:
    """How the forms of a catalogue are judged: on a GPU too, there at `labels`; without a jail where own code is."""

    catalogue: Catalogue
    gpu: bool = False
    labels: Sequence[str] = LABELS
    jailed: bool = True
    backend: Callable[[], Backend] = field(default_factory=lambda: cache(partial[Backend](open_backend, "cuda")))

    def judged(self, spec: KernelSpec) -> JudgedForm:
        """Return what the judge answers to a form that judges itself."""
        if spec.requires is not None and not self.gpu:
            return JudgedForm(spec.name, "no card", "it has instructions of one architecture: only a GPU runs them")
        gpu = OnGpu(None, SECRET, self.backend, rivals=False) if self.gpu else None
        with tempfile.TemporaryDirectory(prefix="prism-judge-card-") as folder:
            try:
                card = spec_card(spec, self._cases(spec), gpu.device if gpu else None)
                submission = read_submission(write_submission(Path(folder), spec, card))
            except SpecError as error:
                return JudgedForm(spec.name, "no card", str(error))
            architectures = (gpu.architecture if gpu else "90",)
            trial = FormTrial(
                submission, JudgeTask(spec, self.catalogue), architectures, self.jailed, secret=SECRET, gpu=gpu,
                labels=self.labels,
            )  # fmt: skip
            return _outcome(spec.name, trial.verdict())

    def _cases(self, spec: KernelSpec) -> list[Case]:
        timed = timed_cases(spec, None)
        known = [*(one for one in timed if one.label == "S0"), *edge_cases(spec, None)]
        launched = [one for one in timed if self.gpu and one.label in self.labels and one.label != "S0"]
        return [*known, *hidden_cases(spec, known, SECRET), *launched]


def forms(catalogue: Catalogue) -> Iterator[KernelSpec]:
    """Yield every kernel and variant, each as an own task."""
    for spec in catalogue.kernels.values():
        yield spec
        yield from (replace(spec.with_variant(name), name=f"{spec.name}__{name}") for name in spec.variants)


def _outcome(name: str, verdict: JudgeVerdict) -> JudgedForm:
    refuses_task = any(one.rule == "degenerate task" for one in verdict.objections)  # whoever sends what to it
    outcome = "degenerate task" if refuses_task else OUTCOMES[verdict.ruling]
    words = "" if outcome == "right" else "; ".join([*map(str, verdict.objections), *verdict.unjudged])
    struck = sum("own kernel" in one for one in verdict.struck)

    def seconds(beginning: str) -> float:
        return round(sum(took for step, took in verdict.seconds.items() if step.startswith(beginning)), 2)

    return JudgedForm(
        name, outcome, " ".join(words.split())[:300], struck, seconds("machine code"), seconds("kernels that"),
        seconds("emulator"), seconds("GPU"), sum(one.where in (WHERE, WHERE_UNTIMED) for one in verdict.checked),
    )  # fmt: skip


@guarded
def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the forms, print each that is not right and the rate; 1 where an honest one was rejected, else 0."""
    chosen = _parser().parse_args(arguments)
    try:
        kept = _read(chosen.tables or ([chosen.output] if chosen.resume else []))
        rows = kept if chosen.tables else _judged_all(chosen, kept)
    except (PrismBenchError, OSError, msgspec.ValidationError) as error:
        print(error, file=sys.stderr)
        return error.exit_code if isinstance(error, PrismBenchError) else 2
    if chosen.output and rows:
        write_table(rows, chosen.output)
    counts = Counter(row.outcome for row in rows)
    taken = len(rows) - counts["no card"] - counts["degenerate task"]
    print(f"{count_text(len(rows), 'form')}: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    print(f"false rejections: {counts['rejected']} of {count_text(taken, 'submission')}")
    return int(counts["rejected"] > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", help="kernels whose forms are judged; default: all")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="judge each Nth form alone")
    parser.add_argument("--skip", type=int, default=0, metavar="K", help="begin after the first K forms")
    parser.add_argument("--catalogue", type=Path)
    parser.add_argument("--output", type=Path, help="write a table with a line for each form")
    parser.add_argument("--gpu", action="store_true", help="launch each on the GPU, too")
    parser.add_argument("--labels", nargs="+", default=LABELS, metavar="LABEL", help="sizes that the GPU launches")
    parser.add_argument("--trust-source", action="store_true", help="use no jail")
    parser.add_argument("--resume", action="store_true", help="keep the rows of --output, judge the other forms")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="judge no further form after that time")
    parser.add_argument("--tables", nargs="+", type=Path, metavar="FILE", help="judge nothing: put tables together")
    return parser


def _judged_all(chosen: argparse.Namespace, kept: list[JudgedForm]) -> list[JudgedForm]:
    """Judge the forms that are not `kept`; the table is written after each, so that a break costs one form."""
    catalogue, end = of_project(chosen.catalogue), perf_counter() + chosen.seconds
    named, done = {catalogue.kernel(name).name for name in chosen.kernels}, {row.form for row in kept}
    study = FairnessStudy(catalogue, chosen.gpu, chosen.labels, not chosen.trust_source)
    found = [one for one in forms(catalogue) if not named or one.name.partition("__")[0] in named]
    rows = list(kept)
    for spec in found[max(0, chosen.skip) :: max(1, chosen.every)]:
        if spec.name in done:
            continue
        if perf_counter() > end:
            print("no further form is judged: --seconds are over; --resume goes on")
            break
        row = study.judged(spec)
        print(f"{row.form}: {row.outcome}{row.words and f': {row.words}'}", flush=True)
        rows.append(row)
        if chosen.output:
            write_table(rows, chosen.output)
    return rows


def _read(files: Sequence[Path]) -> list[JudgedForm]:
    """Return the rows of tables that are there; of a form that several have, the last."""
    rows: dict[str, JudgedForm] = {}
    for file in files:
        if file and file.is_file():
            with file.open(newline="") as table:
                for row in csv.DictReader(table):
                    rows[row["form"]] = msgspec.convert(row, JudgedForm, strict=False)
    return list(rows.values())

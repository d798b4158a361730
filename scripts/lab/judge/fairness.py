"""How often the judge rejects honest kernels: every form of a catalogue is judged as if a stranger had sent it."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from time import perf_counter

import msgspec

from lab.judge.dealt_study import (
    NOT_ALL,
    DealtStudy,
    DeviceContexts,
    add_part_options,
    at_least_one,
    chosen_gpus,
    claimed,
    passed_on,
)  # fmt: skip
from lab.judge.study_summary import write_summary
from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue import Catalogue, of_project
from prism_bench.catalogue.catalogue import edge_cases, timed_cases
from prism_bench.errors import BackendUnavailable, PrismBenchError, SpecError, UsageError, unknown
from prism_bench.extensions.judge.judging import JudgedForm, judged_form, read_forms
from prism_bench.extensions.judge.on_gpu import OnGpu
from prism_bench.extensions.judge.referee.client import KeptRunner, RunnerProcess
from prism_bench.extensions.judge.submission import read_submission, spec_card, write_submission
from prism_bench.extensions.judge.task import JudgeTask, hidden_cases, variant_task
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.io.files import guarded, temporary_folder
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import KernelSpec
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv

SECRET = 20261123  # sizes that are drawn are known beforehand here, since a card has a launch for each workload
LABELS = ("S0", "S1")  # that a GPU launches, which an emulator need not


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
    trusted: KeptRunner = field(default_factory=lambda: KeptRunner(RunnerProcess))

    def judged(self, spec: KernelSpec) -> JudgedForm:
        """Return what the judge answers to a form that judges itself."""
        if spec.requires is not None and not self.gpu:
            return JudgedForm(spec.name, "no card", "it has instructions of one architecture: only a GPU runs them")
        gpu = OnGpu(None, SECRET, self.backend, rivals=False, trusted=self.trusted) if self.gpu else None
        with temporary_folder("prism-judge-card-") as folder:
            try:
                card = spec_card(spec, self._cases(spec), gpu.device if gpu else None)
                submission = read_submission(write_submission(folder, spec, card))
            except SpecError as error:
                return JudgedForm(spec.name, "no card", str(error))
            architectures = (gpu.architecture if gpu else "90",)
            trial = FormTrial(
                submission,
                JudgeTask(spec, self.catalogue),
                architectures,
                self.jailed,
                secret=SECRET,
                gpu=gpu,
                labels=self.labels,
            )
            return judged_form(spec.name, trial.verdict())

    def _cases(self, spec: KernelSpec) -> list[Case]:
        timed = timed_cases(spec, None)
        known = [*(one for one in timed if one.label == "S0"), *edge_cases(spec, None)]
        launched = [one for one in timed if self.gpu and one.label in self.labels and one.label != "S0"]
        return [*known, *hidden_cases(spec, known, SECRET), *launched]


def forms(catalogue: Catalogue) -> Iterator[KernelSpec]:
    """Yield every kernel and variant, each as an own task."""
    for spec in catalogue.kernels.values():
        yield spec
        yield from (replace(variant_task(spec, name), name=f"{spec.name}__{name}") for name in spec.variants)


@guarded
def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the forms, print each and the rate; 1 where an honest one was rejected, 3 where some have no answer."""
    chosen, begin = _parser().parse_args(arguments), perf_counter()
    try:
        with DeviceContexts() as contexts:
            rows, lacking = _rows(chosen)
        if chosen.gpus and rows:
            seconds = perf_counter() - begin
            print(f"{len(rows) / seconds:.2f} forms a second, {len(contexts.seen) / len(rows):.1f} contexts a form")
        return _reported(chosen, rows, lacking, begin=begin)
    except (PrismBenchError, OSError, msgspec.DecodeError) as error:
        print(error, file=sys.stderr)
        return error.exit_code if isinstance(error, PrismBenchError) else 2


def _reported(chosen: argparse.Namespace, rows: list[JudgedForm], lacking: int, *, begin: float) -> int:
    """Write table and summary where an output is chosen, print the rate, and return the exit code."""
    counts = Counter(row.outcome for row in rows)
    if chosen.output and rows:
        write_csv(rows, chosen.output)
    if not chosen.part:
        _print_summary(rows, counts, lacking)
        if chosen.output and rows:
            answers = {**counts, "without an answer": lacking}
            write_summary(chosen.output, "catalogue", answers, perf_counter() - begin, chosen.tables or ())
    return 1 if counts["rejected"] else NOT_ALL if lacking else 0


def _print_summary(rows: Sequence[JudgedForm], counts: Counter[str], lacking: int) -> None:
    taken = len(rows) - counts["no card"] - counts["degenerate task"]
    for row in rows:
        if row.outcome == "rejected":
            print(f"rejected: {row.form}: {row.words}")
    print(f"{count_text(len(rows), 'form')}: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    if lacking:
        print(f"{count_text(lacking, 'form')} without an answer: --resume goes on")
    print(f"false rejections: {counts['rejected']} of {count_text(taken, 'submission')}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", help="kernels whose forms are judged; default: all")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="judge each Nth form alone")
    parser.add_argument("--skip", type=int, default=0, metavar="K", help="begin after the first K forms")
    parser.add_argument("--catalogue", type=Path)
    parser.add_argument("--output", type=Path, help="write a table with a line for each form, and a summary next to it")
    parser.add_argument("--gpu", action="store_true", help="launch each on the GPU, too")
    parser.add_argument(
        "--gpus", nargs="+", default=[], metavar="GPU", help="deal the forms over these GPUs, or 'all'; needs --output"
    )
    parser.add_argument("--jobs", type=at_least_one, default=4, help="forms that one of --gpus has at the same time")
    parser.add_argument("--labels", nargs="+", default=LABELS, metavar="LABEL", help="sizes that the GPU launches")
    parser.add_argument("--trust-source", action="store_true", help="use no jail")
    parser.add_argument("--resume", action="store_true", help="keep the rows of --output, judge the other forms")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="judge no further form after that time")
    parser.add_argument("--tables", nargs="+", type=Path, metavar="FILE", help="judge nothing: put tables together")
    parser.add_argument("--forms", nargs="+", default=[], metavar="FORM", help="judge these forms alone")
    add_part_options(parser)
    return parser


def _rows(chosen: argparse.Namespace) -> tuple[list[JudgedForm], int]:
    """Return all rows, and how many forms have none."""
    if chosen.gpus and not chosen.output:
        raise UsageError("--gpus needs --output, next to which each process writes its table")
    catalogue = of_project(chosen.catalogue)
    chosen.forms = [*chosen.forms, *chosen.then]
    found = _chosen_forms(catalogue, chosen)
    if chosen.tables:
        rows = read_forms(chosen.tables)
    elif not chosen.gpus:
        kept = read_forms([chosen.output] if chosen.resume else [])
        chosen_specs = _open(found, kept) if chosen.gpu else _lacking(found, kept)
        rows = _judged_all(chosen, catalogue, chosen_specs, kept)
    else:
        rows = _dealt(chosen, found)
    return rows, len(_lacking(found, rows))


def _open(found: Sequence[KernelSpec], rows: Sequence[JudgedForm]) -> list[KernelSpec]:
    """Return the forms without an answer, and those that were launched nowhere: what a GPU or a language lacked then.

    Those that last come first, as far as others of the same kernel, or variants of the same name, show that.
    """
    lasts = dict[str, float]()
    for row in rows:
        for part in row.form.split("__"):
            lasts[part] = max(lasts.get(part, 0.0), row.seconds)
    unchecked = {row.form for row in rows if row.outcome == "unchecked"}
    open_ones = [*_lacking(found, rows), *(spec for spec in found if spec.name in unchecked)]
    return sorted(open_ones, key=lambda spec: -max(lasts.get(part, 0.0) for part in spec.name.split("__")))


def _lacking(found: Sequence[KernelSpec], rows: Sequence[JudgedForm]) -> list[KernelSpec]:
    done = {row.form for row in rows}
    return [spec for spec in found if spec.name not in done]


def _chosen_forms(catalogue: Catalogue, chosen: argparse.Namespace) -> list[KernelSpec]:
    found = list(forms(catalogue))
    known = {one.name: one for one in found}
    odd = [name for name in chosen.forms if name not in known]
    if odd:
        raise unknown("form", odd[0], list(known))
    if chosen.forms:
        return [known[name] for name in dict.fromkeys(chosen.forms)]
    named = {catalogue.kernel(name).name for name in chosen.kernels}
    found = [one for one in found if not named or one.name.partition("__")[0] in named]
    return found[max(0, chosen.skip) :: max(1, chosen.every)]


def _dealt(chosen: argparse.Namespace, found: Sequence[KernelSpec]) -> list[JudgedForm]:
    """Judge the forms that have no row yet in processes of the GPUs; what these wrote is kept also where one fails."""
    words = ["--gpu", *passed_on(chosen), "--labels", *chosen.labels]
    study = DealtStudy(f"{__package__}.fairness", words, "--forms", chosen.output)
    gpus = chosen_gpus(chosen.gpus)
    kept = read_forms([chosen.output, *study.tables()]) if chosen.resume else []
    opened, before = [one.name for one in _open(found, kept)], [chosen.output] if kept else []
    return study.kept(kept, opened, gpus, chosen.jobs, lambda: read_forms([*before, *study.tables()]))


def _judged_all(
    chosen: argparse.Namespace, catalogue: Catalogue, specs: Sequence[KernelSpec], kept: Sequence[JudgedForm]
) -> list[JudgedForm]:
    """Judge the forms; the table is written after each, so that a break costs one form."""
    end, rows = perf_counter() + chosen.seconds, {row.form: row for row in kept}
    study = FairnessStudy(catalogue, chosen.gpu, chosen.labels, not chosen.trust_source)
    try:
        return _judged_by(study, chosen, specs, rows, end)
    finally:
        study.trusted.close()


def _judged_by(
    study: FairnessStudy,
    chosen: argparse.Namespace,
    specs: Sequence[KernelSpec],
    rows: dict[str, JudgedForm],
    end: float,
) -> list[JudgedForm]:
    for spec in specs:
        if perf_counter() > end:
            break
        if not claimed(chosen.part, spec.name):
            continue
        begin, row = perf_counter(), _answered(study, spec)
        took = f" in {perf_counter() - begin:.0f} s" if chosen.gpu else ""
        print(f"{row.form}: {row.outcome}{took}{row.words and f': {row.words}'}", flush=True)
        rows[row.form] = row
        if chosen.output:
            write_csv(rows.values(), chosen.output)
    return list(rows.values())


def _answered(study: FairnessStudy, spec: KernelSpec) -> JudgedForm:
    """Judge a form; one on which the judge itself fails has no honest answer either, and costs no other its own."""
    try:
        return study.judged(spec)
    except BackendUnavailable:
        raise  # there is no GPU, or it is in quarantine: no form would be judged
    except Exception as error:
        words = " ".join(f"the judge failed: {type(error).__name__}: {error}".split())
        return JudgedForm(spec.name, "rejected", words[:300])


if __name__ == "__main__":
    sys.exit(main())

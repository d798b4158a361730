"""What a verdict with times costs next to a plain run of the same cases: both as commands, by this process's clock."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from time import perf_counter

import msgspec

from lab.judge.ranking import FAST
from lab.judge.sized_trial import SizedJudge
from lab.judge.study_summary import write_summary
from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue import of_project
from prism_bench.catalogue.catalogue import timed_cases
from prism_bench.errors import BackendUnavailable, PrismBenchError, UsageError, unknown
from prism_bench.extensions.judge.task import drawn_secret
from prism_bench.extensions.judge.verdict import JudgeVerdict, seconds_of_steps, steps_text
from prism_bench.io.documents import json_text
from prism_bench.io.files import guarded, temporary_folder
from prism_bench.io.workers import WorkerEnvironment, WorkerProcess
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv

KERNELS = ("softmax", "vector_add", "layer_norm")
LABELS = ("S0", "S1")
MOST = 2.0  # times a plain run that a verdict may take
COMMAND_SECONDS = 600.0
_NOT_DONE = 2  # the exit code of a command that could not do its work


@dataclass(frozen=True)
class VerdictCost:
    """The seconds of a plain run and of a verdict, how many times the one is the other, and those of its steps.

    `timed` are the cases that the verdict has times of: hidden sizes are among them, and the run has none. `words` is
    why there is no verdict, or no right one.
    """

    kernel: str
    labels: str
    run: float
    judged: float
    ratio: float
    timed: int = 0
    compiling: float = 0.0
    emulating: float = 0.0
    on_gpu: float = 0.0
    peers: float = 0.0
    words: str = ""


@dataclass(frozen=True)
class OverheadStudy:
    """Runs both commands for cards of `folder`, as `ranking` has them, with the catalogue at `catalogue`."""

    folder: Path
    labels: Sequence[str] = LABELS
    peers: bool = False
    catalogue: Path | None = None

    def cost(self, kernel: str) -> VerdictCost:
        """Return what both cost; BackendUnavailable where the run could not do its work."""
        run = self.run(kernel)
        with temporary_folder("prism-judge-overhead-") as folder:
            output = folder / "verdict.json"
            judged, ended = _timed(__name__, [str(self.folder), kernel, "--one", str(output), *self._words("--labels")])
            if not output.is_file():
                return VerdictCost(kernel, " ".join(self.labels), run, judged, round(judged / run, 2), words=ended)
            verdict = msgspec.json.decode(output.read_bytes(), type=JudgeVerdict)
        return _cost(kernel, self.labels, run, judged, verdict)

    def run(self, kernel: str) -> float:
        """Return the seconds of a plain run of the kernel's cases, without its variants."""
        spec = of_project(self.catalogue).kernel(kernel)
        cases = [case.name for case in timed_cases(spec, None) if case.label in self.labels]
        if not cases:
            raise UsageError(f"{kernel} has no case at {', '.join(self.labels)}")
        with temporary_folder("prism-judge-overhead-") as folder:
            record = folder / "run.json.gz"
            peers = "--peers" if self.peers else "--no-peers"
            words = ["run", *cases, "--backend", "cuda", peers, "--output", str(record), *self._words()]
            seconds, ended = _timed("prism_bench", words)
            if not record.is_file():
                raise BackendUnavailable(f"run of {kernel}: {ended}")
        return seconds

    def verdict(self, kernel: str) -> JudgeVerdict:
        """Judge the card of a kernel in this process."""
        backend = cache(partial[Backend](open_backend, "cuda"))
        judge = SizedJudge(of_project(self.catalogue), backend, self.labels, peers=self.peers)
        return judge.verdict(self.folder / kernel / f"{FAST}.toml", kernel, drawn_secret())

    def _words(self, labels: str = "") -> list[str]:
        """Return the options that both commands have, and with `labels` those of the verdict's alone."""
        words = ["--catalogue", str(self.catalogue)] if self.catalogue else []
        if labels:
            words += [labels, *self.labels, *(["--peers"] if self.peers else [])]
        return words


def _cost(kernel: str, labels: Sequence[str], run: float, judged: float, verdict: JudgeVerdict) -> VerdictCost:
    def seconds(beginning: str) -> float:
        return seconds_of_steps(verdict.seconds, digits=1, beginning=beginning)

    print(f"{kernel}: {verdict.ruling} in {steps_text(verdict.seconds)}", flush=True)
    return VerdictCost(
        kernel,
        " ".join(labels),
        run,
        judged,
        round(judged / run, 2),
        len({one.case for one in verdict.times if one.kind == "submission"}),
        seconds("machine code"),
        seconds("emulator"),
        seconds("GPU"),
        seconds("GPU, peers"),
        "" if verdict.ruling == "right" else f"{verdict.ruling}: {'; '.join(verdict.reasons)}",
    )


def _timed(program: str, words: Sequence[str]) -> tuple[float, str]:
    """Return the seconds of a command, and how it ended where it did not as usual."""
    begin = perf_counter()
    process = WorkerProcess(WorkerEnvironment(program), words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        ended = "" if process.wait(COMMAND_SECONDS) is not None else f"it had not ended in {COMMAND_SECONDS:.0f} s"
        return round(perf_counter() - begin, 1), ended or process.ending()
    finally:
        process.end()


@guarded
def main(arguments: Sequence[str] | None = None) -> int:
    """Print what each verdict costs; 1 where one takes more than twice a plain run, 2 without a GPU."""
    chosen = _parser().parse_args(arguments)
    study = OverheadStudy(chosen.folder, chosen.labels, chosen.peers, chosen.catalogue)
    try:
        _check(chosen.folder, chosen.kernels)
        if chosen.one:
            chosen.one.write_bytes(json_text(msgspec.to_builtins(study.verdict(chosen.kernels[0]))).encode())
            return 0
        return _measured(study, chosen.kernels, chosen.output)
    except (PrismBenchError, OSError) as error:
        print(error, file=sys.stderr)
        return error.exit_code if isinstance(error, PrismBenchError) else _NOT_DONE


def _measured(study: OverheadStudy, kernels: Sequence[str], output: Path | None) -> int:
    """Measure the kernels, each after a run that fills the caches that both commands share; return the exit code."""
    begin, rows = perf_counter(), list[VerdictCost]()
    OverheadStudy(study.folder, study.labels[:1], catalogue=study.catalogue).run(kernels[0])
    for kernel in kernels:
        row = study.cost(kernel)
        why = f" ({row.words})" if row.words else ""
        print(f"{kernel}: {row.judged:.1f} s, a run {row.run:.1f} s: {row.ratio:.2f} times{why}", flush=True)
        rows.append(row)
        if output:
            write_csv(rows, output)
    slow = sum(row.ratio > MOST or bool(row.words) for row in rows)
    print(f"{len(rows) - slow} of {count_text(len(rows), 'verdict')} within {MOST:g} times a plain run")
    if output:
        counts = {"within the limit": len(rows) - slow, "beyond it": slow}
        write_summary(output, "overhead", counts, perf_counter() - begin)
    return int(bool(slow))


def _check(folder: Path, kernels: Sequence[str]) -> None:
    known = sorted(path.parent.name for path in folder.glob(f"*/{FAST}.toml"))
    odd = [name for name in kernels if name not in known]
    if odd:
        raise unknown("kernel with a card", odd[0], known)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder for each kernel, with good.toml")
    parser.add_argument("kernels", nargs="*", default=KERNELS, help=f"default: {', '.join(KERNELS)}")
    parser.add_argument(
        "--labels",
        nargs="+",
        default=LABELS,
        metavar="LABEL",
        help="sizes of both; the verdict has hidden ones between them, too",
    )
    parser.add_argument("--peers", action="store_true", help="time the peers of the kernels in both")
    parser.add_argument("--catalogue", type=Path)
    parser.add_argument("--output", type=Path, help="write a table with a line for each, and a summary next to it")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())

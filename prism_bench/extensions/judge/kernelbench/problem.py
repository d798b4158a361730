"""A problem of KernelBench as a task, and the verdict on a submission to it."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from prism_bench.catalogue import of_project
from prism_bench.errors import PrismBenchError, SpecError, UsageError, VerificationFailed
from prism_bench.extensions.judge.jail.jail import Jail
from prism_bench.extensions.judge.judging import read_or_refuse
from prism_bench.extensions.judge.kernelbench.messages import (
    ANSWERS,
    DrawnAnswer,
    DrawQuestion,
    ForwardAnswer,
    ForwardQuestion,
    ProblemAnswer,
    ProblemQuestion,
)
from prism_bench.extensions.judge.task import JudgeTask
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.extensions.judge.verdict import LONGEST, JudgeVerdict, printable, verdict_json
from prism_bench.io.channels import Frame, FrameError
from prism_bench.io.documents import json_text
from prism_bench.io.workers import FrameWorker, Refusal, WorkerEnvironment
from prism_bench.spec.arguments import In, Out, Size
from prism_bench.spec.inputs import BLOCK, Fill
from prism_bench.spec.kernel import KernelSpec, Launch
from prism_bench.spec.tolerance import Tolerance
from prism_bench.spec.workload import Workload
from prism_bench.units import count_text

# The problem as a task: its inputs, parameters and outputs are buffers, its model is the reference
#
# All of the problem's Python runs in a jailed process. A kernel gets `x0`, `x1`, ... (inputs), `p_...` (parameters and
# buffers of the model, by their names in its state), `y0`, ... (outputs), and the problem's whole numbers as sizes.

_SECONDS = 120.0  # for PyTorch's import, or one call of a model
_LARGEST = 4 << 30  # bytes of all arrays of a problem
# KernelBench asks for 1e-4 in float32, relative and absolute. An absolute part lets zeros pass: here it is of the peak.
_TOLERANCE = Tolerance("KernelBench, float32", relative=1e-4, floor_of_peak=1e-4)
_Expected = TypeVar("_Expected", bound=ProblemAnswer)


class KernelBenchProblem:
    """Problem in a file, as a context; `sizes` replace whole numbers at its top level.

    `jailed` is False only for trusted files. BackendUnavailable without a jail or PyTorch, SpecError for a file that is
    no problem.
    """

    def __init__(self, path: Path, sizes: Mapping[str, int] | None = None, jailed: bool = True) -> None:
        self.path, self.sizes = path.resolve(), dict(sizes or {})
        jail = Jail.over(self.path) if jailed else None
        threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self._worker = FrameWorker(WorkerEnvironment(f"{__package__}.child", variables=threads, jail=jail))

    def __enter__(self) -> "KernelBenchProblem":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.end()

    def spec(self) -> KernelSpec:
        """Return the task, which has one size, `S0`; the judge draws its seeds."""
        frame = self._drawn(0)
        answer, arrays = frame.message, dict(zip(frame.message.names, frame.arrays, strict=True))
        large = next((name for name, array in arrays.items() if array.size > BLOCK), None)
        if large:
            count = count_text(arrays[large].size, "element")
            raise SpecError(f"{self.path.name}: {large} has {count}, more than {BLOCK:,}: make its sizes smaller")
        odd = next((name for name, array in arrays.items() if array.dtype.kind not in "biuf"), None)
        if odd:
            raise SpecError(
                f"{self.path.name}: {odd} has numbers of type {arrays[odd].dtype}, which no kernel here takes"
            )
        split = answer.inputs + answer.parameters
        inputs, results = answer.names[:split], answer.names[split:]
        return KernelSpec(
            name=self.path.stem,
            entry="none",
            source=self.path,
            launch=lambda: Launch(1, 1),
            arguments=(
                *(In(name, _shape(arrays[name]), str(arrays[name].dtype), self._fill(name)) for name in inputs),
                *(Out(name, _shape(arrays[name]), str(arrays[name].dtype)) for name in results),
                *(Size(name) for name in answer.sizes),
            ),
            reference=_Reference(partial(self._forward, [arrays[name] for name in inputs]), inputs),
            tolerance=_TOLERANCE,
            workloads={"S0": Workload(**answer.sizes)},
        )

    def _fill(self, name: str) -> Fill:
        def drawn(rng: np.random.Generator, count: int, axes: Mapping[str, Any]) -> np.ndarray:
            frame = self._drawn(int(rng.integers(1 << 31)))
            array = dict(zip(frame.message.names, frame.arrays, strict=True)).get(name)
            if array is None or array.size != count:
                raise SpecError(f"{self.path.name}: {name} is another one from one seed to the next")
            return array.reshape(-1)

        return Fill(drawn, f"{name} of {self.path.name}")

    def _drawn(self, seed: int) -> Frame[DrawnAnswer]:
        frame = self._ask(DrawQuestion(str(self.path), self.sizes, seed), (), DrawnAnswer)
        if len(frame.message.names) != len(frame.arrays) or len(set(frame.message.names)) != len(frame.arrays):
            raise SpecError(f"{self.path.name}: two of its inputs and parameters have one name")
        return frame

    def _forward(self, drawn: Sequence[np.ndarray], inputs: Sequence[Any]) -> tuple[np.ndarray, ...]:
        """Return the outputs of the model in float64; inputs are converted back to the types of `drawn`, exactly."""
        arrays = [
            np.ascontiguousarray(array, like.dtype).reshape(like.shape)
            for array, like in zip(inputs, drawn, strict=True)
        ]
        return tuple(self._ask(ForwardQuestion(str(self.path), self.sizes), arrays, ForwardAnswer).arrays)

    def _ask(
        self, question: ProblemQuestion, arrays: Sequence[np.ndarray], expected: type[_Expected]
    ) -> Frame[_Expected]:
        try:
            self._worker.channel.send(question, arrays)
            frame = self._worker.channel.receive(ANSWERS, _SECONDS, _LARGEST)
        except TimeoutError:
            raise VerificationFailed(f"{self.path.name}: its model has not answered in {_SECONDS:.0f} s") from None
        except (EOFError, FrameError, BrokenPipeError, ConnectionResetError):
            self._worker.kill()
            raise VerificationFailed(f"{self.path.name}: {self._worker.last_words()}") from None
        if isinstance(frame.message, Refusal):
            raise frame.message.error()
        if not isinstance(frame.message, expected):
            raise VerificationFailed(f"{self.path.name}: its process answered with {type(frame.message).__name__}")
        return Frame(frame.message, frame.arrays)


class _Reference:
    """Model as a spec's reference, with a signature that names the inputs."""

    def __init__(self, compute: Any, names: Sequence[str]) -> None:
        self.__signature__ = Signature([Parameter(name, Parameter.KEYWORD_ONLY) for name in names])
        self._compute, self._names = compute, tuple(names)

    def __call__(self, **inputs: Any) -> Any:
        outputs = self._compute([inputs[name] for name in self._names])
        return outputs[0] if len(outputs) == 1 else outputs


def _shape(array: np.ndarray) -> str:
    return " ".join(map(str, array.shape)) or "1"


# The command `scripts/judge_kernelbench`


def judge_problem(submission: Path, problem: Path, sizes: Mapping[str, int] | None = None) -> JudgeVerdict:
    """Return the verdict on a submission to a problem, on the emulator, with both in jails.

    `sizes` replace whole numbers at the problem's top level. Most problems need them: their own sizes are for a GPU.
    """
    with KernelBenchProblem(problem, sizes) as opened:
        task = JudgeTask(opened.spec(), of_project(None))
        card = read_or_refuse(submission, task)
        return card if isinstance(card, JudgeVerdict) else SubmissionTrial(card, task).verdict()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the verdict as JSON, the score and its reasons first; return the exit code of `prism-bench judge`."""
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

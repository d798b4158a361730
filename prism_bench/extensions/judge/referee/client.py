"""The referee's side of a runner: questions with a limit of time, on a clock of this process."""

import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Protocol, TypeVar

import numpy as np

from prism_bench.errors import VerificationFailed
from prism_bench.extensions.judge.referee.messages import (
    ANSWERS,
    Answer,
    CasePlan,
    FactsAnswer,
    FactsQuestion,
    FetchAnswer,
    FetchQuestion,
    InputPlan,
    InputsAnswer,
    InputsQuestion,
    LoadAnswer,
    Question,
    RepeatAnswer,
    RepeatQuestion,
    RunnerLaunchAnswer,
    RunnerLaunchQuestion,
    RunnerLoadQuestion,
    ShareAnswer,
    ShareQuestion,
)
from prism_bench.io.workers.frames import Frame, FrameError
from prism_bench.io.workers.handle import START_SECONDS, FrameWorker, WorkerEnvironment
from prism_bench.io.workers.refusal import Refusal
from prism_bench.spec.inputs import InputArray

RUNNER = f"{__package__}.runner"
CUDA_DEVICE = f"{__package__}.cuda_device:open_device"
_EAGER = {"CUDA_MODULE_LOADING": "EAGER"}  # nothing is loaded within a launch that is timed
_LARGEST = 1 << 36  # bytes of all outputs of a case
_Expected = TypeVar("_Expected", bound=Answer)


class Runner(Protocol):
    """Whatever answers a question within some seconds; VerificationFailed where the launched code ends it."""

    def ask(self, question: Question, arrays: Sequence[np.ndarray], limit: float) -> Frame[Answer]:
        """Return the answer with its arrays; the error that it answers with is raised."""
        ...

    def end(self) -> None:
        """End it with all that it started."""
        ...


class RunnerProcess:
    """A runner in an own process, which is killed where it does not answer in time."""

    def __init__(self, device: str = CUDA_DEVICE, variables: Mapping[str, str] | None = None) -> None:
        self._worker = self._started(device, variables or {})

    def _lost(self) -> None:
        """End a process that no longer answers as it should."""
        self._worker.kill()

    def _started(self, device: str, variables: Mapping[str, str]) -> FrameWorker:
        where = WorkerEnvironment(RUNNER, variables={**_EAGER, **variables})
        return FrameWorker(where, [device], stdout=subprocess.STDOUT)  # a verdict's reader gets nothing of a kernel's

    def ask(self, question: Question, arrays: Sequence[np.ndarray], limit: float) -> Frame[Answer]:
        try:
            self._worker.channel.send(question, arrays)
            frame = self._worker.channel.receive(ANSWERS, limit, _LARGEST)
        except TimeoutError:
            self._worker.kill()
            raise VerificationFailed(f"it has not ended in {limit:.0f} s, and was ended with its process") from None
        except (EOFError, FrameError, BrokenPipeError, ConnectionResetError):
            self._lost()
            raise VerificationFailed(f"it ended its process: {self._worker.last_words()}") from None
        if isinstance(frame.message, Refusal):
            raise frame.message.error()
        return frame

    def end(self) -> None:
        self._worker.kill()
        self._worker.wait()
        self._worker.release()


class ReadyRunners:
    """Runners that are started before they are needed, `count` of them, as a context: those left over end with it."""

    def __init__(self, start: Callable[[], Runner], count: int) -> None:
        self._start = start
        self._ready = deque(start() for _ in range(count))

    def __call__(self) -> Runner:
        return self._ready.popleft() if self._ready else self._start()

    def __enter__(self) -> "ReadyRunners":
        return self

    def __exit__(self, *exception: object) -> None:
        while self._ready:
            self._ready.pop().end()


class RunnerClient:
    """Questions to a runner in order. `limit` is what one launch may take, in seconds."""

    def __init__(self, runner: Runner, limit: float) -> None:
        self._runner, self._limit = runner, limit

    def __enter__(self) -> "RunnerClient":
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        """End the runner."""
        self._runner.end()

    def facts(self) -> FactsAnswer:
        """Return the device; the first question, before which a process starts."""
        return self._ask(FactsQuestion(), (), FactsAnswer, START_SECONDS).message

    def load(self, plan: CasePlan, cubins: Sequence[bytes]) -> LoadAnswer:
        """Load machine code and make buffers, both anew."""
        return self._load(RunnerLoadQuestion(plan), cubins)

    def load_watched(self, plan: CasePlan, cubins: Sequence[bytes], limit: float | None = None) -> LoadAnswer:
        """Load machine code and make buffers for launches under a sanitizer, within other seconds where given."""
        return self._load(RunnerLoadQuestion(plan, watched=True), cubins, limit)

    def _load(self, question: RunnerLoadQuestion, cubins: Sequence[bytes], limit: float | None = None) -> LoadAnswer:
        return self._ask(question, [np.frombuffer(one, np.uint8) for one in cubins], LoadAnswer, limit).message

    def give(self, inputs: Mapping[str, InputArray]) -> None:
        """Send the inputs of the next launch, which takes a host's time and no device."""
        question = InputsQuestion(tuple(_planned(name, one) for name, one in inputs.items()))
        self._ask(question, [one.block for one in inputs.values()], InputsAnswer)

    def launch(self, key: int) -> tuple[RunnerLaunchAnswer, float]:
        """Launch on the inputs given; return the answer, and the seconds that it took on this process's clock."""
        before = perf_counter()
        answer = self._ask(RunnerLaunchQuestion(key), (), RunnerLaunchAnswer).message
        return answer, perf_counter() - before

    def repeated(self, times: int) -> float:
        """Return the seconds on this process's clock in which so many launches ended."""
        before = perf_counter()
        self._ask(RepeatQuestion(times), (), RepeatAnswer)
        return perf_counter() - before

    def outputs(self) -> dict[str, np.ndarray]:
        """Return the outputs of the last launch by name."""
        frame = self._ask(FetchQuestion(), (), FetchAnswer)
        return dict(zip(frame.message.names, frame.arrays, strict=True))

    def shared(self) -> dict[str, bytes]:
        """Return the handles of copies of the outputs of the last launch, by name; none where they are not shared."""
        handles = self._ask(ShareQuestion(), (), ShareAnswer).message.handles
        return {name: bytes.fromhex(handle) for name, handle in handles.items()}

    def _ask(
        self, question: Question, arrays: Sequence[np.ndarray], expected: type[_Expected], limit: float | None = None
    ) -> Frame[_Expected]:
        frame = self._runner.ask(question, arrays, limit or self._limit)
        if not isinstance(frame.message, expected):
            raise VerificationFailed(f"the runner answered with {type(frame.message).__name__}")
        return Frame(frame.message, frame.arrays)


def _planned(name: str, one: InputArray) -> InputPlan:
    if one.key is None or one.runs is None:
        return InputPlan(name, one.rotations)
    return InputPlan(name, (), one.key, one.runs.length, one.runs.step)

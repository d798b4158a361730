"""Referee's side of a runner: plans of cases, questions with a limit of time, and checked answers."""

import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from time import perf_counter
from typing import Protocol, TypeVar

import numpy as np

from prism_bench.backends.cuda.runnable import block_of, card_values, launch_facts, scratch_bytes
from prism_bench.compilation.cubin import check_sizes, parameter_sizes
from prism_bench.errors import BackendUnavailable, PrismBenchError, SpecError, VerificationFailed
from prism_bench.extensions.judge.referee.messages import (
    ANSWERS,
    Answer,
    BufferPlan,
    CasePlan,
    FactsAnswer,
    FactsQuestion,
    FetchAnswer,
    FetchQuestion,
    InputPlan,
    InputsAnswer,
    InputsQuestion,
    LoadAnswer,
    PlannedParameter,
    Question,
    RepeatAnswer,
    RepeatQuestion,
    Role,
    RunnerLaunchAnswer,
    RunnerLaunchQuestion,
    RunnerLoadQuestion,
    ShareAnswer,
    ShareQuestion,
    StepPlan,
)
from prism_bench.io.channels import Frame, FrameError
from prism_bench.io.workers import START_SECONDS, FrameWorker, Refusal, WorkerEnvironment
from prism_bench.spec.arguments import Array, InOut, Scratch
from prism_bench.spec.case import Case, Device
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.kernel import CUDA, Launch, TensorMap, Zero
from prism_bench.spec.launch import Instance, LaunchCard

RUNNER = f"{__package__}.runner"
_CUDA_DEVICE = f"{__package__}.cuda_device:open_device"
_EAGER = {"CUDA_MODULE_LOADING": "EAGER"}  # so that no timed launch loads code
_LARGEST = 1 << 36  # bytes of all outputs of a case
_Expected = TypeVar("_Expected", bound=Answer)


class Runner(Protocol):
    """Runner that answers a question within a limit; VerificationFailed if the launched code ends it."""

    def ask(self, question: Question, arrays: Sequence[np.ndarray], limit: float) -> Frame[Answer]:
        """Return the answer with its arrays; raise an error that is the answer."""
        ...

    def end(self) -> None:
        """End the runner with all its processes."""
        ...


class RunnerProcess:
    """Runner in its own process, which is killed if it does not answer in time."""

    def __init__(self, device: str = _CUDA_DEVICE, variables: Mapping[str, str] | None = None) -> None:
        self._worker = self._started(device, variables or {})

    def _lost(self) -> None:
        """End a process that no longer answers."""
        self._worker.kill()

    def _started(self, device: str, variables: Mapping[str, str]) -> FrameWorker:
        where = WorkerEnvironment(RUNNER, variables={**_EAGER, **variables})
        return FrameWorker(where, [device], stdout=subprocess.STDOUT)  # a kernel's output never mixes with the verdict

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
        self._worker.end()


NOTHING = CasePlan("", (), ())  # loaded to free a runner's memory
_FREEING_SECONDS = 30.0


class KeptRunner:
    """Runner of trusted code for several users in turn: their `end` frees its memory and keeps its process.

    After an error of launched code the next question starts another process.
    """

    def __init__(self, start: Callable[[], Runner]) -> None:
        self._start, self._is_loaded = start, False
        self._runner: Runner | None = None

    def ask(self, question: Question, arrays: Sequence[np.ndarray], limit: float) -> Frame[Answer]:
        self._runner = self._runner or self._start()
        self._is_loaded = self._is_loaded or isinstance(question, RunnerLoadQuestion)
        try:
            return self._runner.ask(question, arrays, limit)
        except VerificationFailed:
            self.close()
            raise

    def end(self) -> None:
        if self._is_loaded:
            with suppress(PrismBenchError):
                self.ask(RunnerLoadQuestion(NOTHING), (), _FREEING_SECONDS)
            self._is_loaded = False

    def close(self) -> None:
        """End the process."""
        if self._runner:
            self._runner.end()
        self._runner, self._is_loaded = None, False


class ReadyRunners:
    """Supply of `count` runners that are started ahead, as a context; unused runners end with it."""

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
    """Questions to a runner in order. `limit` is the most seconds of a launch."""

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
        """Return the device; as the first question it also waits for the start of the process."""
        return self._ask(FactsQuestion(), (), FactsAnswer, START_SECONDS).message

    def load(self, plan: CasePlan, cubins: Sequence[bytes]) -> LoadAnswer:
        """Load machine code and make buffers, both anew."""
        return self._load(RunnerLoadQuestion(plan), cubins)

    def load_watched(self, plan: CasePlan, cubins: Sequence[bytes], limit: float | None = None) -> LoadAnswer:
        """Load machine code and make buffers for launches under a sanitizer, within `limit` seconds if it is given."""
        return self._load(RunnerLoadQuestion(plan, watched=True), cubins, limit)

    def _load(self, question: RunnerLoadQuestion, cubins: Sequence[bytes], limit: float | None = None) -> LoadAnswer:
        return self._ask(question, [np.frombuffer(cubin, np.uint8) for cubin in cubins], LoadAnswer, limit).message

    def give(self, inputs: Mapping[str, InputArray]) -> None:
        """Send the inputs of the next launch, which needs no device."""
        question = InputsQuestion(tuple(_input_plan(name, array) for name, array in inputs.items()))
        self._ask(question, [array.block for array in inputs.values()], InputsAnswer)

    def launch(self, key: int) -> tuple[RunnerLaunchAnswer, float]:
        """Launch on the inputs that were sent; return the answer and its seconds on this process's clock."""
        before = perf_counter()
        answer = self._ask(RunnerLaunchQuestion(key), (), RunnerLaunchAnswer).message
        return answer, perf_counter() - before

    def repeated(self, times: int) -> float:
        """Launch `times` times; return the seconds on this process's clock until all have ended."""
        before = perf_counter()
        self._ask(RepeatQuestion(times), (), RepeatAnswer)
        return perf_counter() - before

    def outputs(self) -> dict[str, np.ndarray]:
        """Return the outputs of the last launch by name."""
        frame = self._ask(FetchQuestion(), (), FetchAnswer)
        return dict(zip(frame.message.names, frame.arrays, strict=True))

    def shared(self) -> dict[str, bytes]:
        """Return the handles of copies of the outputs of the last launch, by name; empty if they are not shared."""
        handles = self._ask(ShareQuestion(), (), ShareAnswer).message.handles
        return {name: bytes.fromhex(handle) for name, handle in handles.items()}

    def _ask(
        self, question: Question, arrays: Sequence[np.ndarray], expected: type[_Expected], limit: float | None = None
    ) -> Frame[_Expected]:
        frame = self._runner.ask(question, arrays, limit or self._limit)
        if not isinstance(frame.message, expected):
            raise VerificationFailed(f"the runner answered with {type(frame.message).__name__}")
        return Frame(frame.message, frame.arrays)


def _input_plan(name: str, array: InputArray) -> InputPlan:
    if array.key is None or array.runs is None:
        return InputPlan(name, array.rotations)
    return InputPlan(name, (), array.key, array.runs.length, array.runs.step)


# Machine code of a contestant, and the plan of a case for a runner


@dataclass(frozen=True)
class CardedCode:
    """Cubin of an instance, and its launch card."""

    cubin: bytes
    card: LaunchCard


@dataclass(frozen=True)
class ContestantCode:
    """Machine code for the device: for CUDA C++ a cubin and the symbol of each entry, else a cubin per instance.

    It `has_memory_barriers` if instructions arrive at barriers in shared memory, or poll them; `has_shared_memory` is
    False if the cubin, read by this process, declares no shared memory.
    """

    cubin: bytes = b""
    symbols: Mapping[str, str] = field(default_factory=dict[str, str])
    instances: Mapping[Instance, CardedCode] = field(default_factory=dict[Instance, CardedCode])
    has_memory_barriers: bool = False
    has_shared_memory: bool = True

    def needless_checks(self, plans: Iterable[CasePlan]) -> list[str]:
        """Return the sanitizer's checks that have nothing to look at in the launches of the plans.

        Memory that a kernel uses without declaring it is a finding of memcheck, which is never needless.
        """
        is_shared = self.has_shared_memory or any(step.shared for plan in plans for step in plan.steps)
        return [] if is_shared else ["racecheck"]


_Triple = tuple[int, int, int]


def case_plan(case: Case, device: Device, code: ContestantCode) -> tuple[CasePlan, tuple[bytes, ...]]:
    """Return the plan of a case, and the cubins that its steps name by number.

    BackendUnavailable if it needs more than a runner has: other instructions, a compiler's own card.
    """
    refusal = case.plan.refusal(device)
    if case.spec.language != CUDA and not code.instances:
        refusal = f"a kernel in {case.spec.language} has parameters that only its own compiler knows"
    steps = [step for step in case.plan.steps(device) if isinstance(step, Zero) or not step.is_empty]
    if case.spec.constants:
        refusal = f"a judge sets no variable of a source: '{case.spec.constants[0].name}' has to be an argument"
    if refusal:
        raise BackendUnavailable(f"{case.name}: {refusal}")
    buffers = [
        BufferPlan(array.name, array.storage.name, case.sizes.shape(array.name), _role(array), array.first_byte)
        for array in case.spec.arrays
    ]
    planner = _CardedPlanner(case, code, buffers) if case.spec.language != CUDA else None
    planned = tuple(
        planner.step(step) if planner and isinstance(step, Launch) else _step(case, step, code.symbols)
        for step in steps
    )
    return CasePlan(case.name, tuple(buffers), planned), tuple(planner.cubins) if planner else (code.cubin,)


def check_parameters(plan: CasePlan, cubins: tuple[bytes, ...]) -> None:
    """Raise a SpecError if a launch passes parameters of other sizes than the machine code takes."""
    for step in plan.steps:
        sizes = [parameter.size for parameter in step.parameters]
        check_sizes(step.symbol, sizes, parameter_sizes(cubins[step.module], step.symbol), "the card")


def _role(array: Array) -> Role:
    if array.scratch or isinstance(array, Scratch):
        return "scratch"
    return "inout" if isinstance(array, InOut) else "input" if array.reads else "output"


def _step(case: Case, step: Launch | Zero, symbols: Mapping[str, str]) -> StepPlan:
    if isinstance(step, Zero):
        return StepPlan(zero=step.name)
    names = case.spec.passed(step)
    entry = step.entry or case.spec.entry
    if entry not in symbols:
        raise SpecError(f"{case.name}: no machine code was made of '{entry}'")
    return StepPlan(
        symbols[entry],
        _three(step.grid),
        _three(step.block),
        step.shared,
        step.cooperative,
        tuple(_parameter(case, name, step.maps) for name in names),
        overlaps=step.overlaps,
    )


def _parameter(case: Case, name: str, maps: Sequence[TensorMap]) -> PlannedParameter:
    argument = case.spec.argument(name)
    if isinstance(argument, Array):
        return PlannedParameter(buffer=name, map=next((tensor for tensor in maps if tensor.name == name), None))
    return _number(argument.value(case.axes))


def _number(value: np.generic) -> PlannedParameter:
    return PlannedParameter(dtype=value.dtype.str, value=value.tobytes().hex())


def _three(extent: int | tuple[int, ...]) -> _Triple:
    numbers = extent if isinstance(extent, tuple) else (extent,)
    x, y, z = (*(int(number) for number in numbers), 1, 1)[:3]
    return x, y, z


@dataclass(frozen=True)
class _NamedBuffer:
    """Buffer by its name, with the facts of an array that a launch card may need."""

    name: str
    shape: tuple[int, ...] = ()
    itemsize: int = 1

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(self.itemsize * prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass
class _CardedPlanner:
    """Planner of launches by the cards of another compiler; hidden memory is added to the `buffers`."""

    case: Case
    code: ContestantCode
    buffers: list[BufferPlan]
    cubins: list[bytes] = field(default_factory=list[bytes])

    def step(self, step: Launch) -> StepPlan:
        """Return the plan of a launch; raise a SpecError for a card with unknown names."""
        instance = self.case.plan.instance(step)
        made = self.code.instances.get(instance)
        if made is None:
            raise SpecError(f"{self.case.name}: no machine code was made of {instance}")
        try:
            return self._step(step, made)
        except (LookupError, ValueError, ArithmeticError) as error:
            raise SpecError(f"{self.case.name}: launch card of '{made.card.entry}': {error}") from error

    def _step(self, step: Launch, made: CardedCode) -> StepPlan:
        names = self.case.spec.passed(step)
        card, grid = made.card.passing(names), _three(step.grid)
        block = block_of(card, _three(step.block) if step.block else (0, 0, 0))
        parameters = tuple(self._parameters(card, grid, block))
        if made.cubin not in self.cubins:
            self.cubins.append(made.cubin)
        return StepPlan(
            card.entry,
            (prod(grid), 1, 1) if card.linear else grid,
            block,
            card.shared,
            step.cooperative,
            parameters,
            module=self.cubins.index(made.cubin),
            cluster=card.cluster,
        )

    def _parameters(self, card: LaunchCard, grid: _Triple, block: _Triple) -> Iterator[PlannedParameter]:
        hidden, facts = self._hidden(scratch_bytes(card, grid)), launch_facts(grid, block)
        for members in card.structures:
            single = replace(card, parameters=tuple(replace(member, joined=False) for member in members))
            values = [_card_parameter(value) for value in card_values(single, self._value, hidden, facts)]
            hidden = None if members[0].kind == "hidden" else hidden
            yield values[0] if len(values) == 1 else PlannedParameter(members=tuple(values))

    def _hidden(self, size: int) -> _NamedBuffer | None:
        if not size:
            return None
        name = f"memory {len(self.buffers)} of the compiler"
        self.buffers.append(BufferPlan(name, "uint8", (size,), "scratch"))
        return _NamedBuffer(name)

    def _value(self, name: str) -> object:
        argument = self.case.spec.argument(name)
        if isinstance(argument, Array):
            return _NamedBuffer(name, self.case.sizes.shape(name), argument.storage.itemsize)
        return argument.value(self.case.axes)


def _card_parameter(value: object) -> PlannedParameter:
    if isinstance(value, _NamedBuffer):
        return PlannedParameter(buffer=value.name)
    assert isinstance(value, np.generic), "a card's value is a buffer or a number"
    return _number(value)

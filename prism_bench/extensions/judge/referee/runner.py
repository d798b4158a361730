"""Runner process that launches a stranger's machine code; it knows buffers and launches, no reference, no verdict.

Started as `python -m prism_bench.extensions.judge.referee.runner CHANNEL MODULE:FUNCTION`; the function opens a device.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib import import_module

import numpy as np

from prism_bench.errors import BackendUnavailable, PrismBenchError, UsageError, VerificationFailed
from prism_bench.extensions.judge.referee.buffers import Arena, BareArena, LaunchDevice, RefereeDevice
from prism_bench.extensions.judge.referee.messages import (
    QUESTIONS,
    Answer,
    CasePlan,
    FactsQuestion,
    FetchAnswer,
    FetchQuestion,
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
from prism_bench.io.channels import Frame, FrameChannel
from prism_bench.io.workers import Refusal, end_with
from prism_bench.spec.inputs import InputArray, Runs

_LEFTOVER_SECONDS = 1e-3  # that a late wake-up of the host may look like work of the device
_TRIES = 3  # of a launch that a stalled host spoiled, with the same inputs and all memory reset
_Reply = tuple[Answer, Sequence[np.ndarray]]


class RunnerService:
    """Service that answers questions about a device, which holds the machine code of one case at a time."""

    def __init__(self, device: LaunchDevice) -> None:
        self._device = device
        self._plan: CasePlan | None = None
        self._arena: BareArena | None = None
        self._inputs: dict[str, InputArray] | None = None
        self._calls: list[Callable[[], None]] = []

    def reply(self, frame: Frame[Question]) -> _Reply:
        """Return the answer to a question; an expected error becomes the answer."""
        try:
            match frame.message:
                case FactsQuestion():
                    return self._measured.facts(), ()
                case RunnerLoadQuestion():
                    return self._loaded(frame.message, [array.tobytes() for array in frame.arrays]), ()
                case InputsQuestion():
                    self._inputs = self._kept(frame.message, frame.arrays)
                    return InputsAnswer(), ()
                case RunnerLaunchQuestion():
                    return self._launched(frame.message), ()
                case RepeatQuestion(times=times):
                    return self._repeated(times), ()
                case ShareQuestion():
                    return ShareAnswer(self._loaded_arena().shared()), ()
                case FetchQuestion():
                    outputs = self._loaded_arena().outputs()
                    return FetchAnswer(tuple(outputs)), list(outputs.values())
        except MemoryError as error:
            return Refusal.of(BackendUnavailable(f"no memory on the device: {error}")), ()  # others may have it
        except PrismBenchError as error:
            return Refusal.of(error), ()

    def _loaded(self, question: RunnerLoadQuestion, cubins: Sequence[bytes]) -> LoadAnswer:
        self._plan, self._inputs = (plan := question.plan), None
        symbols = list(dict.fromkeys((step.module, step.symbol) for step in plan.steps if step.symbol))
        variables = self._device.load(cubins, symbols)
        self._arena = BareArena(self._device, plan) if question.watched else Arena(self._measured, plan)
        self._calls = []
        return LoadAnswer(variables)

    def _planned_calls(self, arena: BareArena) -> Iterator[Callable[[], None]]:
        """Yield a function for each step that enqueues it, on the present places of the buffers."""
        for step in self._plan.steps if self._plan else ():
            if step.zero:
                yield partial(self._device.fill, arena.address(step.zero), arena.size(step.zero), 0)
            else:
                yield self._device.call(step, arena.values(step.parameters))

    def _kept(self, question: InputsQuestion, blocks: Sequence[np.ndarray]) -> dict[str, InputArray]:
        if self._plan is None:
            raise UsageError("nothing is loaded")
        shapes = {buffer.name: buffer.shape for buffer in self._plan.buffers}
        return {
            plan.name: InputArray(
                block.reshape(-1), plan.rotations, shapes[plan.name], Runs(plan.length, plan.step), plan.key
            )
            for plan, block in zip(question.inputs, blocks, strict=True)
        }

    def _launched(self, question: RunnerLaunchQuestion) -> RunnerLaunchAnswer:
        arena, inputs, self._inputs = self._arena, self._inputs, None
        if arena is None or inputs is None:
            raise UsageError("no inputs were sent for this launch")
        arena.move(question.key)
        self._calls = list(self._planned_calls(arena))
        if not isinstance(arena, Arena):
            return self._launched_watched(arena, inputs)
        device, broken = self._measured, list[str]()
        seconds: float | None = None
        for _ in range(_TRIES):
            arena.prepare(inputs, question.key)
            device.restore_variables()
            device.synchronize()
            seconds = device.timed(self._enqueue, cold=question.cold)
            broken += arena.broken()
            leaves_work = device.leftover() > _LEFTOVER_SECONDS
            if broken or (seconds is not None and not leaves_work):
                break
        else:
            if seconds is None:
                raise VerificationFailed("its launch cannot be timed: the device began before all was enqueued")
            broken.append("it left work behind on the device")
        return RunnerLaunchAnswer(seconds or 0.0, arena.digests(), tuple(broken))

    def _launched_watched(self, arena: BareArena, inputs: dict[str, InputArray]) -> RunnerLaunchAnswer:
        """Launch once, without a clock: under a sanitizer no launch can wait on the device for others."""
        arena.prepare(inputs, 0)
        self._device.synchronize()
        self._enqueue()
        self._device.synchronize()
        return RunnerLaunchAnswer(0.0, {})

    def _repeated(self, times: int) -> RepeatAnswer:
        if not self._calls:
            raise UsageError("nothing was launched that could be repeated")
        for _ in range(times):
            self._enqueue()
        self._device.synchronize()
        return RepeatAnswer()

    def _enqueue(self) -> None:
        for call in self._calls:
            call()

    def _loaded_arena(self) -> Arena:
        if not isinstance(self._arena, Arena):
            raise UsageError("nothing is loaded")
        return self._arena

    @property
    def _measured(self) -> RefereeDevice:
        if not isinstance(self._device, RefereeDevice):
            raise UsageError("this device launches and measures nothing")
        return self._device


def main(descriptor: str, device: str) -> None:
    """Serve until the channel is closed."""
    end_with(int(descriptor))
    module, _, name = device.partition(":")
    service = cache(partial(_opened, getattr(import_module(module), name)))  # opened by the first question, not before
    FrameChannel.inherited(int(descriptor)).serve(QUESTIONS, lambda frame: service()(frame))


def _opened(open_device: Callable[[], LaunchDevice]) -> Callable[[Frame[Question]], _Reply]:
    """Return the function that answers questions about a device; if the device does not open, it answers with why."""
    try:
        return RunnerService(open_device()).reply
    except PrismBenchError as error:
        refusal = Refusal.of(error)
        return lambda frame: (refusal, ())


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Kernels of other languages on the CPU, in their languages' interpreters, which run in child processes."""

from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from prism_bench.backends.base import Runnable, TimerFactories
from prism_bench.backends.guard import HostGuard
from prism_bench.case import Case, Device
from prism_bench.inputs import InputArray
from prism_bench.kernel import Array, InOut, Launch, Zero
from prism_bench.languages import language
from prism_bench.languages.compiler_process import ask_interpreter
from prism_bench.languages.messages import EmulateQuestion
from prism_bench.measurement import Sample


def not_interpreted(case: Case) -> str | None:
    """Return why the case's language cannot run it on the CPU, or None where it can."""
    return language(case.spec.language).not_emulated()


class InterpretedRunnable(Runnable):
    """A case of another language on NumPy arrays; each launch is one question to the interpreter's process."""

    def __init__(self, case: Case, inputs: Mapping[str, InputArray], device: Device) -> None:
        self.case = case
        self._steps = [step for step in case.plan.steps(device) if isinstance(step, Zero) or not step.is_empty]
        self.reset(inputs)

    def __call__(self) -> None:
        for step in self._steps:
            if isinstance(step, Zero):
                self._buffers[step.name][...] = 0
            else:
                self._launch(step)

    def _launch(self, step: Launch) -> None:
        spec = self.case.spec
        names = step.arguments or tuple(argument.name for argument in spec.arguments)
        values = [np.asarray(self._value(name)) for name in names]
        scalars = tuple(index for index, name in enumerate(names) if name not in self._buffers)
        grid = step.grid if isinstance(step.grid, tuple) else (step.grid,)
        x, y, z = (int(one) for one in (*grid, 1, 1)[:3])
        question = EmulateQuestion(str(spec.source_file), self.case.plan.instance(step), (x, y, z), scalars)
        for name, array in zip(names, ask_interpreter(spec.language, question, values), strict=True):
            if name in self._buffers:
                self._buffers[name][...] = array.reshape(self._buffers[name].shape)

    def _value(self, name: str) -> Any:
        argument = self.case.spec.argument(name)
        return self._buffers[name] if isinstance(argument, Array) else argument.value(self.case.axes)

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self.inputs = inputs
        self._buffers = {array.name: self._laid_out(array) for array in self.case.spec.arrays}

    def _laid_out(self, array: Array) -> np.ndarray:
        shape = self.case.sizes.shape(array.name)
        if array.reads:
            return np.array(self.inputs[array.name].on(np)).reshape(shape)
        content = np.empty(shape, array.dtype)
        content.reshape(-1).view(np.uint8)[:] = array.first_byte
        return content

    def arrays(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        return {name: self._buffers[name] for name in names}

    def restore(self) -> None:
        for array in self.case.spec.inputs:
            if isinstance(array, InOut):
                self._buffers[array.name][...] = self._laid_out(array)

    def guard(self, key: int) -> HostGuard:
        spec, buffers = self.case.spec, self._buffers
        in_place = [array.name for array in spec.inputs if isinstance(array, InOut)]
        return HostGuard(
            {output.name: buffers[output.name] for output in spec.outputs}, in_place=in_place, key=key,
            scratch=[buffers[array.name] for array in spec.arrays if array.scratch],
            inputs=[buffers[array.name] for array in spec.inputs if array.name not in in_place],
        )  # fmt: skip

    def timers(self) -> TimerFactories:
        return {"wall_time": lambda: self._once}

    def _once(self) -> Sample:
        before = perf_counter()
        self()
        return Sample(perf_counter() - before)

    def evidence(self) -> dict[str, Any]:
        spoken = language(self.case.spec.language)
        version = spoken.library.installed_version() or "unknown"
        launches = sum(isinstance(step, Launch) for step in self._steps)
        return {
            "mode": "interpreter", "language": self.case.spec.language, "compiler": f"{spoken.title} {version}",
            "launches": launches,
        }  # fmt: skip

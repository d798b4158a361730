"""Kernels of other languages on the CPU, in their languages' interpreters, which run in child processes."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from prism_bench.backends.host import HostRunnable
from prism_bench.compilation.languages import language
from prism_bench.compilation.languages.compiler_process import ask_interpreter
from prism_bench.compilation.languages.messages import EmulateQuestion
from prism_bench.spec.case import Case, Device
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.kernel import Array, Launch, Zero
from prism_bench.units import count_text


def not_interpreted(case: Case) -> str | None:
    """Return why the case's language cannot run it on the CPU, or None where it can."""
    spoken = language(case.spec.language)
    reason = spoken.not_emulated()
    if reason or spoken.most_threads is None:
        return reason
    launches = [step for step in case.plan.steps(Device()) if isinstance(step, Launch)]
    threads = max((prod(_triple(step.grid)) * prod(_triple(step.block)) for step in launches), default=0)
    if threads <= spoken.most_threads:
        return None
    return (
        f"a launch has {count_text(threads, 'thread')}; {spoken.title} interprets "
        f"at most {spoken.most_threads}, one after another"
    )


class InterpretedRunnable(HostRunnable):
    """A case of another language on NumPy arrays; each launch is one question to the interpreter's process."""

    def __init__(self, case: Case, inputs: Mapping[str, InputArray], device: Device) -> None:
        self.case = case
        self._steps = tuple(self.launched_steps(device))
        self.reset(inputs)

    def __call__(self) -> None:
        for step in self._steps:
            if isinstance(step, Zero):
                self._buffers[step.name][...] = 0
            else:
                self._launch(step)

    def _launch(self, step: Launch) -> None:
        spec = self.case.spec
        names = self.names_of(step)
        values = [np.asarray(self._value(name)) for name in names]
        scalars = tuple(index for index, name in enumerate(names) if name not in self._buffers)
        grid, block = _triple(step.grid), _triple(step.block)
        question = EmulateQuestion(str(spec.source_file), self.case.plan.instance(step), grid, block, scalars)
        for name, array in zip(names, ask_interpreter(spec.language, question, values), strict=True):
            if name in self._buffers:
                self._buffers[name][...] = array.reshape(self._buffers[name].shape)

    def _value(self, name: str) -> Any:
        argument = self.case.spec.argument(name)
        return self._buffers[name] if isinstance(argument, Array) else argument.value(self.case.axes)

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self.inputs = inputs
        self._buffers = {array.name: np.array(self.laid_out(array, inputs)) for array in self.case.spec.arrays}

    def buffer(self, name: str) -> np.ndarray:
        return self._buffers[name]

    def evidence(self) -> dict[str, Any]:
        spoken = language(self.case.spec.language)
        version = spoken.library.installed_version() or "unknown"
        launches = sum(isinstance(step, Launch) for step in self._steps)
        return {
            "mode": "interpreter", "language": self.case.spec.language, "compiler": f"{spoken.title} {version}",
            "launches": launches,
        }  # fmt: skip


def _triple(extents: int | tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (int(one) for one in (*(extents if isinstance(extents, tuple) else (extents,)), 1, 1)[:3])
    return x, y, z

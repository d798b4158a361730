"""Common base of what runs on the CPU: buffers of the host, timed by the wall clock."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from prism_bench.backends.base import Runnable, TimerFactories
from prism_bench.backends.guard import HostGuard
from prism_bench.record.measurement import Sample
from prism_bench.spec.case import Device
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.kernel import Array, InOut, Launch, Zero


class WallTimedRunnable(Runnable):
    """A case that is timed by the wall clock."""

    def timers(self) -> TimerFactories:
        """How long the CPU takes: nothing that a device knows, but two builds can be compared."""
        return {"wall_time": lambda: self._once}

    def _once(self) -> Sample:
        before = perf_counter()
        self()
        return Sample(perf_counter() - before)


class HostRunnable(WallTimedRunnable):
    """A case whose launches work on buffers of the host."""

    @abstractmethod
    def buffer(self, name: str) -> np.ndarray:
        """Return the memory of a buffer, in the case's shape."""

    def launched_steps(self, device: Device) -> Iterator[Launch | Zero]:
        """Yield the steps of the host plan that do anything."""
        steps = self.case.plan.steps(device)
        return (step for step in steps if isinstance(step, Zero) or not step.is_empty)

    def names_of(self, step: Launch) -> tuple[str, ...]:
        """Return the names of the arguments of a launch, in order."""
        return step.arguments or tuple(argument.name for argument in self.case.spec.arguments)

    def laid_out(self, array: Array, inputs: Mapping[str, InputArray]) -> np.ndarray:
        """Return the first content of a buffer: its input, or the poison of an output."""
        shape = self.case.sizes.shape(array.name)
        if array.reads:
            return np.asarray(inputs[array.name].on(np)).reshape(shape)
        content = np.empty(shape, array.dtype)
        content.reshape(-1).view(np.uint8)[:] = array.first_byte
        return content

    def arrays(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: self.buffer(name).reshape(self.case.sizes.shape(name)) for name in names}

    def put(self, name: str, values: np.ndarray) -> None:
        buffer = self.buffer(name)
        buffer[...] = np.reshape(values, buffer.shape)

    def restore(self) -> None:
        for array in self.case.spec.inputs:
            if isinstance(array, InOut):
                self.put(array.name, self.laid_out(array, self.inputs))

    def guard(self, key: int) -> HostGuard:
        spec = self.case.spec
        in_place = [array.name for array in spec.inputs if isinstance(array, InOut)]
        return HostGuard(
            {output.name: self.buffer(output.name) for output in spec.outputs}, in_place=in_place, key=key,
            scratch=[self.buffer(array.name) for array in spec.arrays if array.scratch],
            inputs=[self.buffer(array.name) for array in spec.inputs if array.name not in in_place],
        )  # fmt: skip

"""Group of GPUs on the null backend: results of the reference, times and faults of its script."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from prism_bench.backends.null import NullBackend
from prism_bench.extensions.links.group import DeviceGroup, GroupCall
from prism_bench.extensions.links.operations import GroupCase
from prism_bench.record.measurement import Sample


class HostCall(GroupCall):
    """A case whose outputs are the reference's, rounded, unless the script damages one device's."""

    def __init__(
        self, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]], behaviour: Any, timer: Callable[[], Sample]
    ) -> None:
        operation = case.operation
        self._behaviour, self._timer, self._calls = behaviour, timer, 0
        found = operation.expected(case.axes, inputs, np)
        self._results = [one.astype(operation.dtype) for one in found]
        self._outputs = [np.zeros(operation.output(case.axes), operation.dtype) for _ in found]

    def __call__(self) -> None:
        if self._behaviour.get("crash"):
            os.abort()
        self._calls += 1
        if self._behaviour.get("skips") and self._calls > 1:
            return
        for output, result in zip(self._outputs, self._results, strict=True):
            output[...] = result
        if self._behaviour.get("wrong"):
            self._outputs[-1].reshape(-1)[0] += 1

    def poison(self) -> None:
        for output in self._outputs:
            output[...] = np.nan if output.dtype.kind == "f" else 91

    def outputs(self) -> list[np.ndarray]:
        return self._outputs

    def sample(self) -> Sample:
        if not self._behaviour.get("idles"):
            self()
        return self._timer()


class HostGroup(DeviceGroup):
    """As many devices as a case names."""

    def __init__(self, backend: NullBackend) -> None:
        self._backend = backend

    def prepare(self, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]]) -> HostCall:
        return HostCall(case, inputs, self._backend.scripted(case.name), self._backend.scripted_timer(case.name))

"""A served case as a runnable, which can be verified like any other."""

from collections.abc import Iterable, Mapping

import numpy as np

from prism_bench.backends import Runnable
from prism_bench.extensions.persistent.executor import Executor
from prism_bench.spec.arguments import Array
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray


class ServedRunnable(Runnable):
    """The executor's program `name`, which is `case`; a call is one item. Its arrays are copies on the host."""

    def __init__(self, executor: Executor, name: str, case: Case) -> None:
        self._executor, self._name, self.case = executor, name, case
        self.inputs = {}

    def __call__(self) -> None:
        self._executor.submit(self._name).result()

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self.inputs = inputs
        for array in self.case.spec.arrays:
            if not array.scratch:
                self._executor.write(self._name, array.name, self._content(array, inputs))

    def arrays(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        return {name: self._executor.read(self._name, name) for name in names}

    def _content(self, array: Array, inputs: Mapping[str, InputArray]) -> np.ndarray:
        if array.reads:
            return np.asarray(inputs[array.name].on(np)).reshape(self.case.sizes.shape(array.name))
        poisoned = np.empty(self.case.sizes.shape(array.name), array.dtype)
        poisoned.reshape(-1).view(np.uint8)[:] = array.first_byte
        return poisoned

"""The CPU baseline: the float64 reference itself, on NumPy, timed by the wall clock."""

import platform
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.backends.base import Backend, Runnable
from prism_bench.backends.host import WallTimedRunnable
from prism_bench.io.installation import host_special
from prism_bench.spec.case import Case
from prism_bench.spec.dtypes import stored
from prism_bench.spec.inputs import InputArray
from prism_bench.units import bytes_text

_REFERENCE_COPIES = 6  # a float32 array, its float64 copy, and the temporaries of a reference


def open_backend() -> "NumpyBackend":
    """Open the backend, which is always available."""
    return NumpyBackend()


class NumpyRunnable(WallTimedRunnable):
    """A case's reference on NumPy arrays."""

    def __init__(self, case: Case, inputs: Mapping[str, InputArray], special: ModuleType) -> None:
        self.case, self._special = case, special
        self.reset(inputs)

    def __call__(self) -> None:
        for name, (other, theirs) in self._shared.items():
            if theirs in other._results:
                self.put(name, self._input(name))
            else:  # an input of the other's: its float64 copy is there already
                self._offered[name] = other._offered[theirs].reshape(self.case.sizes.shape(name))
        self._results = self.case.correctness.reference_outputs(self._offered)

    def reset(self, inputs: Mapping[str, InputArray]) -> None:
        self.inputs, self._shared = inputs, {}
        self._inputs = {name: array.on(np) for name, array in inputs.items()}
        self._offered = self.case.correctness.offered(self._inputs, np, self._special)
        self._results = {}

    @np.errstate(over="ignore", invalid="ignore")
    def arrays(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return inputs as they are and outputs rounded to the dtype that the kernel would write."""
        dtypes = {output.name: output.dtype for output in self.case.spec.outputs}
        arrays = {}
        for name in names:
            written = name in self._results
            arrays[name] = stored(self._results[name], dtypes[name]) if written else self._input(name)
        return arrays

    def _input(self, name: str) -> np.ndarray:
        """Return the argument's values, or those of the shared buffer in its place."""
        if name not in self._shared:
            return self._inputs[name]
        other, theirs = self._shared[name]
        return other.arrays([theirs])[theirs].reshape(self.case.sizes.shape(name))

    def _share(self, name: str, other: Runnable, theirs: str) -> None:
        self._shared[name] = other, theirs

    def put(self, name: str, values: np.ndarray) -> None:
        self._inputs[name][...] = np.reshape(values, self.case.sizes.shape(name))
        self._offered |= self.case.correctness.offered({name: self._inputs[name]}, np, self._special)


class NumpyBackend(Backend):
    """References on the CPU."""

    name = "numpy_reference"
    xp = np

    @property
    def special(self) -> ModuleType:
        return host_special

    def facts(self) -> dict[str, Any]:
        return {"device": _processor(), "software": {"numpy": np.__version__}}

    def prepare(self, case: Case, inputs: Mapping[str, InputArray]) -> NumpyRunnable:
        wanted, free = _REFERENCE_COPIES * case.sizes.allocated_bytes, _free_bytes()
        if free is not None and wanted > free:
            raise MemoryError(f"wants about {bytes_text(wanted)} of host memory, {bytes_text(free)} are free")
        return NumpyRunnable(case, inputs, self.special)


def _free_bytes() -> int | None:
    """Host memory that can be had without swapping; None where the system does not say."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()

"""The emulator's `Module` on a real GPU: the same sources, launches and arrays, so that one test asks both."""

from pathlib import Path

import numpy as np
import pytest

from prism_bench import compilation, emulator
from prism_bench.backends.cuda.runnable import tensor_map
from prism_bench.emulator.report import LaunchReport
from prism_bench.io.files import shared_with

ON_DEVICE = pytest.param("device", marks=pytest.mark.gpu)


def build(source: Path, entries, mode):
    """The source on the GPU where `mode` is `device`, else on the emulator in that mode."""
    if mode == "device":
        return DeviceModule(source, entries)
    return emulator.compile_source(source, shared_with(source), entries, mode)


def is_device(module) -> bool:
    """Whether launches of `module` run on a GPU, whose approximate intrinsics have their documented errors."""
    return isinstance(module, DeviceModule)


class DeviceModule:
    """The kernels of one source, compiled by NVRTC for the present device."""

    def __init__(self, source: Path, entries):
        from prism_bench.backends.cuda.device import open_cupy

        self._cupy = open_cupy()
        architecture = self._cupy.cuda.Device().compute_capability
        self._compiled = compilation.compile_source(source, tuple(entries), architecture)
        self._modules = {}

    def launch(self, entry, grid, block, arguments, *, shared_bytes=0, cooperative=False, **_orders) -> LaunchReport:
        """Runs a kernel and copies every array back in place; thread orders are the emulator's and mean nothing here.

        A fault of the launch is raised; a launch that came through is clean.
        """
        mapped = {id(passed): passed for passed in arguments if isinstance(passed, emulator.MappedBuffer)}
        arrays = [passed.buffer for passed in mapped.values()]
        arrays += [argument for argument in arguments if isinstance(argument, np.ndarray)]
        copies = {id(array): self._cupy.asarray(np.ascontiguousarray(array)) for array in arrays}
        maps = {key: tensor_map(passed.wanted, copies[id(passed.buffer)]) for key, passed in mapped.items()}
        values = tuple((maps | copies).get(id(argument), argument) for argument in arguments)
        self._kernel(entry, shared_bytes, cooperative)(_three(grid), _three(block), values, shared_mem=shared_bytes)
        self._cupy.cuda.runtime.deviceSynchronize()
        for array in arrays:
            array[...] = copies[id(array)].get()
        return LaunchReport(entry)

    def close(self):
        """Lets go of the loaded code."""
        self._modules.clear()

    def _kernel(self, entry, shared_bytes, cooperative):
        if cooperative not in self._modules:
            path = str(self._compiled.path)
            self._modules[cooperative] = self._cupy.RawModule(path=path, enable_cooperative_groups=cooperative)
        kernel = self._modules[cooperative].get_function(self._compiled.lowered[entry])
        if shared_bytes > 48 << 10:
            kernel.max_dynamic_shared_size_bytes = shared_bytes
        return kernel


def _three(extent):
    return (*extent, 1, 1)[:3] if isinstance(extent, tuple) else (extent, 1, 1)

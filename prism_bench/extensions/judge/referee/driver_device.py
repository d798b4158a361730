"""Device of a watched runner: the driver itself, since CuPy's import and kernels cost a second under each check."""

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.judge.referee.buffers import LaunchDevice
from prism_bench.extensions.judge.referee.messages import StepPlan
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.launch import TensorMap

_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
_NO_CLUSTER = (1, 1, 1)


def open_device() -> "DriverDevice":
    """Open the current GPU; raise BackendUnavailable without a driver or a GPU."""
    try:
        return DriverDevice(ctypes.CDLL("libcuda.so.1"))
    except (OSError, DriverError) as error:
        raise BackendUnavailable(f"no GPU answers: {error}") from error


class DriverError(RuntimeError):
    """Error that a function of the driver returned; it ends the runner, and the tool that watches it reports why."""

    def __init__(self, name: str, status: int) -> None:
        super().__init__(f"{name} returned CUDA error {status}")
        self.status = status


class DriverDevice(LaunchDevice):
    """Current GPU through the functions of `driver`, with an own context. Every buffer is one allocation."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._memory: list[int] = []
        self._modules: list[ctypes.c_void_p] = []
        self._functions: dict[tuple[int, str], ctypes.c_void_p] = {}
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._ask("cuInit", 0)
        self._ask("cuDeviceGet", ctypes.byref(device), 0)
        self._ask("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._ask("cuCtxSetCurrent", context)

    def load(self, cubins: Sequence[bytes], symbols: Sequence[tuple[int, str]]) -> dict[str, int]:
        """Load each cubin as a new module; return no variables, since a module is loaded anew for each launch."""
        self.synchronize()
        for module in self._modules:
            self._ask("cuModuleUnload", module)
        self._modules, self._functions = [ctypes.c_void_p() for _ in cubins], {}
        for module, cubin in zip(self._modules, cubins, strict=True):
            self._ask("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(cubin))
        for number, symbol in symbols:
            function = self._functions[number, symbol] = ctypes.c_void_p()
            self._ask("cuModuleGetFunction", ctypes.byref(function), self._modules[number], symbol.encode())
        return {}

    def allocate(self, size: int) -> int:
        address = ctypes.c_uint64()
        try:
            self._ask("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        except DriverError as error:
            if error.status == _OUT_OF_MEMORY:
                raise MemoryError(str(error)) from error
            raise
        self._memory.append(address.value)
        return address.value

    def free_all(self) -> None:
        for address in self._memory:
            self._ask("cuMemFree_v2", ctypes.c_uint64(address))
        self._memory = []

    def fill(self, address: int, size: int, value: int) -> None:
        if size:
            self._ask("cuMemsetD8_v2", ctypes.c_uint64(address), ctypes.c_ubyte(value), ctypes.c_size_t(size))

    def lay_out(self, address: int, content: InputArray) -> None:
        whole = np.ascontiguousarray(content.on(np))
        if whole.nbytes:
            source = ctypes.c_void_p(whole.ctypes.data)
            self._ask("cuMemcpyHtoD_v2", ctypes.c_uint64(address), source, ctypes.c_size_t(whole.nbytes))

    def tensor_map(self, wanted: TensorMap, address: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        from prism_bench.backends.cuda.runnable import tensor_map  # few submissions pay for this import

        place = SimpleNamespace(ptr=address)
        buffer = SimpleNamespace(dtype=np.dtype(dtype), shape=shape, size=prod(shape), data=place)
        return tensor_map(wanted, buffer, self._driver)

    def call(self, step: StepPlan, values: Sequence[int | np.generic | np.ndarray]) -> Callable[[], None]:
        """Return a function that enqueues a launch; launches never overlap here, so that the tool sees each."""
        held = [np.asarray([np.uint64(value) if isinstance(value, int) else value]) for value in values]
        function = self._functions[step.module, step.symbol]
        if step.shared:  # without it, static and dynamic shared memory together are limited to 48 KiB
            self._ask("cuFuncSetAttribute", function, _DYNAMIC_SHARED, step.shared)
        if step.cluster != _NO_CLUSTER:
            from prism_bench.backends.cuda.runnable import LaunchExtents, clustered_call

            extents = LaunchExtents(step.grid, step.block, step.shared)
            return clustered_call(function.value or 0, extents, step.cluster, [value[0] for value in held], lambda: 0)
        name, last = ("cuLaunchCooperativeKernel", ()) if step.cooperative else ("cuLaunchKernel", (None,))
        addresses = (ctypes.c_void_p * len(held))(*(value.ctypes.data for value in held))

        def launch() -> None:
            assert len(addresses) == len(held)  # the addresses are those of arrays that this function keeps
            extents = map(ctypes.c_uint, (*step.grid, *step.block, step.shared))
            self._ask(name, function, *extents, None, addresses if held else None, *last)

        return launch

    def synchronize(self) -> None:
        self._ask("cuCtxSynchronize")

    def _ask(self, name: str, *arguments: Any) -> None:
        if status := getattr(self._driver, name)(*arguments):
            raise DriverError(name, status)

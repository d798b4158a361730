"""Runner's device on a GPU: driver calls, the harness that times, and outputs shared with another process."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.backends.cuda.backend import CudaBackend
from prism_bench.backends.cuda.backend import open_backend as open_cuda
from prism_bench.backends.cuda.device import CudaDevice
from prism_bench.backends.cuda.guard import guard_kernels
from prism_bench.backends.cuda.runnable import (
    FIRST_CAPABILITY,
    LaunchExtents,
    clustered_call,
    overlapping_call,
    tensor_map,
)
from prism_bench.backends.cuda.timers import StreamNotHeld
from prism_bench.compilation.cubin import variable_symbols
from prism_bench.errors import MeasurementInvalid, VerificationFailed
from prism_bench.extensions.judge.referee.buffers import RefereeDevice
from prism_bench.extensions.judge.referee.messages import BufferPlan, CasePlan, FactsAnswer, StepPlan
from prism_bench.spec.inputs import AnyArray, ArrayModule, InputArray
from prism_bench.spec.launch import TensorMap

# The device's memory by address: fill, compare, digest, copy

_THREADS = 256
_ALL = 2**64 - 1


class DeviceBytes:
    """Operations on memory of another owner, on the current stream."""

    def __init__(self, cupy: ModuleType, device: CudaDevice) -> None:
        self._cupy, self._blocks = cupy, 4 * device.sm_count
        self._kernels = guard_kernels(cupy, str(device.compute_capability))

    def fill(self, address: int, size: int, value: int) -> None:
        """Fill bytes with a value."""
        self._pointer(address, size).memset_async(value, size)

    def is_filled(self, address: int, size: int, value: int) -> bool:
        """Return whether all bytes have a value."""
        return bool((self._view(address, size) == value).all())

    def randomize(self, address: int, size: int, key: int) -> None:
        """Fill bytes at random, by a key."""
        if size:
            arguments = np.uint64(address), np.int64(size), np.uint64(key & _ALL)
            self._kernels["overwrite_at_random"]((self._blocks,), (_THREADS,), arguments)

    def digest(self, address: int, size: int) -> int:
        """Return the digest of bytes, as `guard.cu` computes it."""
        sums = self._cupy.zeros(1, np.uint64)
        if size:
            arguments = np.uint64(address), np.int64(size), sums, np.int32(0)
            self._kernels["digest"]((self._blocks,), (_THREADS,), arguments)
        return int(sums.get()[0])

    def put(self, address: int, content: InputArray) -> None:
        """Write an input, which repeats its block or consists of chosen runs of it, on the device."""
        if content.key is not None and content.runs:
            size, block, runs = content.dtype.itemsize, self._cupy.asarray(content.block), content.runs
            which = np.int64(content.nbytes // size), np.int32(size), block, np.uint64(content.key & _ALL)
            how = np.int64(runs.length), np.int64(runs.step), np.uint64(runs.count)
            self._kernels["choose"]((self._blocks,), (_THREADS,), (np.uint64(address), *which, *how))
            return
        self._view(address, content.nbytes)[...] = content.on(self._cupy).reshape(-1).view(np.uint8)

    def array(self, address: int, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
        """Return an array of the device over the memory itself."""
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return self._cupy.ndarray(shape, dtype, self._pointer(address, size))

    def read(self, address: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        """Return an array of the device's memory as a copy on the host."""
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return self._view(address, size).get().view(dtype).reshape(shape)

    def _view(self, address: int, size: int) -> Any:
        return self._cupy.ndarray((size,), np.uint8, self._pointer(address, size))

    def _pointer(self, address: int, size: int) -> Any:
        cuda = self._cupy.cuda
        return cuda.MemoryPointer(cuda.UnownedMemory(address, size, self), 0)


# The device: CuPy's driver calls, and the harness that also times all other launches of Prism Bench

with suppress(ImportError):  # for processes that are started ahead; the import opens no device
    import_module("cupy")

_CANARY_BYTES, _CANARY_KEY = 1 << 20, 7
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_EMPTY_KERNELS = 20
_OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation
_NO_CLUSTER = (1, 1, 1)


def open_device() -> "CudaRefereeDevice":
    """Open the current GPU; raise BackendUnavailable without a GPU."""
    return CudaRefereeDevice(open_cuda())


def open_watched_device() -> "CudaRefereeDevice":
    """Open the current GPU under a sanitizer: each buffer is an allocation of the driver, with nothing next to it."""
    opened = open_device()
    opened.allocate_singly()
    return opened


class CudaRefereeDevice(RefereeDevice):
    """Current GPU, in the context of this process."""

    def __init__(self, backend: CudaBackend) -> None:
        self._backend, self._cupy, self._harness = backend, backend.xp, backend.harness
        self._bytes = DeviceBytes(backend.xp, backend.device)
        self._memory: dict[int, Any] = {}
        self._modules: list[Any] = []
        self._functions: dict[tuple[int, str], Any] = {}
        self._cubins, self._symbols = tuple[bytes, ...](), tuple[tuple[int, str], ...]()
        self._has_variables = False
        self._shared: dict[str, Any] = {}  # copies by what was copied

    def facts(self) -> FactsAnswer:
        device, bounds = self._backend.device, self._backend.bounds()
        samples = sorted(self._harness.timed(self._harness.nothing, cold=True).seconds for _ in range(_EMPTY_KERNELS))
        address = self.allocate(_CANARY_BYTES)
        self.randomize(address, _CANARY_BYTES, _CANARY_KEY)
        canary = self.digest(address, _CANARY_BYTES)
        self.free_all()
        return FactsAnswer(
            device.name,
            device.uuid,
            device.sm_count,
            device.max_shared_bytes,
            device.compute_capability,
            device.l2_bytes,
            samples[0],
            bounds.bus or 0.0,
            canary,
            bounds.operations(),
        )

    def load(self, cubins: Sequence[bytes], symbols: Sequence[tuple[int, str]]) -> dict[str, int]:
        sizes = {name: size for cubin in cubins for name, size in variable_symbols(cubin).items()}
        self._cubins, self._symbols, self._has_variables = tuple(cubins), tuple(symbols), bool(sizes)
        self._load()
        return sizes

    def restore_variables(self) -> None:
        if self._has_variables:
            self._load()  # the driver has no address for variables that are static

    def _load(self) -> None:
        self.synchronize()
        self._functions, self._modules = {}, []  # a module is unloaded with its last reference
        for cubin in self._cubins:
            module = self._cupy.cuda.function.Module()  # RawModule would give a module that is loaded already
            module.load(cubin)
            self._modules.append(module)
        self._functions = {
            (number, symbol): self._modules[number].get_function(symbol) for number, symbol in self._symbols
        }
        self.synchronize()

    def allocate_singly(self) -> None:
        """Take all memory from the driver from now on, allocation by allocation, not from a pool."""
        self._cupy.cuda.set_allocator(None)

    def allocate(self, size: int) -> int:
        try:
            memory = self._cupy.cuda.alloc(size)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise MemoryError(str(error)) from error
        except self._cupy.cuda.runtime.CUDARuntimeError as error:  # without a pool
            if error.status == _OUT_OF_MEMORY:
                raise MemoryError(str(error)) from error
            raise
        self._memory[int(memory.ptr)] = memory
        return int(memory.ptr)

    def free_all(self) -> None:
        self._memory.clear()
        self._shared.clear()
        self._cupy.get_default_memory_pool().free_all_blocks()

    def fill(self, address: int, size: int, value: int) -> None:
        self._bytes.fill(address, size, value)

    def randomize(self, address: int, size: int, key: int) -> None:
        self._bytes.randomize(address, size, key)

    def is_filled(self, address: int, size: int, value: int) -> bool:
        return self._bytes.is_filled(address, size, value)

    def digest(self, address: int, size: int) -> int:
        return self._bytes.digest(address, size)

    def lay_out(self, address: int, content: InputArray) -> None:
        self._bytes.put(address, content)

    def read(self, address: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        return self._bytes.read(address, np.dtype(dtype), shape)

    def share(self, name: str, address: int, size: int) -> bytes | None:
        runtime, memory = self._cupy.cuda.runtime, self._cupy.cuda.memory
        try:
            if name not in self._shared:
                self._shared[name] = memory.Memory(size)  # not of the pool, whose other buffers it would show
            copy = self._shared[name].ptr
            runtime.memcpy(copy, address, size, runtime.memcpyDeviceToDevice)
            self.synchronize()
            return runtime.ipcGetMemHandle(copy)
        except (memory.OutOfMemoryError, runtime.CUDARuntimeError):
            return None  # the outputs go through the host then

    def tensor_map(self, wanted: TensorMap, address: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        return tensor_map(wanted, self._bytes.array(address, np.dtype(dtype), shape))

    def call(self, step: StepPlan, values: Sequence[int | np.generic | np.ndarray]) -> Callable[[], None]:
        arguments = tuple(np.uint64(value) if isinstance(value, int) else value for value in values)
        extents, stream = LaunchExtents(step.grid, step.block, step.shared), lambda: self._harness.stream.ptr
        overlaps = step.overlaps and self._backend.device.compute_capability >= FIRST_CAPABILITY

        def launch() -> None:
            function = self._functions[step.module, step.symbol]  # of the present module
            if step.shared:  # without it, static and dynamic shared memory together are limited to 48 KiB
                self._cupy.cuda.driver.funcSetAttribute(function.ptr, _DYNAMIC_SHARED, step.shared)
            if overlaps:
                overlapping_call(function.ptr, extents, arguments, stream)()
                return
            if step.cluster != _NO_CLUSTER:
                clustered_call(function.ptr, extents, step.cluster, arguments, stream)()
                return
            function(
                step.grid, step.block, arguments, shared_mem=step.shared, enable_cooperative_groups=step.cooperative
            )

        return launch

    def timed(self, call: Callable[[], None], *, cold: bool) -> float | None:
        self._harness.forget_persisting()
        try:
            return self._harness.timed(call, cold=cold, tries=1).seconds  # another try needs its inputs again
        except StreamNotHeld:
            return None
        except MeasurementInvalid as error:
            raise VerificationFailed(f"its launch cannot be timed: {error}") from error

    def leftover(self) -> float:
        before = perf_counter()
        self._cupy.cuda.runtime.deviceSynchronize()
        return perf_counter() - before

    def synchronize(self) -> None:
        self._cupy.cuda.runtime.deviceSynchronize()


# Outputs of another process on the same device, copied without the host


def copied_outputs(xp: ArrayModule, plan: CasePlan, handles: Mapping[str, bytes]) -> dict[str, AnyArray]:
    """Return arrays of CuPy, `xp`, with the content of the memory that the handles open, by name.

    Empty if a handle is missing, or if the driver cannot open or copy the memory.
    """
    outputs = [buffer for buffer in plan.buffers if buffer.is_written]
    if any(buffer.nbytes and buffer.name not in handles for buffer in outputs):
        return {}
    try:
        return {buffer.name: _copied(xp, buffer, handles.get(buffer.name)) for buffer in outputs}
    except xp.cuda.runtime.CUDARuntimeError:
        return {}


def _copied(xp: ArrayModule, buffer: BufferPlan, handle: bytes | None) -> AnyArray:
    copy, runtime = xp.empty(buffer.shape, np.dtype(buffer.dtype)), xp.cuda.runtime
    if handle is None:
        return copy
    opened = runtime.ipcOpenMemHandle(handle)
    try:
        runtime.deviceSynchronize()  # the new array's memory may still be in use
        runtime.memcpy(copy.data.ptr, opened, copy.nbytes, runtime.memcpyDeviceToDevice)
        runtime.deviceSynchronize()
    finally:
        runtime.ipcCloseMemHandle(opened)
    return copy

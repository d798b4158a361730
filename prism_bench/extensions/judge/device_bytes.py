"""Bytes of the device's memory by address, wherever they are: fill, compare, digest, copy."""

from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.backends.cuda.device import CudaDevice
from prism_bench.backends.cuda.guard import guard_kernels
from prism_bench.spec.inputs import InputArray

_THREADS = 256
_ALL = 2**64 - 1


class DeviceBytes:
    """Operations on memory that something else owns, on the current stream."""

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
        """Return the digest of bytes, as `guard.cu` adds it up."""
        sums = self._cupy.zeros(1, np.uint64)
        if size:
            arguments = np.uint64(address), np.int64(size), sums, np.int32(0)
            self._kernels["digest"]((self._blocks,), (_THREADS,), arguments)
        return int(sums.get()[0])

    def put(self, address: int, content: InputArray) -> None:
        """Write an input, whose block is repeated, or put together of chosen runs, on the device."""
        if content.key is not None and content.runs:
            size, block, runs = content.dtype.itemsize, self._cupy.asarray(content.block), content.runs
            which = np.int64(content.nbytes // size), np.int32(size), block, np.uint64(content.key & _ALL)
            how = np.int64(runs.length), np.int64(runs.step), np.uint64(runs.count)
            self._kernels["choose"]((self._blocks,), (_THREADS,), (np.uint64(address), *which, *how))
            return
        laid_out = content.on(self._cupy)
        self._view(address, content.nbytes)[...] = laid_out.reshape(-1).view(np.uint8)

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

"""NCCL in one process: a communicator for each device of a group, and the collectives as calls on all of them.

NVLink multicast (NVLS) is off: it needs rights of the host that a guest lacks, and a fault of it takes the links down.
"""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from prism_bench.errors import BackendUnavailable

WITHOUT_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}


def forbid_multicast() -> None:
    """Switch NVLink multicast off for whatever this process loads from here on."""
    os.environ.update(WITHOUT_MULTICAST)


class Communicators:
    """The communicators of the first `count` devices; BackendUnavailable where NCCL is missing."""

    def __init__(self, count: int) -> None:
        forbid_multicast()
        self._nccl: Any = _nccl()
        self._all = self._nccl.NcclCommunicator.initAll(list(range(count)))

    @property
    def version(self) -> str:
        """`2.27.7`."""
        number = int(self._nccl.get_version())
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def on_all(self, call: Callable[[int, Any], None]) -> None:
        """Call with the number and the communicator of each device; NCCL starts them as one operation."""
        self._nccl.groupStart()
        try:
            for device, communicator in enumerate(self._all):
                call(device, communicator)
        finally:
            self._nccl.groupEnd()

    def all_reduce(self, arrays: Sequence[Any], outputs: Sequence[Any], streams: Sequence[Any]) -> None:
        """Enqueue: every output is the sum of all arrays."""
        kind, add = self._type(arrays[0]), self._nccl.NCCL_SUM
        self.on_all(
            lambda device, one: one.allReduce(
                arrays[device].data.ptr, outputs[device].data.ptr, arrays[device].size, kind, add, streams[device].ptr
            )
        )

    def all_gather(self, arrays: Sequence[Any], outputs: Sequence[Any], streams: Sequence[Any]) -> None:
        """Enqueue: every output is all arrays, one after the other."""
        kind = self._type(arrays[0])
        self.on_all(
            lambda device, one: one.allGather(
                arrays[device].data.ptr, outputs[device].data.ptr, arrays[device].size, kind, streams[device].ptr
            )
        )

    def all_to_all(self, arrays: Sequence[Any], outputs: Sequence[Any], streams: Sequence[Any]) -> None:
        """Enqueue: part i of a device's output is its part of the array of device i."""
        kind, count = self._type(arrays[0]), arrays[0].size // len(arrays)
        step = count * arrays[0].itemsize

        def exchange(device: int, one: Any) -> None:
            for other in range(len(arrays)):
                one.send(arrays[device].data.ptr + other * step, count, kind, other, streams[device].ptr)
                one.recv(outputs[device].data.ptr + other * step, count, kind, other, streams[device].ptr)

        self.on_all(exchange)

    def _type(self, array: Any) -> int:
        return {"float32": self._nccl.NCCL_FLOAT32, "float16": self._nccl.NCCL_FLOAT16}[array.dtype.name]


def _nccl() -> ModuleType:
    """Return CuPy's NCCL; BackendUnavailable where the library is not installed."""
    try:
        found = import_module("cupy.cuda.nccl")
    except ImportError as error:
        raise BackendUnavailable(f"NCCL cannot be loaded: {error}") from None
    if not getattr(found, "available", False):
        raise BackendUnavailable("NCCL is not installed; pip install nvidia-nccl-cu13")
    return found

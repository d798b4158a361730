"""The CUDA backend: one device, one stream, one harness; its own stream or a library's."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from prism_bench.backends.base import Backend, HeldBytes, Runnable, TimerFactories
from prism_bench.backends.cuda.device import FP32_LANES, CudaDevice, DeviceBounds, describe, open_cupy, software
from prism_bench.backends.cuda.inspection import Inspector
from prism_bench.backends.cuda.peers.peer import CallableTimers, CudaPeer, torch_stream
from prism_bench.backends.cuda.peers.torch_forms import peer_names
from prism_bench.backends.cuda.runnable import CudaCalled, CudaRunnable
from prism_bench.backends.cuda.timers import CudaFlow, Harness
from prism_bench.errors import BackendUnavailable
from prism_bench.io.files import writable_cache
from prism_bench.monitor.nvml import board_facts
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.peer import ArrayPackage
from prism_bench.units import bytes_text

# The backend itself: one device, one stream, one harness.

_ATTRIBUTES = (("clockRate", 13), ("memoryClockRate", 36), ("memoryBusWidth", 37))  # by cudaDeviceAttr


def open_backend() -> "CudaBackend":
    """Open the backend on the current device; BackendUnavailable without one, CacheUnavailable without a cache."""
    backend = CudaBackend(open_cupy())
    writable_cache("cubin")
    return backend


class CudaBackend(Backend):
    """Cases on the current CUDA device, all on one non-blocking stream that it owns."""

    name = "cuda"

    def __init__(self, cupy: ModuleType, stream: Any = None) -> None:
        self.xp = cupy
        self._device = describe(cupy)
        self._stream = stream
        if stream is None:
            self._stream = cupy.cuda.Stream(non_blocking=True)
            self._stream.__enter__()  # for good; after `use()` the end of any library's `with` means the null stream
            cupy.cuda.runtime.deviceSynchronize()  # work begun on other streams is complete for ours
        self.harness = Harness(cupy, self._device, self._stream)

    @property
    def special(self) -> ModuleType:
        import cupyx.scipy.special

        return cupyx.scipy.special

    @property
    def device(self) -> CudaDevice:
        return self._device

    def facts(self) -> dict[str, Any]:
        device = self._device
        return {
            "device": device.name,
            "uuid": device.uuid,
            "board": board_facts(device.uuid),
            "sm_count": device.sm_count,
            "compute_capability": device.compute_capability,
            "l2_bytes": device.l2_bytes,
            "memory_bytes": device.memory_bytes,
            **self._widths(),
            "software": software(self.xp),
        }

    def answers(self) -> bool:
        try:
            self.xp.cuda.runtime.deviceSynchronize()
        except self.xp.cuda.runtime.CUDARuntimeError:
            return False
        return True

    def held_bytes(self, alone: bool) -> HeldBytes:
        pool, torch = self.xp.get_default_memory_pool(), sys.modules.get("torch")
        live, kept = pool.used_bytes(), pool.total_bytes()
        if torch is not None and torch.cuda.is_initialized():
            live, kept = live + torch.cuda.memory_allocated(), kept + torch.cuda.memory_reserved()
        free, total = self.xp.cuda.runtime.memGetInfo() if alone else (0, 0)
        return HeldBytes(live, max(0, total - free - kept))

    def prepare(self, case: Case, inputs: Mapping[str, InputArray]) -> CudaRunnable:
        refusal = case.plan.refusal(self._device)
        if refusal:
            raise BackendUnavailable(f"{case.name}: {refusal}")
        free, _ = self.xp.cuda.runtime.memGetInfo()
        if case.sizes.allocated_bytes > free:
            raise MemoryError(f"wants {bytes_text(case.sizes.allocated_bytes)}, {bytes_text(free)} are free")
        try:
            kind = CudaRunnable if case.spec.callable is None else CudaCalled
            return kind(self.xp, self._device, self.harness, case, inputs)
        except self.xp.cuda.memory.OutOfMemoryError as error:
            raise MemoryError(f"wants {bytes_text(case.sizes.allocated_bytes)}: {error}") from error

    def flow(self) -> CudaFlow:
        return CudaFlow(self.xp, self._stream)

    def peers(self, case: Case) -> tuple[str, ...]:
        return peer_names(case)

    def prepare_peer(self, case: Case, name: str, runnable: Runnable) -> CudaPeer:
        return CudaPeer(self.xp, self.harness, case, name, runnable)

    def callable_timers(self, call: Callable[[], object], library: ArrayPackage) -> TimerFactories:
        """Timers for any callable that enqueues on the current stream."""
        return CallableTimers(self.harness, call, library).timers()

    def inspector(self) -> Inspector:
        """Return an inspector, which checks a callable before it is timed."""
        return Inspector(self.harness)

    def _widths(self) -> dict[str, int]:
        """Return the clocks and widths that limit every rate, as a record keeps them, if the device reports them."""
        clock, memory_clock, bits = (int(self._attribute(*attribute)) for attribute in _ATTRIBUTES)
        counts = {
            "memory_clock": 1000 * memory_clock,
            "memory_bus_bits": bits,
            "highest_sm_clock": 1000 * clock,
            "fp32_lanes": FP32_LANES.get(self._device.compute_capability, 0),
        }
        return {name: number for name, number in counts.items() if number}

    def bounds(self) -> DeviceBounds:
        """Return the upper limits of the device's rates by its attributes."""
        clock, memory_clock, bits = (self._attribute(*attribute) for attribute in _ATTRIBUTES)
        device = self._device
        bus = 2 * memory_clock * 1e3 * bits / 8 if memory_clock and bits else None
        return DeviceBounds(device.sm_count, device.compute_capability, clock * 1e3, device.l2_bytes, bus)

    def _attribute(self, property_name: str, number: int) -> int:
        """Return a number that CUDA 13 no longer keeps among the properties."""
        runtime, index = self.xp.cuda.runtime, self.xp.cuda.Device().id
        known = runtime.getDeviceProperties(index).get(property_name, 0)
        return known or runtime.deviceGetAttribute(number, index)


# The backend for a user's callable: the libraries' current streams are ours within the block.

# CuPy 14 destroys a stream it was only lent when it forgets it; so it must not forget. A process has few streams.
_ADOPTED: dict = {}


@contextmanager
def borrowed_backend(stream: Any = None) -> Iterator[tuple[CudaBackend, str]]:
    """Open a backend on `stream` (CuPy's, PyTorch's or a new one), current in CuPy and, if loaded, in PyTorch.

    Gives the backend and the library whose graphs can capture the callable: `torch` where it is loaded.
    """
    cupy = open_cupy()
    chosen = _as_cupy(cupy, stream) if stream is not None else cupy.cuda.Stream(non_blocking=True)
    with ExitStack() as stack:
        stack.enter_context(chosen)
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.cuda.synchronize()
            stack.enter_context(torch.cuda.stream(torch_stream(chosen)))
        cupy.cuda.runtime.deviceSynchronize()
        yield CudaBackend(cupy, chosen), "torch" if torch is not None else "cupy"
        chosen.synchronize()


def _as_cupy(cupy: ModuleType, stream: Any) -> Any:
    """Return the stream as CuPy's, whichever library made it."""
    if hasattr(stream, "ptr"):
        return stream
    if hasattr(cupy.cuda.Stream, "from_external"):  # since CuPy 14, where ExternalStream is deprecated
        handle = stream.cuda_stream
        if handle not in _ADOPTED:
            _ADOPTED[handle] = cupy.cuda.Stream.from_external(_Foreign(handle))
        return _ADOPTED[handle]
    return cupy.cuda.ExternalStream(stream.cuda_stream)


@dataclass(frozen=True)
class _Foreign:
    """A stream's handle by the CUDA stream protocol, which not every PyTorch speaks itself."""

    handle: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

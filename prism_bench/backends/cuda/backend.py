"""The backend itself: one device, one stream, one harness."""

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from prism_bench.backends.base import Backend, HeldBytes, Runnable, TimerFactories
from prism_bench.backends.cuda.called import CudaCalled
from prism_bench.backends.cuda.chip import FP32_LANES, DeviceBounds
from prism_bench.backends.cuda.device import CudaDevice, describe, open_cupy, software
from prism_bench.backends.cuda.flow import CudaFlow
from prism_bench.backends.cuda.harness import Harness
from prism_bench.backends.cuda.inspection import Inspector
from prism_bench.backends.cuda.peers.peer import CallableTimers, CudaPeer
from prism_bench.backends.cuda.peers.torch_case import peer_names
from prism_bench.backends.cuda.runnable import CudaRunnable
from prism_bench.errors import BackendUnavailable
from prism_bench.io.files import writable_cache
from prism_bench.monitor.board import board_facts
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.peer import ArrayPackage
from prism_bench.units import bytes_text

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
        clock, memory_clock, bits = (int(self._attribute(*one)) for one in _ATTRIBUTES)
        counts = {
            "memory_clock": 1000 * memory_clock,
            "memory_bus_bits": bits,
            "highest_sm_clock": 1000 * clock,
            "fp32_lanes": FP32_LANES.get(self._device.compute_capability, 0),
        }
        return {name: number for name, number in counts.items() if number}

    def bounds(self) -> DeviceBounds:
        """Return the upper limits of the device's rates by its attributes."""
        clock, memory_clock, bits = (self._attribute(*one) for one in _ATTRIBUTES)
        device = self._device
        bus = 2 * memory_clock * 1e3 * bits / 8 if memory_clock and bits else None
        return DeviceBounds(device.sm_count, device.compute_capability, clock * 1e3, device.l2_bytes, bus)

    def _attribute(self, property_name: str, number: int) -> int:
        """Return a number that CUDA 13 no longer keeps among the properties."""
        runtime, index = self.xp.cuda.runtime, self.xp.cuda.Device().id
        known = runtime.getDeviceProperties(index).get(property_name, 0)
        return known or runtime.deviceGetAttribute(number, index)

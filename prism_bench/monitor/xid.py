"""Xid events: the driver's error reports, for which a separate thread waits."""

from collections import deque
from collections.abc import Callable, Sequence
from threading import Event, Thread
from time import perf_counter, thread_time
from types import ModuleType
from typing import Any

from prism_bench.monitor.devices import NvmlDevice
from prism_bench.monitor.nvml import DeviceLost, why_missing

_WAIT_MS = 200
_KEPT = 1000


class XidWatch:
    """Collects the Xids of the devices from `start` to `stop`; `missing` has the reason if they are not available.

    Its thread has taken `cpu_seconds` of a core.
    """

    def __init__(
        self, pynvml: ModuleType, devices: Sequence[NvmlDevice], clock: Callable[[], float] = perf_counter
    ) -> None:
        self._pynvml, self._clock = pynvml, clock
        self._devices = [device for device in devices if not device.is_slice]
        self._seen: deque[tuple[float, str, int]] = deque(maxlen=_KEPT)
        self._ending, self._set = Event(), None
        self._thread = Thread(target=self._listen, name="prism-bench-xid", daemon=True)
        self.missing: str | None = None
        self.cpu_seconds = 0.0

    def start(self) -> None:
        """Register for the events and begin to listen; if that is not offered, `missing` has the reason."""
        nvml = self._pynvml
        try:
            self._set = nvml.nvmlEventSetCreate()
            for device in self._devices:
                nvml.nvmlDeviceRegisterEvents(device.handle, nvml.nvmlEventTypeXidCriticalError, self._set)
        except nvml.NVMLError as error:
            self.missing = _words(nvml, error)
            return
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ending.set()
        if self._thread.ident:
            self._thread.join(2.0)

    def between(self, begin: float, end: float) -> list[tuple[str, int]]:
        """(UUID, Xid) of the events in that stretch of the clock."""
        return [(uuid, number) for at, uuid, number in list(self._seen) if begin <= at <= end]

    def _listen(self) -> None:
        nvml = self._pynvml
        while not self._ending.is_set():
            self.cpu_seconds = thread_time()
            try:
                event = nvml.nvmlEventSetWait(self._set, _WAIT_MS)
            except nvml.NVMLError as error:
                if error.value != nvml.NVML_ERROR_TIMEOUT:
                    self.missing = _words(nvml, error)
                    break
                continue
            self._seen.append((self._clock(), self._uuid(event.device), int(event.eventData)))
        try:
            nvml.nvmlEventSetFree(self._set)
        except nvml.NVMLError:
            return

    def _uuid(self, handle: Any) -> str:
        try:
            return self._pynvml.nvmlDeviceGetUUID(handle)
        except self._pynvml.NVMLError:
            return "a device that does not answer"


def _words(nvml: ModuleType, error: Any) -> str:
    try:
        return why_missing(nvml, error)
    except DeviceLost as lost:
        return str(lost)

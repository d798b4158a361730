"""GPM, Hopper and later: means over the time between two samples, without ncu and without its lock on the counters."""

from types import ModuleType
from typing import Any

from prism_bench.monitor.devices import NvmlDevice

PERIOD = 0.25  # the driver wants a tenth of a second at least between two samples
# Numbers of NVML_GPM_METRIC_*, which gives percents.
METRICS = {"sm_active": 2, "sm_occupancy": 3, "tensor_active": 5, "dram_active": 10}


class Gpm:
    """Two samples of one device, taken in turn."""

    def __init__(self, pynvml: ModuleType, device: NvmlDevice) -> None:
        self._pynvml, self._device = pynvml, device
        self._samples: list = []
        self._taken = 0

    def read(self) -> dict:
        """Shares by name, means since the last call; reasons instead at the first one. NVMLError where not offered."""
        nvml = self._pynvml
        if self._device.is_slice or not nvml.nvmlGpmQueryDeviceSupport(self._device.handle).isSupportedDevice:
            raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
        if not self._samples:
            self._samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
        nvml.nvmlGpmSampleGet(self._device.handle, self._samples[self._taken % 2])
        self._taken += 1
        if self._taken == 1:
            return dict.fromkeys(METRICS, "a mean needs a second sample")
        return self._between(self._samples[self._taken % 2], self._samples[(self._taken - 1) % 2])

    def _between(self, earlier: Any, later: Any) -> dict[str, float | str]:
        nvml = self._pynvml
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version, asked.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(METRICS)
        asked.sample1, asked.sample2 = earlier, later
        for place, number in enumerate(METRICS.values()):
            asked.metrics[place].metricId = number
        nvml.nvmlGpmMetricsGet(asked)
        return {
            name: one.value / 100 if one.nvmlReturn == nvml.NVML_SUCCESS else str(nvml.NVMLError(one.nvmlReturn))
            for name, one in zip(METRICS, asked.metrics, strict=False)
        }

"""Readings of one GPU at rest: what monitoring reads of it, and the limits that it was set to."""

import time
from collections.abc import Callable, Mapping
from types import ModuleType

from prism_bench.doctor.fitness.facts import GpuReading
from prism_bench.monitor.devices import NvmlDevice
from prism_bench.monitor.nvml import DeviceLost, why_missing
from prism_bench.monitor.probe import Probe
from prism_bench.monitor.processes import family

# Whether a neighbour works, and for what share of the time, shows between two looks this many seconds apart.
APART = 1.2
LIMITS: Mapping[str, Callable[[ModuleType, object], float]] = {
    "default_power_limit": lambda nvml, board: nvml.nvmlDeviceGetPowerManagementDefaultLimit(board) * 1e-3,
    "slowdown_temperature": lambda nvml, board: float(
        nvml.nvmlDeviceGetTemperatureThreshold(board, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
    ),
    "max_memory_clock": lambda nvml, board: nvml.nvmlDeviceGetMaxClockInfo(board, nvml.NVML_CLOCK_MEM) * 1e6,
    "application_sm_clock": lambda nvml, board: nvml.nvmlDeviceGetApplicationsClock(board, nvml.NVML_CLOCK_SM) * 1e6,
    "ecc": lambda nvml, board: float(nvml.nvmlDeviceGetEccMode(board)[0]),
    "persistence": lambda nvml, board: float(nvml.nvmlDeviceGetPersistenceMode(board)),
}


def read_gpu(pynvml: ModuleType, device: NvmlDevice, pause: Callable[[float], object] = time.sleep) -> GpuReading:
    """Return the device as it is before anything is launched on it; the reading is `lost` where it does not answer."""
    try:
        probe, now = Probe(pynvml, device, ours=family()), time.perf_counter()
        first = probe.read(now)
        pause(APART)
        last = probe.read(now + APART)
        limits, missing = _limits(pynvml, device.board)
    except DeviceLost as error:
        return GpuReading(device.name, device.uuid, is_slice=device.is_slice, lost=str(error))
    values = {**last.values, **limits}
    if "utilization" in first.values and "utilization" in values:  # work that ended before is no neighbour's
        values["utilization"] = min(first.values["utilization"], values["utilization"])
    return GpuReading(device.name, device.uuid, values, {**last.missing, **missing}, last.processes, device.is_slice)


def _limits(pynvml: ModuleType, board: object) -> tuple[dict[str, float], dict[str, str]]:
    """Return the limits that the device reports, and why the others are missing."""
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for name, read in LIMITS.items():
        try:
            values[name] = read(pynvml, board)
        except pynvml.NVMLError as error:
            missing[name] = why_missing(pynvml, error)
    return values, missing

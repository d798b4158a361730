"""Cost of single calls into the driver, the steps of the energy counter, and the energy of kernels' launches."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from functools import partial
from statistics import median
from time import perf_counter, thread_time
from types import ModuleType
from typing import Any

from prism_bench.backends import Runnable
from prism_bench.errors import MeasurementInvalid
from prism_bench.evidence import Energy
from prism_bench.monitor import Sampler, watched
from prism_bench.monitor.devices import by_uuid, devices
from prism_bench.monitor.nvml import opened
from prism_bench.monitor.probe import Probe
from prism_bench.run.watcher import DeviceWatcher


@contextmanager
def sampler_of(uuid: str) -> Iterator[Sampler]:
    """Yield the sampler of a measuring process; exit where the driver's library does not answer."""
    with watched(uuid) as sampler:
        if not isinstance(sampler, Sampler):
            sys.exit("monitor_proof: NVML does not answer for this device")
        yield sampler


def calls(uuid: str, prepared: Mapping[str, Runnable], times: int = 25) -> dict[str, dict[str, Any]]:
    """Return CPU and wall seconds of single calls into the driver: medians, each call right after a kernel."""
    once, found = next(iter(prepared.values())).timers()["hot_time"](), {}
    with opened() as nvml:
        device = by_uuid(devices(nvml), uuid)
        if device is None:
            sys.exit(f"monitor_proof: NVML does not know the device {uuid}")
        for name, call in candidates(nvml, device.board).items():
            took = []
            for _ in range(times):
                once()
                cpu, wall = thread_time(), perf_counter()
                try:
                    call()
                except nvml.NVMLError as error:
                    found[name] = {"reason": str(error)}
                    break
                took.append((thread_time() - cpu, perf_counter() - wall))
            else:
                each, clock = zip(*took, strict=True)
                found[name] = {"cpu": median(each), "wall": median(clock), "longest": max(clock)}
    return found


def candidates(nvml: ModuleType, handle: object) -> dict[str, Callable[[], object]]:
    """Return calls by a word for each: alone, and as fields, one and many at a time."""
    power, average = nvml.NVML_FI_DEV_POWER_INSTANT, nvml.NVML_FI_DEV_POWER_AVERAGE
    joules, policy = nvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, nvml.NVML_FI_DEV_PERF_POLICY_POWER
    heat, thermal = nvml.NVML_FI_DEV_MEMORY_TEMP, nvml.NVML_FI_DEV_PERF_POLICY_THERMAL
    fields = {"power": [power], "average": [average], "energy": [joules], "policy": [policy], "heat": [heat],
              "power energy": [power, joules], "policies": [policy, thermal],
              "all": [power, average, joules, policy, thermal, heat]}  # fmt: skip
    return {
        "sm clock": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        "memory clock": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
        "reasons": lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
        "power usage": lambda: nvml.nvmlDeviceGetPowerUsage(handle),
        "energy": lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle),
        "temperature": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        "utilization": lambda: nvml.nvmlDeviceGetUtilizationRates(handle),
        "memory": lambda: nvml.nvmlDeviceGetMemoryInfo(handle),
        "ecc": lambda: nvml.nvmlDeviceGetTotalEccErrors(handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, 0),
        "processes": lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle),
        "performance state": lambda: nvml.nvmlDeviceGetPerformanceState(handle),
        "nothing": lambda: nvml.nvmlDeviceGetIndex(handle),
        **{f"fields: {name}": partial(nvml.nvmlDeviceGetFieldValues, handle, ids) for name, ids in fields.items()},
    }


def energy(uuid: str, prepared: Mapping[str, Runnable]) -> dict[str, Any]:
    """Return how the energy counter moves, and the energy of the kernels' launches."""
    found = {}
    with sampler_of(uuid) as sampler:
        watcher = DeviceWatcher(sampler)
        for name, runnable in prepared.items():
            once = runnable.timers()["hot_time"]()
            hot = median(once().seconds for _ in range(9))
            began, launch = perf_counter(), watcher.energy(once) or Energy()
            took, power = perf_counter() - began, launch.joules / hot if launch.joules else None
            busy = launch.launches * hot / launch.window if launch.launches and launch.window else None
            found[name] = asdict(launch) | {"hot": hot, "power": power, "busy": busy, "took": took}
        steps = counter_steps(sampler.probes[0], next(iter(prepared.values())).timers()["hot_time"]())
    return {"launches": found, "counter": steps}


def counter_steps(probe: Probe, once: Any, seconds: float = 0.7) -> dict[str, Any]:
    """Return when the energy counter moved and by how much, while the hot timer repeats a kernel without a pause."""
    began, last, steps = perf_counter(), probe.energy() or 0.0, []
    looks = 0
    with suppress(MeasurementInvalid), closing(once.repeated()) as replays:
        for _ in replays:
            now, joules = perf_counter(), probe.energy() or 0.0
            looks += 1
            if joules != last:
                steps.append((round(now - began, 5), round(joules - last, 4)))
            last = joules
            if now - began > seconds:
                break
    gaps = [later[0] - earlier[0] for earlier, later in zip(steps, steps[1:], strict=False)]
    return {"steps": steps, "period": median(gaps) if gaps else None, "looks": looks}

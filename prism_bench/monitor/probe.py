"""Reading of one device: the quantities that NVML offers, the processes on the device, and Xid errors."""

import os
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, thread_time
from types import ModuleType
from typing import Any

from prism_bench.monitor.nvml import Call, CallCost, DeviceLost, NvmlDevice, why_missing

# GPM, on Hopper and later: means over the time between two samples, without ncu's lock on the performance counters.

PERIOD = 0.25  # seconds; the driver requires at least 0.1 s between two samples
METRICS = {"sm_active": 2, "sm_occupancy": 3, "tensor_active": 5, "dram_active": 10}  # NVML_GPM_METRIC_*, in percent


class _Gpm:
    """GPM metrics of one device, from two samples that are overwritten in turn."""

    def __init__(self, pynvml: ModuleType, device: NvmlDevice) -> None:
        self._pynvml, self._device = pynvml, device
        self._samples: list = []
        self._taken = 0

    def read(self) -> dict:
        """Return mean shares since the last call, by name; reasons instead of values at the first call.

        Raise NVMLError if the device does not offer them.
        """
        nvml = self._pynvml
        if self._device.is_slice or not nvml.nvmlGpmQueryDeviceSupport(self._device.handle).isSupportedDevice:
            raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
        if not self._samples:
            self._samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
        nvml.nvmlGpmSampleGet(self._device.handle, self._samples[self._taken % 2])
        self._taken += 1
        if self._taken == 1:
            return dict.fromkeys(METRICS, "a mean needs a second sample")
        request = nvml.c_nvmlGpmMetricsGet_t()
        request.version, request.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(METRICS)
        request.sample1, request.sample2 = self._samples[self._taken % 2], self._samples[(self._taken - 1) % 2]
        for index, number in enumerate(METRICS.values()):
            request.metrics[index].metricId = number
        nvml.nvmlGpmMetricsGet(request)
        return {
            name: metric.value / 100
            if metric.nvmlReturn == nvml.NVML_SUCCESS
            else str(nvml.NVMLError(metric.nvmlReturn))
            for name, metric in zip(METRICS, request.metrics, strict=False)
        }


@dataclass(frozen=True, slots=True)
class Process:
    """A process that holds memory on the device; `busy` is None where the driver does not say whether it works."""

    pid: int
    name: str
    memory: float | None = None
    ours: bool | None = None
    busy: bool | None = None

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """Reading of a device `at` a moment of `time.perf_counter`, the clock of the samples.

    `values` by quantity (`QUANTITIES`), in SI units; quantities that are read less often keep their last value.
    `missing` has the reason why a quantity is null. `processes` is None if the processes are unknown.
    """

    at: float
    values: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    processes: tuple[Process, ...] | None = None
    events: tuple[str, ...] = ()


# Processes on the device.


def family() -> frozenset[int]:
    """Return the ids of this process and its ancestors, which belong to the same run."""
    pids, pid = set(), os.getpid()
    while pid > 1 and pid not in pids:
        pids.add(pid)
        try:
            after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
            pid = int(after_name.split()[1])
        except (OSError, ValueError, IndexError):
            pid = os.getppid() if pid == os.getpid() else 0
    return frozenset(pids)


class Processes:
    """The processes with compute contexts on one device; `ours` are the ids of this run's processes.

    NVML reports process ids of the host. If one of `ours` is in the list, the rest are others. In a container none is,
    and nobody can know which of the processes that existed from the start is ours: `Process.ours` is None for them.
    Later processes are others in any case, because a measuring process starts no other.
    """

    def __init__(self, pynvml: ModuleType, handle: Any, ours: frozenset[int] = frozenset()) -> None:
        self._pynvml, self._handle, self._ours = pynvml, handle, ours
        self._first: frozenset[int] | None = None
        self._since = _microseconds()

    def read(self) -> tuple[Process, ...] | str:
        """Return the processes, `busy` since the last call; or the reason why they are unknown."""
        try:
            listed = self._pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        except self._pynvml.NVMLError as error:
            return why_missing(self._pynvml, error)
        pids = frozenset(process.pid for process in listed)
        if self._first is None:
            self._first = pids
        busy = _busy(self._pynvml, self._handle, self._since) if listed else None
        self._since = _microseconds()
        processes = []
        for process in listed:
            ours = process.pid in self._ours
            if self._ours and not self._ours & pids:
                ours = None if process.pid in self._first else False
            is_busy = None if busy is None else process.pid in busy
            name = _name(self._pynvml, process.pid)
            processes.append(Process(process.pid, name, process.usedGpuMemory, ours, is_busy))
        return tuple(processes)


def _microseconds() -> int:
    return time.time_ns() // 1000


def _busy(pynvml: ModuleType, handle: Any, since: int) -> set[int] | None:
    """Return the ids that worked on the device since then; None if the driver does not report them."""
    try:
        samples = pynvml.nvmlDeviceGetProcessUtilization(handle, since)
    except pynvml.NVMLError as error:
        if error.value in (pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND):  # nobody has worked since
            return set()
        why_missing(pynvml, error)
        return None
    return {sample.pid for sample in samples if sample.smUtil or sample.memUtil}


def _name(pynvml: ModuleType, pid: int) -> str:
    """Return the name without its folder: a path may disclose more than it should."""
    try:
        return Path(pynvml.nvmlSystemGetProcessName(pid).split(" ")[0]).name or "a process"
    except (pynvml.NVMLError, UnicodeDecodeError):
        return "a process"


# The calls that read a device.

_HALF_SECOND = 0.5
_FieldNames = Mapping[int | tuple[int, int], tuple[str, float]]  # name and unit by a field's number, or it and a scope


class Probe:
    """The calls that read one device; `full` includes those that a measuring process does not need.

    A quantity that the device does not offer is left out with the reason, and not read again.

    A call into the driver may cost a millisecond of a core. With a `budget`, a share of one core, the SM clock is read
    every time, since a window's verdict depends on it; power and the reasons for a lower clock as often as their part
    of the budget allows; the rest twice a second at most. PCIe throughput blocks for 20 ms a direction, GPM requires a
    tenth of a second between its samples, and error counters rarely change: each has its period.
    """

    def __init__(
        self,
        pynvml: ModuleType,
        device: NvmlDevice,
        *,
        full: bool = True,
        ours: frozenset[int] = frozenset(),
        budget: float | None = None,
    ) -> None:
        self.device, self._pynvml = device, pynvml
        scopes = {"gpu": pynvml.NVML_POWER_SCOPE_GPU, "module": pynvml.NVML_POWER_SCOPE_MODULE}
        self._scopes: _FieldNames = {
            (pynvml.NVML_FI_DEV_POWER_INSTANT, number): (scope, 1e-3) for scope, number in scopes.items()
        }
        processes = Processes(pynvml, device.handle, ours)
        self._calls = [
            *_quick(pynvml, device),
            *_slow(pynvml, device),
            Call(("processes",), lambda: {"processes": processes.read()}, _HALF_SECOND),
            *(_whole(pynvml, device) if full else ()),
        ]
        if budget:
            # Two fifths for the SM clock, which is read every time and slows the sampler if it needs more; a sixth for
            # each other call of every beat; the rest in equal parts.
            quick = [call for call in self._calls if call.period == 0.0 and call.names != ("sm_clock",)]
            slow = [call for call in self._calls if call.period > 0.0]
            for call in quick:
                call.share = budget / 6
            for call in slow:
                call.share = budget * (3 / 5 - len(quick) / 6) / len(slow)

    def read(self, now: float) -> DeviceReading:
        """Return a reading of the device at `now`; raise DeviceLost if it does not answer any more."""
        return self._made([call for call in self._calls if call.is_due(now)], now)

    def completed(self, now: float, since: float, names: Collection[str] | None = None) -> DeviceReading | None:
        """Return a reading with new values of quantities last read before `since`; None if there is nothing to read.

        `names` limits the quantities. Raise DeviceLost as `read` does.
        """
        wanted = [call for call in self._calls if names is None or not set(names).isdisjoint(call.names)]
        old = [call for call in wanted if call.is_older(since)]
        return self._made(old, now) if old else None

    def energy(self) -> float | str:
        """Return the energy counter in joules, or why it is unknown."""
        try:
            return self._pynvml.nvmlDeviceGetTotalEnergyConsumption(self.device.board) * 1e-3
        except self._pynvml.NVMLError as error:
            return why_missing(self._pynvml, error)

    def power(self) -> dict[str, float]:
        """Return the power in watts now by scope, without scopes that the board does not offer.

        NVML has a scope for the field: the GPU, or on Grace Hopper the module (nvml.h, nvmlPowerScopeType_t).
        """
        try:
            values = _fields(self._pynvml, self.device.board, self._scopes)
        except self._pynvml.NVMLError as error:
            why_missing(self._pynvml, error)
            values = {}
        self._scopes = {key: field for key, field in self._scopes.items() if isinstance(values.get(field[0]), float)}
        return {scope: watts for scope, watts in values.items() if isinstance(watts, float)}

    def costs(self) -> dict[str, CallCost]:
        """Return the cost of each call by the quantities that it reads."""
        return {", ".join(call.names): call.cost() for call in self._calls}

    def _made(self, calls: Sequence[Call], now: float) -> DeviceReading:
        for call in calls:
            call.make(self._pynvml, now)
        values, missing = {}, {}
        for call in self._calls:
            values |= call.values
            missing |= call.missing
        return DeviceReading(now, values, missing, values.pop("processes", None))


def _quick(pynvml: ModuleType, device: NvmlDevice) -> list[Call]:
    """Return calls for quantities that change within milliseconds."""
    board, power = device.board, {pynvml.NVML_FI_DEV_POWER_INSTANT: ("power", 1e-3)}
    clock = pynvml.nvmlDeviceGetClockInfo
    return [
        _single("sm_clock", lambda: clock(board, pynvml.NVML_CLOCK_SM) * 1e6),
        _single("clock_reasons", lambda: _clock_reasons(pynvml, board)),
        Call(("power",), lambda: _fields(pynvml, board, power)),
    ]


def _slow(pynvml: ModuleType, device: NvmlDevice) -> list[Call]:
    """Return calls for averaged quantities and cumulative counters."""
    board, handle, memory = device.board, device.handle, ("memory_used", "memory_free", "memory_total")
    lagging = {
        pynvml.NVML_FI_DEV_POWER_AVERAGE: ("power_average", 1e-3),
        pynvml.NVML_FI_DEV_PERF_POLICY_POWER: ("power_throttled", 1e-9),
        pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL: ("thermal_throttled", 1e-9),
        pynvml.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT: ("board_throttled", 1e-9),
    }
    clock, temperature = pynvml.nvmlDeviceGetClockInfo, pynvml.nvmlDeviceGetTemperature
    return [
        _single("memory_clock", lambda: clock(board, pynvml.NVML_CLOCK_MEM) * 1e6, _HALF_SECOND),
        _single("temperature", lambda: float(temperature(board, pynvml.NVML_TEMPERATURE_GPU)), _HALF_SECOND),
        Call(tuple(name for name, _ in lagging.values()), lambda: _lagging(pynvml, board, lagging), _HALF_SECOND),
        Call(("utilization", "memory_utilization"), lambda: _utilization(pynvml, handle), _HALF_SECOND),
        Call(memory, lambda: _memory(pynvml, handle), _HALF_SECOND),
        _single("ecc_corrected", lambda: _ecc(pynvml, device, pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED), 1.0),
        _single("ecc_uncorrected", lambda: _ecc(pynvml, device, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED), 1.0),
    ]


def _whole(pynvml: ModuleType, device: NvmlDevice) -> list[Call]:
    """Return calls for the quantities that only the live view, an export or the doctor needs."""
    board, pcie = device.board, pynvml.nvmlDeviceGetPcieThroughput
    lagging = {
        pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION: ("energy", 1e-3),
        pynvml.NVML_FI_DEV_MEMORY_TEMP: ("memory_temperature", 1.0),
    }
    fields = {
        pynvml.NVML_FI_DEV_PCIE_REPLAY_COUNTER: ("pcie_replays", 1.0),
        pynvml.NVML_FI_DEV_POWER_CURRENT_LIMIT: ("power_limit", 1e-3),
    }
    return [
        Call(("energy", "memory_temperature"), lambda: _fields(pynvml, board, lagging), _HALF_SECOND),
        Call(("pcie_replays", "power_limit"), lambda: _fields(pynvml, board, fields), 5.0),
        _single("pcie_sent", lambda: pcie(board, pynvml.NVML_PCIE_UTIL_TX_BYTES) * 1e3, 1.0),
        _single("pcie_received", lambda: pcie(board, pynvml.NVML_PCIE_UTIL_RX_BYTES) * 1e3, 1.0),
        _single("max_sm_clock", lambda: pynvml.nvmlDeviceGetMaxClockInfo(board, pynvml.NVML_CLOCK_SM) * 1e6, 60.0),
        _single("mig", lambda: float(pynvml.nvmlDeviceGetMigMode(board)[0]), 5.0),
        Call(("rows_remapped", "remap_failed"), lambda: _remapped(pynvml, board), 5.0),
        Call(tuple(METRICS), _Gpm(pynvml, device).read, PERIOD),
    ]


def _single(name: str, read: Callable[[], Any], period: float = 0.0) -> Call:
    return Call((name,), lambda: {name: read()}, period)


def _fields(pynvml: ModuleType, handle: Any, fields: _FieldNames) -> dict[str, float | str]:
    """Return the field values of one call by name: numbers, or the reason why a value is missing."""
    members = {
        pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
        pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
        pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
        pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
    }
    values = {}
    answers = pynvml.nvmlDeviceGetFieldValues(handle, list(fields))
    for field_value, (name, scale) in zip(answers, fields.values(), strict=True):
        if field_value.nvmlReturn == pynvml.NVML_SUCCESS:
            member = members.get(field_value.valueType, "ullVal")
            values[name] = float(getattr(field_value.value, member)) * scale
        else:
            values[name] = why_missing(pynvml, pynvml.NVMLError(field_value.nvmlReturn))
    return values


def _lagging(pynvml: ModuleType, handle: Any, fields: _FieldNames) -> dict[str, float | str]:
    """Return the fields; the mean power by its older function if the field is not offered."""
    values = _fields(pynvml, handle, fields)
    if isinstance(values["power_average"], str):
        try:
            values["power_average"] = pynvml.nvmlDeviceGetPowerUsage(handle) * 1e-3
        except pynvml.NVMLError as error:
            values["power_average"] = why_missing(pynvml, error)
    return values


def _clock_reasons(pynvml: ModuleType, handle: Any) -> float:
    """Return the bits by their present function, or by the function of drivers before 535."""
    try:
        return float(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except pynvml.NVMLError_FunctionNotFound:
        return float(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _utilization(pynvml: ModuleType, handle: Any) -> dict[str, float]:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"utilization": rates.gpu / 100, "memory_utilization": rates.memory / 100}


def _memory(pynvml: ModuleType, handle: Any) -> dict[str, float]:
    try:  # version 1 counts some 600 MB that the driver reserves as used, though no process holds them
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError_FunctionNotFound:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return {"memory_used": float(memory.used), "memory_free": float(memory.free), "memory_total": float(memory.total)}


def _ecc(pynvml: ModuleType, device: NvmlDevice, kind: int) -> float:
    return float(pynvml.nvmlDeviceGetTotalEccErrors(device.board, kind, pynvml.NVML_VOLATILE_ECC))


def _remapped(pynvml: ModuleType, handle: Any) -> dict[str, float]:
    corrected, uncorrected, _, failed = pynvml.nvmlDeviceGetRemappedRows(handle)
    return {"rows_remapped": float(corrected + uncorrected), "remap_failed": float(failed)}


# The quantities.


@dataclass(frozen=True)
class Quantity:
    """Quantity in `unit` (SI, `1` for a share); `dcgm` is its name in DCGM, which reports `scale` times its value.

    `kind` is `gauge`, or `counter` for a value that only grows until the driver is loaded again.
    """

    name: str
    unit: str
    meaning: str
    dcgm: str | None = None
    scale: float = 1.0
    kind: str = "gauge"


_MIB = 1 / (1 << 20)

QUANTITIES = {
    quantity.name: quantity
    for quantity in (
        Quantity("utilization", "1", "share of the driver's last window in which any kernel ran",
                 "DCGM_FI_DEV_GPU_UTIL", 100.0),
        Quantity("memory_utilization", "1", "share of that window in which memory was read or written",
                 "DCGM_FI_DEV_MEM_COPY_UTIL", 100.0),
        Quantity("memory_used", "B", "device memory in use, by anybody", "DCGM_FI_DEV_FB_USED", _MIB),
        Quantity("memory_free", "B", "device memory that is free", "DCGM_FI_DEV_FB_FREE", _MIB),
        Quantity("memory_total", "B", "device memory", "DCGM_FI_DEV_FB_TOTAL", _MIB),
        Quantity("sm_clock", "Hz", "clock of the multiprocessors", "DCGM_FI_DEV_SM_CLOCK", 1e-6),
        Quantity("memory_clock", "Hz", "clock of the memory", "DCGM_FI_DEV_MEM_CLOCK", 1e-6),
        Quantity("max_sm_clock", "Hz", "highest clock of the multiprocessors", "DCGM_FI_DEV_MAX_SM_CLOCK", 1e-6),
        Quantity("power", "W", "power now", "DCGM_FI_DEV_POWER_USAGE_INSTANT"),
        Quantity("power_average", "W", "its mean over about a second (before Ampere: now)", "DCGM_FI_DEV_POWER_USAGE"),
        Quantity("power_limit", "W", "the power limit in force", "DCGM_FI_DEV_POWER_MGMT_LIMIT"),
        Quantity("energy", "J", "energy since the driver was loaded",
                 "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1e3, "counter"),
        Quantity("temperature", "degC", "temperature of the chip", "DCGM_FI_DEV_GPU_TEMP"),
        Quantity("memory_temperature", "degC", "temperature of the memory", "DCGM_FI_DEV_MEMORY_TEMP"),
        Quantity("clock_reasons", "1", "bits that say why the clock is not higher",
                 "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"),
        Quantity("power_throttled", "s", "time for which the power limit held the clock down",
                 "DCGM_FI_DEV_POWER_VIOLATION", 1e9, "counter"),
        Quantity("thermal_throttled", "s", "time for which heat held the clock down",
                 "DCGM_FI_DEV_THERMAL_VIOLATION", 1e9, "counter"),
        Quantity("board_throttled", "s", "time for which the board's limits held the clock down",
                 "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", 1e9, "counter"),
        Quantity("pcie_sent", "B/s", "PCIe traffic from the device", "DCGM_FI_DEV_PCIE_TX_THROUGHPUT", 1e-3),
        Quantity("pcie_received", "B/s", "PCIe traffic to the device", "DCGM_FI_DEV_PCIE_RX_THROUGHPUT", 1e-3),
        Quantity("pcie_replays", "1", "PCIe packets that were sent again",
                 "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", kind="counter"),
        Quantity("ecc_corrected", "1", "memory errors that ECC corrected since the driver was loaded",
                 "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", kind="counter"),
        Quantity("ecc_uncorrected", "1", "memory errors that ECC could not correct since the driver was loaded",
                 "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", kind="counter"),
        Quantity("rows_remapped", "1", "memory rows replaced after errors",
                 "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", kind="counter"),
        Quantity("remap_failed", "1", "1 where a row could not be replaced", "DCGM_FI_DEV_ROW_REMAP_FAILURE"),
        Quantity("mig", "1", "1 where the device is cut into MIG slices", "DCGM_FI_DEV_MIG_MODE"),
        Quantity("sm_active", "1", "mean share of the multiprocessors at work", "DCGM_FI_PROF_SM_ACTIVE"),
        Quantity("sm_occupancy", "1", "resident warps over the most there can be", "DCGM_FI_PROF_SM_OCCUPANCY"),
        Quantity("tensor_active", "1", "share of the time in which tensor cores worked",
                 "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
        Quantity("dram_active", "1", "memory traffic over the most there can be", "DCGM_FI_PROF_DRAM_ACTIVE"),
    )
}  # fmt: skip

# Why the clock is not higher: bits of nvmlDeviceGetCurrentClocksEventReasons.
REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x10: "sync boost",
    0x100: "display clock",
    0x4: "sw power cap",
    0x8: "hw slowdown",
    0x20: "sw thermal",
    0x40: "hw thermal",
    0x80: "power brake",
}
HARMFUL = ("hw slowdown", "sw thermal", "hw thermal", "power brake")


def reasons_in(bits: float | None) -> tuple[str, ...]:
    """Return the names of the bits, unknown bits by their number; an empty tuple for None."""
    bits = int(bits or 0)
    known = [name for bit, name in REASONS.items() if bits & bit]
    rest = bits & ~sum(REASONS)
    return (*known, *([f"reason {rest:#x}"] if rest else []))


# Xid events: the driver's error reports.

_WAIT_MS = 200
_KEPT = 1000  # events


class XidWatch:
    """Thread that collects the Xids of the devices between `start` and `stop`.

    `missing` has the reason if Xids are not available; `cpu_seconds` is the time that the thread has used.
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
        """Register for the events and start the thread; if that is not offered, `missing` has the reason."""
        nvml = self._pynvml
        try:
            self._set = nvml.nvmlEventSetCreate()
            for device in self._devices:
                nvml.nvmlDeviceRegisterEvents(device.handle, nvml.nvmlEventTypeXidCriticalError, self._set)
        except nvml.NVMLError as error:
            self.missing = _reason(nvml, error)
            return
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._ending.set()
        if self._thread.ident:
            self._thread.join(2.0)

    def between(self, begin: float, end: float) -> list[tuple[str, int]]:
        """Return (UUID, Xid) of the events between two times of the clock."""
        return [(uuid, number) for at, uuid, number in list(self._seen) if begin <= at <= end]

    def _listen(self) -> None:
        nvml = self._pynvml
        while not self._ending.is_set():
            self.cpu_seconds = thread_time()
            try:
                event = nvml.nvmlEventSetWait(self._set, _WAIT_MS)
            except nvml.NVMLError as error:
                if error.value != nvml.NVML_ERROR_TIMEOUT:
                    self.missing = _reason(nvml, error)
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


def _reason(nvml: ModuleType, error: Any) -> str:
    try:
        return why_missing(nvml, error)
    except DeviceLost as lost:
        return str(lost)

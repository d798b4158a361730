"""Reads one device. What it does not offer is left out with the reason, and not asked for again."""

from collections.abc import Callable
from dataclasses import dataclass, field

from prism_bench.monitor import gpm
from prism_bench.monitor.devices import Device
from prism_bench.monitor.nvml import is_permanent, why_missing
from prism_bench.monitor.processes import Processes
from prism_bench.monitor.reading import Reading

PROCESS_PERIOD = 0.5
_LAG = 0.19
_GIVEN_UP = float("inf")


@dataclass
class _Group:
    """Quantities that one call reads, how often, and what it last gave."""

    names: tuple[str, ...]
    read: Callable
    period: float = 0.0
    due: float = 0.0
    values: dict = field(default_factory=dict)
    missing: dict = field(default_factory=dict)


class Probe:
    """The groups of quantities of one device; `full` reads those too that a measuring process can do without.

    PCIe throughput blocks for 20 ms a direction, GPM wants a tenth of a second between its samples, and the counters
    of errors change once in a year: each has a beat of its own.
    """

    def __init__(self, pynvml, device: Device, *, full: bool = True, ours: frozenset[int] = frozenset()):
        self.device, self._pynvml = device, pynvml
        self._groups = [*_quick(pynvml, device), *_slow(pynvml, device), *(_whole(pynvml, device) if full else ())]
        self._processes, self._due, self._listed = Processes(pynvml, device.handle, ours), 0.0, ()

    def read(self, now: float) -> Reading:
        """The device at `now`; DeviceLost where it does not answer any more."""
        values, missing = {}, {}
        for group in self._groups:
            if now >= group.due:
                self._refresh(group, now)
            values |= group.values
            missing |= group.missing
        if now >= self._due:
            self._due, self._listed = now + PROCESS_PERIOD, self._processes.read()
        if isinstance(self._listed, str):
            return Reading(now, values, missing | {"processes": self._listed})
        return Reading(now, values, missing, self._listed)

    def energy(self) -> float | None:
        """The energy counter alone, in joules: one quick call, for who watches it move."""
        try:
            return self._pynvml.nvmlDeviceGetTotalEnergyConsumption(self.device.board) * 1e-3
        except self._pynvml.NVMLError as error:
            why_missing(self._pynvml, error)
            return None

    def _refresh(self, group, now):
        group.due = now + group.period
        try:
            group.values = group.read()
            group.missing = {name: group.values.pop(name) for name in group.names if _is_reason(group.values, name)}
        except self._pynvml.NVMLError as error:
            group.values, group.missing = {}, dict.fromkeys(group.names, why_missing(self._pynvml, error))
            if is_permanent(self._pynvml, error):
                group.due = _GIVEN_UP


def _is_reason(values, name):
    return isinstance(values.get(name), str)


def _quick(pynvml, device):
    """What changes within milliseconds comes every time, what lags behind some five times a second."""
    now = {pynvml.NVML_FI_DEV_POWER_INSTANT: ("power", 1e-3)}
    lagging = {
        pynvml.NVML_FI_DEV_POWER_AVERAGE: ("power_average", 1e-3),
        pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION: ("energy", 1e-3),
        pynvml.NVML_FI_DEV_MEMORY_TEMP: ("memory_temperature", 1.0),
        pynvml.NVML_FI_DEV_PERF_POLICY_POWER: ("power_throttled", 1e-9),
        pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL: ("thermal_throttled", 1e-9),
        pynvml.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT: ("board_throttled", 1e-9),
    }
    board = device.board
    clock = pynvml.nvmlDeviceGetClockInfo
    return [
        _one("sm_clock", lambda: clock(board, pynvml.NVML_CLOCK_SM) * 1e6),
        _one("memory_clock", lambda: clock(board, pynvml.NVML_CLOCK_MEM) * 1e6, _LAG),
        _one("clock_reasons", lambda: _clock_reasons(pynvml, board)),
        _one("temperature", lambda: pynvml.nvmlDeviceGetTemperature(board, pynvml.NVML_TEMPERATURE_GPU), _LAG),
        _Group(("power",), lambda: _fields(pynvml, board, now)),
        _Group(tuple(name for name, _ in lagging.values()), lambda: _lagging(pynvml, board, lagging), _LAG),
        _Group(("utilization", "memory_utilization"), lambda: _utilization(pynvml, device.handle), _LAG),
    ]


def _slow(pynvml, device):
    memory = ("memory_used", "memory_free", "memory_total")
    return [
        _Group(memory, lambda: _memory(pynvml, device.handle), 0.5),
        _one("ecc_corrected", lambda: _ecc(pynvml, device, pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED), 1.0),
        _one("ecc_uncorrected", lambda: _ecc(pynvml, device, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED), 1.0),
    ]


def _whole(pynvml, device):
    """The rest: what only a view, an export or the doctor asks for."""
    board, pcie = device.board, pynvml.nvmlDeviceGetPcieThroughput
    fields = {
        pynvml.NVML_FI_DEV_PCIE_REPLAY_COUNTER: ("pcie_replays", 1.0),
        pynvml.NVML_FI_DEV_POWER_CURRENT_LIMIT: ("power_limit", 1e-3),
    }
    return [
        _Group(("pcie_replays", "power_limit"), lambda: _fields(pynvml, board, fields), 5.0),
        _one("pcie_sent", lambda: pcie(board, pynvml.NVML_PCIE_UTIL_TX_BYTES) * 1e3, 1.0),
        _one("pcie_received", lambda: pcie(board, pynvml.NVML_PCIE_UTIL_RX_BYTES) * 1e3, 1.0),
        _one("max_sm_clock", lambda: pynvml.nvmlDeviceGetMaxClockInfo(board, pynvml.NVML_CLOCK_SM) * 1e6, 60.0),
        _one("mig", lambda: float(pynvml.nvmlDeviceGetMigMode(board)[0]), 5.0),
        _Group(("rows_remapped", "remap_failed"), lambda: _remapped(pynvml, board), 5.0),
        _Group(tuple(gpm.METRICS), gpm.Gpm(pynvml, device).read, gpm.PERIOD),
    ]


def _one(name, read, period=0.0):
    return _Group((name,), lambda: {name: read()}, period)


def _fields(pynvml, handle, fields):
    """Field values of one call, each with a return code of its own: numbers, or why there is none."""
    found = {}
    for one in pynvml.nvmlDeviceGetFieldValues(handle, list(fields)):
        name, scale = fields[one.fieldId]
        if one.nvmlReturn == pynvml.NVML_SUCCESS:
            found[name] = _number(pynvml, one) * scale
        else:
            found[name] = why_missing(pynvml, pynvml.NVMLError(one.nvmlReturn))
    return found


def _lagging(pynvml, handle, fields):
    """The fields; the mean of the power by its older name where the field is not offered."""
    found = _fields(pynvml, handle, fields)
    if isinstance(found["power_average"], str):
        try:
            found["power_average"] = pynvml.nvmlDeviceGetPowerUsage(handle) * 1e-3
        except pynvml.NVMLError as error:
            found["power_average"] = why_missing(pynvml, error)
    return found


def _number(pynvml, one):
    member = {
        pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
        pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
        pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
        pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
    }.get(one.valueType, "ullVal")
    return float(getattr(one.value, member))


def _clock_reasons(pynvml, handle):
    """The bits by their present name, or by the one that drivers before 535 knew."""
    try:
        return float(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except pynvml.NVMLError_FunctionNotFound:
        return float(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _utilization(pynvml, handle):
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"utilization": rates.gpu / 100, "memory_utilization": rates.memory / 100}


def _memory(pynvml, handle):
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return {
        "memory_used": float(memory.used),
        "memory_free": float(memory.free),
        "memory_total": float(memory.total),
    }


def _ecc(pynvml, device, kind):
    return float(pynvml.nvmlDeviceGetTotalEccErrors(device.board, kind, pynvml.NVML_VOLATILE_ECC))


def _remapped(pynvml, handle):
    corrected, uncorrected, _, failed = pynvml.nvmlDeviceGetRemappedRows(handle)
    return {"rows_remapped": float(corrected + uncorrected), "remap_failed": float(failed)}

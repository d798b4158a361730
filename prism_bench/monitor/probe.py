"""Reads one device. What it does not offer is left out with the reason, and not asked for again."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import ModuleType
from typing import Any

from prism_bench.monitor import gpm
from prism_bench.monitor.calls import Call, CallCost
from prism_bench.monitor.devices import NvmlDevice
from prism_bench.monitor.nvml import why_missing
from prism_bench.monitor.processes import Processes
from prism_bench.monitor.reading import DeviceReading

_HALF_SECOND = 0.5


class Probe:
    """The calls that read one device; `full` makes those too that a measuring process can do without.

    A call into the driver may cost a millisecond of a core. With a `budget`, a share of one core, the SM clock is read
    every time, since a window's verdict hangs on it; power and the reasons for a lower clock as often as their part of
    the budget allows; the rest twice a second at most. PCIe throughput blocks for 20 ms a direction, GPM wants a tenth
    of a second between its samples, and the counters of errors change once in a year: each has its period.
    """

    def __init__(
        self, pynvml: ModuleType, device: NvmlDevice,
        *, full: bool = True, ours: frozenset[int] = frozenset(), budget: float | None = None,
    ) -> None:  # fmt: skip
        self.device, self._pynvml = device, pynvml
        processes = Processes(pynvml, device.handle, ours)
        self._calls = [
            *_quick(pynvml, device),
            *_slow(pynvml, device),
            Call(("processes",), lambda: {"processes": processes.read()}, _HALF_SECOND),
            *(_whole(pynvml, device) if full else ()),
        ]
        if budget:
            _share_out(budget, self._calls)

    def read(self, now: float) -> DeviceReading:
        """Return the device at `now`; DeviceLost where it does not answer any more."""
        return self._made([call for call in self._calls if call.is_due(now)], now)

    def completed(self, now: float, since: float, names: Collection[str] | None = None) -> DeviceReading | None:
        """Return a reading with new values of what was last read before `since`; None if there is nothing to read.

        With `names` only those quantities are. DeviceLost as of `read`.
        """
        asked = [call for call in self._calls if names is None or not set(names).isdisjoint(call.names)]
        old = [call for call in asked if call.is_older(since)]
        return self._made(old, now) if old else None

    def energy(self) -> float | None:
        """Return only the energy counter, in joules."""
        try:
            return self._pynvml.nvmlDeviceGetTotalEnergyConsumption(self.device.board) * 1e-3
        except self._pynvml.NVMLError as error:
            why_missing(self._pynvml, error)
            return None

    def costs(self) -> dict[str, CallCost]:
        """Return what each call costs, by the quantities that it reads."""
        return {", ".join(call.names): call.cost() for call in self._calls}

    def _made(self, calls: Sequence[Call], now: float) -> DeviceReading:
        for call in calls:
            call.make(self._pynvml, now)
        values, missing = {}, {}
        for call in self._calls:
            values |= call.values
            missing |= call.missing
        return DeviceReading(now, values, missing, values.pop("processes", None))


def _share_out(budget: float, calls: Sequence[Call]) -> None:
    """Divide the budget: two fifths for the clock, which is read every time and slows the sampler if it needs more.

    A sixth each for what else is wanted at every beat, and the rest in equal parts.
    """
    quick = [call for call in calls if call.period == 0.0 and call.names != ("sm_clock",)]
    slow = [call for call in calls if call.period > 0.0]
    for call in quick:
        call.share = budget / 6
    for call in slow:
        call.share = budget * (3 / 5 - len(quick) / 6) / len(slow)


def _quick(pynvml: ModuleType, device: NvmlDevice) -> list[Call]:
    """Return what changes within milliseconds."""
    board, power = device.board, {pynvml.NVML_FI_DEV_POWER_INSTANT: ("power", 1e-3)}
    clock = pynvml.nvmlDeviceGetClockInfo
    return [
        _one("sm_clock", lambda: clock(board, pynvml.NVML_CLOCK_SM) * 1e6),
        _one("clock_reasons", lambda: _clock_reasons(pynvml, board)),
        Call(("power",), lambda: _fields(pynvml, board, power)),
    ]


def _slow(pynvml: ModuleType, device: NvmlDevice) -> list[Call]:
    """Return what lags behind, and what only grows."""
    board, handle, memory = device.board, device.handle, ("memory_used", "memory_free", "memory_total")
    lagging = {
        pynvml.NVML_FI_DEV_POWER_AVERAGE: ("power_average", 1e-3),
        pynvml.NVML_FI_DEV_PERF_POLICY_POWER: ("power_throttled", 1e-9),
        pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL: ("thermal_throttled", 1e-9),
        pynvml.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT: ("board_throttled", 1e-9),
    }
    clock, temperature = pynvml.nvmlDeviceGetClockInfo, pynvml.nvmlDeviceGetTemperature
    return [
        _one("memory_clock", lambda: clock(board, pynvml.NVML_CLOCK_MEM) * 1e6, _HALF_SECOND),
        _one("temperature", lambda: float(temperature(board, pynvml.NVML_TEMPERATURE_GPU)), _HALF_SECOND),
        Call(tuple(name for name, _ in lagging.values()), lambda: _lagging(pynvml, board, lagging), _HALF_SECOND),
        Call(("utilization", "memory_utilization"), lambda: _utilization(pynvml, handle), _HALF_SECOND),
        Call(memory, lambda: _memory(pynvml, handle), _HALF_SECOND),
        _one("ecc_corrected", lambda: _ecc(pynvml, device, pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED), 1.0),
        _one("ecc_uncorrected", lambda: _ecc(pynvml, device, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED), 1.0),
    ]


def _whole(pynvml: ModuleType, device: NvmlDevice) -> list[Call]:
    """Return the rest: what only a view, an export or the doctor asks for."""
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
        _one("pcie_sent", lambda: pcie(board, pynvml.NVML_PCIE_UTIL_TX_BYTES) * 1e3, 1.0),
        _one("pcie_received", lambda: pcie(board, pynvml.NVML_PCIE_UTIL_RX_BYTES) * 1e3, 1.0),
        _one("max_sm_clock", lambda: pynvml.nvmlDeviceGetMaxClockInfo(board, pynvml.NVML_CLOCK_SM) * 1e6, 60.0),
        _one("mig", lambda: float(pynvml.nvmlDeviceGetMigMode(board)[0]), 5.0),
        Call(("rows_remapped", "remap_failed"), lambda: _remapped(pynvml, board), 5.0),
        Call(tuple(gpm.METRICS), gpm.Gpm(pynvml, device).read, gpm.PERIOD),
    ]


def _one(name: str, read: Callable[[], Any], period: float = 0.0) -> Call:
    return Call((name,), lambda: {name: read()}, period)


def _fields(pynvml: ModuleType, handle: Any, fields: Mapping[int, tuple[str, float]]) -> dict[str, float | str]:
    """Field values of one call, each with its return code: numbers, or why there is none."""
    found = {}
    for one in pynvml.nvmlDeviceGetFieldValues(handle, list(fields)):
        name, scale = fields[one.fieldId]
        if one.nvmlReturn == pynvml.NVML_SUCCESS:
            found[name] = _number(pynvml, one) * scale
        else:
            found[name] = why_missing(pynvml, pynvml.NVMLError(one.nvmlReturn))
    return found


def _lagging(pynvml: ModuleType, handle: Any, fields: Mapping[int, tuple[str, float]]) -> dict[str, float | str]:
    """Return the fields; the mean of the power by its older name where the field is not offered."""
    found = _fields(pynvml, handle, fields)
    if isinstance(found["power_average"], str):
        try:
            found["power_average"] = pynvml.nvmlDeviceGetPowerUsage(handle) * 1e-3
        except pynvml.NVMLError as error:
            found["power_average"] = why_missing(pynvml, error)
    return found


def _number(pynvml: ModuleType, one: Any) -> float:
    member = {
        pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
        pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
        pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
        pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
    }.get(one.valueType, "ullVal")
    return float(getattr(one.value, member))


def _clock_reasons(pynvml: ModuleType, handle: Any) -> float:
    """Return the bits by their present name, or by the one that drivers before 535 knew."""
    try:
        return float(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except pynvml.NVMLError_FunctionNotFound:
        return float(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _utilization(pynvml: ModuleType, handle: Any) -> dict[str, float]:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"utilization": rates.gpu / 100, "memory_utilization": rates.memory / 100}


def _memory(pynvml: ModuleType, handle: Any) -> dict[str, float]:
    try:  # the first form counts some 600 MB that the driver reserves as used, though no process holds them
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError_FunctionNotFound:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return {
        "memory_used": float(memory.used),
        "memory_free": float(memory.free),
        "memory_total": float(memory.total),
    }


def _ecc(pynvml: ModuleType, device: NvmlDevice, kind: int) -> float:
    return float(pynvml.nvmlDeviceGetTotalEccErrors(device.board, kind, pynvml.NVML_VOLATILE_ECC))


def _remapped(pynvml: ModuleType, handle: Any) -> dict[str, float]:
    corrected, uncorrected, _, failed = pynvml.nvmlDeviceGetRemappedRows(handle)
    return {"rows_remapped": float(corrected + uncorrected), "remap_failed": float(failed)}

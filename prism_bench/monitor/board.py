"""What sets a board apart from others of its kind, as far as NVML reads it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType

from prism_bench.errors import BackendUnavailable
from prism_bench.monitor import nvml
from prism_bench.monitor.devices import by_uuid, devices
from prism_bench.record.identity import BoardTable, host_digest

_READ: dict[str, Callable[[ModuleType, object], object]] = {
    "vbios": lambda pynvml, board: str(pynvml.nvmlDeviceGetVbiosVersion(board)),
    "power_limit": lambda pynvml, board: pynvml.nvmlDeviceGetEnforcedPowerLimit(board) * 1e-3,
    "application_sm_clock": lambda pynvml, board: (
        pynvml.nvmlDeviceGetApplicationsClock(board, pynvml.NVML_CLOCK_SM) * 1e6
    ),
    "application_memory_clock": lambda pynvml, board: (
        pynvml.nvmlDeviceGetApplicationsClock(board, pynvml.NVML_CLOCK_MEM) * 1e6
    ),
    "boost_sm_clock": lambda pynvml, board: (
        pynvml.nvmlDeviceGetMaxCustomerBoostClock(board, pynvml.NVML_CLOCK_SM) * 1e6
    ),
}


def board_facts(uuid: str) -> BoardTable:
    """Return VBIOS, power limit (W), clocks as they are set (Hz) and host; what cannot be read is left out."""
    with suppress(BackendUnavailable), nvml.opened() as pynvml:
        return {"host": host_digest(), **dict(_facts(pynvml, uuid))}
    return {"host": host_digest()}


def _facts(pynvml: ModuleType, uuid: str) -> Iterator[tuple[str, object]]:
    """Yield what this board and this driver offer."""
    device = by_uuid(devices(pynvml), uuid)
    for name, read in _READ.items() if device else ():
        with suppress(pynvml.NVMLError):
            yield name, read(pynvml, device.board if device else None)

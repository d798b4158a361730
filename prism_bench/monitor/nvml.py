"""NVML: opening and closing it, its errors and calls, and the devices that it lists."""

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, thread_time
from types import ModuleType
from typing import Any

from prism_bench.errors import BackendUnavailable, unknown
from prism_bench.io.files import path_part
from prism_bench.io.installation import NO_DRIVER, WITHOUT_GPU, cuda_driver, pip_install
from prism_bench.record.identity import BoardTable, host_digest

_WITHOUT = "runs go on without it, their measurements then carry no evidence"


class DeviceLost(Exception):
    """The device, its driver or the library stopped answering; the text has the reason."""


def library() -> ModuleType:
    """Return pynvml with NVML opened; close it with `close`. Raise BackendUnavailable with what is missing."""
    try:
        import pynvml
    except ImportError:
        raise BackendUnavailable(f"nvidia-ml-py is not installed; {pip_install()}; {_WITHOUT}") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        absent = (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
        is_missing = getattr(error, "value", None) in absent and cuda_driver() is None
        rest = f"{NO_DRIVER}; {WITHOUT_GPU}" if is_missing else _WITHOUT
        raise BackendUnavailable(f"NVML does not answer: {_error_text(error)}; {rest}") from None
    return pynvml


def close(pynvml: ModuleType) -> None:
    """Shut NVML down, if it still answers."""
    with suppress(pynvml.NVMLError):
        pynvml.nvmlShutdown()


@contextmanager
def opened() -> Iterator:
    """Yield pynvml with NVML opened."""
    pynvml = library()
    try:
        yield pynvml
    finally:
        close(pynvml)


def why_missing(pynvml: ModuleType, error: Any) -> str:
    """Return why a quantity is null; raise DeviceLost for an error after which nothing can be read."""
    if error.value in (
        pynvml.NVML_ERROR_GPU_IS_LOST,
        pynvml.NVML_ERROR_RESET_REQUIRED,
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    ):
        raise DeviceLost(_error_text(error)) from None
    return {
        pynvml.NVML_ERROR_NOT_SUPPORTED: "this device does not offer it",
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "this driver's NVML is too old to offer it",
        pynvml.NVML_ERROR_NO_PERMISSION: "no permission to read it",
    }.get(error.value, _error_text(error))


def _error_text(error: Any) -> str:
    """Return NVML's text, without the full stop that it ends with in places."""
    return str(error).rstrip(".")


# Calls into the driver.

_NEVER = float("inf")
_KEPT = 20  # costs, of the last calls


@dataclass(frozen=True)
class CallCost:
    """Cost of a kind of call after `calls` calls: medians of the last calls' CPU and wall seconds."""

    calls: int
    cpu: float
    wall: float


@dataclass
class Call:
    """Call that reads quantities every `period` seconds, and its last result.

    A call that would take more than `share` of a core is made less often, but at least every `longest` seconds. Without
    a share it keeps its period.
    """

    names: tuple[str, ...]
    read: Callable[[], dict]
    period: float = 0.0
    share: float | None = None
    longest: float = 2.0
    values: dict = field(default_factory=dict)
    missing: dict = field(default_factory=dict)
    _due: float = -_NEVER
    _last: float = -_NEVER
    _count: int = 0
    _costs: deque = field(default_factory=lambda: deque(maxlen=_KEPT))

    def is_due(self, now: float) -> bool:
        """Return whether the call is due."""
        return now >= self._due

    def is_older(self, since: float) -> bool:
        """Return whether the last result is older than `since` and can be renewed."""
        return self._last < since and self._due < _NEVER

    def make(self, pynvml: ModuleType, now: float) -> None:
        """Read at `now`; raise DeviceLost if the device does not answer any more."""
        wall, cpu = perf_counter(), thread_time()
        is_permanent = False
        try:
            result = self.read()
        except pynvml.NVMLError as error:
            self.values, self.missing = {}, dict.fromkeys(self.names, why_missing(pynvml, error))
            is_permanent = error.value in (
                pynvml.NVML_ERROR_NOT_SUPPORTED,
                pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
                pynvml.NVML_ERROR_NO_PERMISSION,
                pynvml.NVML_ERROR_INVALID_ARGUMENT,
            )
        else:
            self.values = {name: value for name, value in result.items() if not isinstance(value, str)}
            self.missing = {name: value for name, value in result.items() if isinstance(value, str)}
        self._costs.append((thread_time() - cpu, perf_counter() - wall))
        self._count += 1
        pause = self.period
        if self.share is not None:
            pause = max(pause, min(self.cost().cpu / self.share, self.longest))
        self._last, self._due = now, _NEVER if is_permanent else now + pause

    def cost(self) -> CallCost:
        """Return the number of calls and their cost so far."""
        cpu, wall = (median(times) for times in zip(*self._costs, strict=True)) if self._costs else (0.0, 0.0)
        return CallCost(self._count, cpu, wall)


# Devices.

VISIBLE = "CUDA_VISIBLE_DEVICES"


def cache_of_gpu(name: str) -> str:
    """Return the name of a cache of choices timed on the GPU in CUDA_VISIBLE_DEVICES, or on any GPU if it is unset.

    Boards of a fleet on one host have separate caches: they neither wait for nor overwrite each other.
    """
    gpu = os.environ.get(VISIBLE)
    return f"{name}-{path_part(gpu)}" if gpu else name


@dataclass(frozen=True)
class NvmlDevice:
    """A GPU or a MIG slice of a GPU. `index` counts by PCI bus, as nvidia-smi does; a slice has its GPU's index.

    `board` is the handle of the whole GPU, whose clocks, power and temperature a slice shares.
    """

    index: int
    uuid: str
    name: str
    handle: object = field(compare=False)
    board: object = field(compare=False)
    is_slice: bool = False


def devices(pynvml: ModuleType) -> list[NvmlDevice]:
    """Return every GPU that answers, each followed by its MIG slices.

    Raise BackendUnavailable if NVML itself does not answer.
    """
    try:
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        raise BackendUnavailable(f"NVML does not list its devices: {error}") from None
    listed = []
    for index in range(count):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid, name = pynvml.nvmlDeviceGetUUID(handle), pynvml.nvmlDeviceGetName(handle)
            whole = NvmlDevice(index, uuid, name, handle, handle)
        except pynvml.NVMLError:
            continue
        listed += [whole, *_slices(pynvml, whole)]
    return listed


def _slices(pynvml: ModuleType, whole: NvmlDevice) -> list[NvmlDevice]:
    slices = []
    try:
        if not pynvml.nvmlDeviceGetMigMode(whole.handle)[0]:
            return []
        count = pynvml.nvmlDeviceGetMaxMigDeviceCount(whole.handle)
    except pynvml.NVMLError:
        return []
    for index in range(count):
        try:
            handle = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(whole.handle, index)
            uuid, name = pynvml.nvmlDeviceGetUUID(handle), pynvml.nvmlDeviceGetName(handle)
        except pynvml.NVMLError:
            continue
        slices.append(NvmlDevice(whole.index, uuid, name, handle, whole.handle, True))
    return slices


def visible(listed: list[NvmlDevice], environment: Mapping[str, str] = os.environ) -> list[NvmlDevice]:
    """Return the devices that CUDA sees in this environment, in CUDA's order; without CUDA_VISIBLE_DEVICES all usable.

    As in CUDA, the list ends at the first entry that names no device. A number counts by PCI bus: so does CUDA if all
    GPUs are alike, and otherwise with CUDA_DEVICE_ORDER=PCI_BUS_ID.
    """
    setting = environment.get(VISIBLE)
    if setting is None:
        return _usable(listed)
    chosen = []
    for name in setting.split(","):
        device = _named(listed, name.strip())
        if device is None or device in chosen:
            break
        chosen.append(device)
    return chosen


def _usable(listed: list[NvmlDevice]) -> list[NvmlDevice]:
    """Return the slices of GPUs that are cut into slices, which run nothing else, and all other GPUs."""
    cut = {device.index for device in listed if device.is_slice}
    return [device for device in listed if device.is_slice or device.index not in cut]


def chosen(listed: list[NvmlDevice], names: list[str] | None) -> list[NvmlDevice]:
    """Return the devices named by index or (the beginning of a) UUID, else the visible devices.

    Raise UsageError for an unknown name.
    """
    if not names:
        return visible(listed)
    picked = []
    for name in names:
        device = _named(listed, name)
        if device is None:
            raise unknown(
                "device",
                name,
                [*(str(device.index) for device in _usable(listed)), *(device.uuid for device in listed)],
            )
        picked.append(device)
    return list(dict.fromkeys(picked))


def by_uuid(listed: Sequence[NvmlDevice], uuid: str) -> NvmlDevice | None:
    """Return the device of that UUID, in NVML's form or in CUDA's, which has neither prefix nor dashes."""
    return next((device for device in listed if _digits(device.uuid) == _digits(uuid)), None)


def _named(listed: Sequence[NvmlDevice], name: str) -> NvmlDevice | None:
    if re.fullmatch(r"\d+", name):
        return next((device for device in listed if not device.is_slice and device.index == int(name)), None)
    if not name.startswith(("GPU-", "MIG-")):
        return None
    return next((device for device in listed if device.uuid.startswith(name)), None)


def _digits(uuid: str) -> str:
    return re.sub(r"^(GPU|MIG)-|-", "", uuid).lower()


# Facts that distinguish boards of the same model.

_BOARD_FACTS: dict[str, Callable[[ModuleType, object], object]] = {
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
    """Return VBIOS, power limit (W), clocks as they are set (Hz) and host; unreadable facts are left out."""
    facts: BoardTable = {"host": host_digest()}
    with suppress(BackendUnavailable), opened() as pynvml:
        device = by_uuid(devices(pynvml), uuid)
        for name, read in _BOARD_FACTS.items() if device else ():
            with suppress(pynvml.NVMLError):
                facts[name] = read(pynvml, device.board if device else None)
    return facts

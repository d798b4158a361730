"""NVML: opened and closed, its calls and errors, and the devices that it lists."""

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
from prism_bench.record.identity import BoardTable, host_digest

# NVML opened and closed, and its errors in words: what a device does not offer, and when it is gone.

_WITHOUT = "runs go on without it, their measurements then carry no evidence"


class DeviceLost(Exception):
    """The device, its driver or the library stopped answering; the words say why."""


def library() -> ModuleType:
    """Return pynvml with NVML opened; close it with `close`. BackendUnavailable names what is missing."""
    try:
        import pynvml
    except ImportError as error:
        raise BackendUnavailable(f"nvidia-ml-py is not installed ({error}); {_WITHOUT}") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise BackendUnavailable(f"NVML does not answer: {_said(error)}; {_WITHOUT}") from None
    return pynvml


def close(pynvml: ModuleType) -> None:
    """Shut NVML down; a library that is gone already needs no farewell."""
    try:
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return


@contextmanager
def opened() -> Iterator:
    """Yield pynvml in a `with` block."""
    pynvml = library()
    try:
        yield pynvml
    finally:
        close(pynvml)


def why_missing(pynvml: ModuleType, error: Any) -> str:
    """Return why a quantity is null; raise DeviceLost for an error after which nothing can be read."""
    if error.value in _gone(pynvml):
        raise DeviceLost(_said(error)) from None
    return {
        pynvml.NVML_ERROR_NOT_SUPPORTED: "this device does not offer it",
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "this driver's NVML is too old to offer it",
        pynvml.NVML_ERROR_NO_PERMISSION: "no permission to read it",
    }.get(error.value, _said(error))


def _is_permanent(pynvml: ModuleType, error: Any) -> bool:
    """Whether asking again will give the same answer."""
    return error.value in (
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
    )


def _gone(pynvml: ModuleType) -> tuple[int, ...]:
    return (
        pynvml.NVML_ERROR_GPU_IS_LOST,
        pynvml.NVML_ERROR_RESET_REQUIRED,
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    )


def _said(error: Any) -> str:
    """NVML's own words, which carry a full stop in places."""
    return str(error).rstrip(".")


# One call into the driver: which quantities it reads, how often, and what it costs.

_NEVER = float("inf")
_KEPT = 20


@dataclass(frozen=True)
class CallCost:
    """What `calls` calls of one kind took: seconds of one core and of the clock, medians of the last ones."""

    calls: int
    cpu: float
    wall: float


@dataclass
class Call:
    """Quantities that one call reads every `period` seconds, and what it last gave.

    A call that would take more than `share` of a core that way is made less often, but every `longest` seconds. Without
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
        """Whether its time has come."""
        return now >= self._due

    def is_older(self, since: float) -> bool:
        """Whether it was read last before `since`, and can be read."""
        return self._last < since and self._due < _NEVER

    def make(self, pynvml: ModuleType, now: float) -> None:
        """Read at `now`; DeviceLost where the device does not answer any more."""
        wall, cpu = perf_counter(), thread_time()
        forever = self._asked(pynvml)
        self._costs.append((thread_time() - cpu, perf_counter() - wall))
        self._count += 1
        pause = self.period
        if self.share is not None:
            pause = max(pause, min(self.cost().cpu / self.share, self.longest))
        self._last, self._due = now, _NEVER if forever else now + pause

    def cost(self) -> CallCost:
        """Return what it has taken so far."""
        cpu, wall = (median(one) for one in zip(*self._costs, strict=True)) if self._costs else (0.0, 0.0)
        return CallCost(self._count, cpu, wall)

    def _asked(self, pynvml: ModuleType) -> bool:
        """Whether the answer, a refusal, will always be the same."""
        try:
            found = self.read()
        except pynvml.NVMLError as error:
            self.values, self.missing = {}, dict.fromkeys(self.names, why_missing(pynvml, error))
            return _is_permanent(pynvml, error)
        self.values = {name: value for name, value in found.items() if not isinstance(value, str)}
        self.missing = {name: value for name, value in found.items() if isinstance(value, str)}
        return False


# The GPU that this process may use, where it was given one of several.

VISIBLE = "CUDA_VISIBLE_DEVICES"


def cache_of_gpu(name: str) -> str:
    """Return the name of a cache of what was timed on the GPU that this process was given, or of any GPU without one.

    Boards of a fleet on one host neither wait for each other nor forget what another one has chosen.
    """
    gpu = os.environ.get(VISIBLE)
    return f"{name}-{path_part(gpu)}" if gpu else name


# The devices: which there are, which CUDA sees here, and which one is meant.


@dataclass(frozen=True)
class NvmlDevice:
    """A GPU or a MIG slice of one. `index` counts as nvidia-smi does, by PCI bus; a slice has its GPU's.

    `board` is the handle of the whole GPU, whose clocks, power and temperature a slice shares.
    """

    index: int
    uuid: str
    name: str
    handle: object = field(compare=False)
    board: object = field(compare=False)
    is_slice: bool = False


def devices(pynvml: ModuleType) -> list[NvmlDevice]:
    """Every GPU, each followed by its MIG slices; one that does not answer any more is left out.

    BackendUnavailable where NVML itself does not answer.
    """
    try:
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        raise BackendUnavailable(f"NVML does not list its devices: {error}") from None
    found = []
    for index in range(count):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid, name = pynvml.nvmlDeviceGetUUID(handle), pynvml.nvmlDeviceGetName(handle)
            whole = NvmlDevice(index, uuid, name, handle, handle)
        except pynvml.NVMLError:
            continue
        found += [whole, *_slices(pynvml, whole)]
    return found


def _slices(pynvml: ModuleType, whole: NvmlDevice) -> list[NvmlDevice]:
    found = []
    try:
        if not pynvml.nvmlDeviceGetMigMode(whole.handle)[0]:
            return []
        places = pynvml.nvmlDeviceGetMaxMigDeviceCount(whole.handle)
    except pynvml.NVMLError:
        return []
    for place in range(places):
        try:
            handle = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(whole.handle, place)
            uuid, name = pynvml.nvmlDeviceGetUUID(handle), pynvml.nvmlDeviceGetName(handle)
        except pynvml.NVMLError:
            continue
        found.append(NvmlDevice(whole.index, uuid, name, handle, whole.handle, True))
    return found


def visible(found: list[NvmlDevice], environment: Mapping[str, str] = os.environ) -> list[NvmlDevice]:
    """Those that CUDA sees in this environment, in CUDA's order; without CUDA_VISIBLE_DEVICES all of them.

    As CUDA does, the list ends at the first entry that names nothing. A number counts by PCI bus: so does CUDA where
    all GPUs are alike, and elsewhere with CUDA_DEVICE_ORDER=PCI_BUS_ID.
    """
    words = environment.get(VISIBLE)
    if words is None:
        return _usable(found)
    chosen = []
    for word in words.split(","):
        one = _named(found, word.strip())
        if one is None or one in chosen:
            break
        chosen.append(one)
    return chosen


def _usable(found: list[NvmlDevice]) -> list[NvmlDevice]:
    """GPUs, and the slices of those that are cut into slices, on which nothing else runs."""
    cut = {one.index for one in found if one.is_slice}
    return [one for one in found if one.is_slice or one.index not in cut]


def chosen(found: list[NvmlDevice], words: list[str] | None) -> list[NvmlDevice]:
    """Return the devices named by index or (the beginning of a) UUID, else the visible ones.

    A UsageError for a word that names none.
    """
    if not words:
        return visible(found)
    picked = []
    for word in words:
        one = _named(found, word)
        if one is None:
            raise unknown("device", word, [*(str(one.index) for one in _usable(found)), *(one.uuid for one in found)])
        picked.append(one)
    return list(dict.fromkeys(picked))


def by_uuid(found: Sequence[NvmlDevice], uuid: str) -> NvmlDevice | None:
    """Return the device of that UUID, whether it is written as NVML does or as CUDA does, without prefix and dashes."""
    return next((one for one in found if _digits(one.uuid) == _digits(uuid)), None)


def _named(found: Sequence[NvmlDevice], word: str) -> NvmlDevice | None:
    if re.fullmatch(r"\d+", word):
        return next((one for one in found if not one.is_slice and one.index == int(word)), None)
    if not word.startswith(("GPU-", "MIG-")):
        return None
    return next((one for one in found if one.uuid.startswith(word)), None)


def _digits(uuid: str) -> str:
    return re.sub(r"^(GPU|MIG)-|-", "", uuid).lower()


# What sets a board apart from others of its kind, as far as NVML reads it.

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
    with suppress(BackendUnavailable), opened() as pynvml:
        return {"host": host_digest(), **dict(_facts(pynvml, uuid))}
    return {"host": host_digest()}


def _facts(pynvml: ModuleType, uuid: str) -> Iterator[tuple[str, object]]:
    """Yield what this board and this driver offer."""
    device = by_uuid(devices(pynvml), uuid)
    for name, read in _READ.items() if device else ():
        with suppress(pynvml.NVMLError):
            yield name, read(pynvml, device.board if device else None)

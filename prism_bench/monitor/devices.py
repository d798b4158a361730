"""The devices: which there are, which CUDA sees here, and which one is meant."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

from prism_bench.errors import BackendUnavailable, unknown
from prism_bench.monitor.visible_gpu import VISIBLE


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
        return usable(found)
    chosen = []
    for word in words.split(","):
        one = _named(found, word.strip())
        if one is None or one in chosen:
            break
        chosen.append(one)
    return chosen


def usable(found: list[NvmlDevice]) -> list[NvmlDevice]:
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
            raise unknown("device", word, [*(str(one.index) for one in usable(found)), *(one.uuid for one in found)])
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

"""Other processes on the device.

NVML reports process ids of the host. If our own id is in the list, the rest are others. In a container it is not, and
nobody can know which of those that existed from the start is ours: `ours` is None for them. Later ones are others in
any case, because a measuring process starts no other.
"""

import os
import time
from collections.abc import Set
from pathlib import Path
from types import ModuleType
from typing import Any

from prism_bench.monitor.nvml import why_missing
from prism_bench.monitor.reading import Process


def family() -> frozenset[int]:
    """Return this process and its ancestors: a run's own processes, whoever started them."""
    found, pid = set(), os.getpid()
    while pid > 1 and pid not in found:
        found.add(pid)
        pid = _parent(pid)
    return frozenset(found)


def _parent(pid: int) -> int:
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
        return int(after_name.split()[1])
    except (OSError, ValueError, IndexError):
        return os.getppid() if pid == os.getpid() else 0


class Processes:
    """The processes with compute contexts on one device, looked at again and again; `ours` are ids of our own."""

    def __init__(self, pynvml: ModuleType, handle: Any, ours: frozenset[int] = frozenset()) -> None:
        self._pynvml, self._handle, self._ours = pynvml, handle, ours
        self._first: frozenset[int] | None = None
        self._since = _microseconds()

    def read(self) -> tuple[Process, ...] | str:
        """Who is there, and who has worked since the last look; or why that is not known."""
        try:
            listed = self._pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        except self._pynvml.NVMLError as error:
            return why_missing(self._pynvml, error)
        pids = frozenset(one.pid for one in listed)
        if self._first is None:
            self._first = pids
        busy = _busy(self._pynvml, self._handle, self._since) if listed else None
        self._since = _microseconds()
        return tuple(self._process(one, pids, busy) for one in listed)

    def _process(self, one: Any, pids: Set[int], busy: Set[int] | None) -> Process:
        ours = one.pid in self._ours
        if self._ours and not self._ours & pids:
            ours = None if one.pid in self._first else False
        working = None if busy is None else one.pid in busy
        return Process(one.pid, _name(self._pynvml, one.pid), one.usedGpuMemory, ours, working)


def _microseconds() -> int:
    return time.time_ns() // 1000


def _busy(pynvml: ModuleType, handle: Any, since: int) -> set[int] | None:
    """Return the ids that worked on the device since then; None where the driver does not say."""
    try:
        samples = pynvml.nvmlDeviceGetProcessUtilization(handle, since)
    except pynvml.NVMLError as error:
        if error.value in (pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND):  # nobody has worked since
            return set()
        why_missing(pynvml, error)
        return None
    return {one.pid for one in samples if one.smUtil or one.memUtil}


def _name(pynvml: ModuleType, pid: int) -> str:
    """Without its folder: a path may say more than it should."""
    try:
        return Path(pynvml.nvmlSystemGetProcessName(pid).split(" ")[0]).name or "a process"
    except (pynvml.NVMLError, UnicodeDecodeError):
        return "a process"

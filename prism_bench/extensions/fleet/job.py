"""Jobs of a fleet's workers: one at a time on a GPU, in its cores, with events on the way and an end when asked.

What measures is a child of the worker, so that a fault or a hang costs one case, and the worker stays as it was.
"""

import os
import platform
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from getpass import getuser
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir
from typing import Any, TypedDict

from prism_bench.errors import BackendUnavailable
from prism_bench.io.files import lock, path_part
from prism_bench.monitor.devices import VISIBLE, devices, visible
from prism_bench.monitor.nvml import opened

TOPIC = "prism-bench-fleet"
_stopped: set[str] = set()  # names of runs that were ended: their jobs end at the next event


class JobOrder(TypedDict):
    """What a worker does: `call` is `module:function`, which gets the `work` and the job's channel.

    `run` is the name of the run and `number` that of the job in it; `gpu` and `cores` are the claim of the worker.
    """

    run: str
    number: int
    call: str
    gpu: str | None
    cores: list[int]
    work: dict[str, Any]


class JobStopped(Exception):
    """The run that the job belongs to was ended."""


class JobChannel:
    """Events from a job to the run; each call ends the job where the run was ended."""

    def __init__(self, order: JobOrder, write: Callable[[str, dict[str, Any]], object]) -> None:
        self._order, self._write = order, write

    def send(self, event: Mapping[str, Any]) -> None:
        """Send an event; JobStopped where nobody wants the job any more."""
        if self._order["run"] in _stopped:
            raise JobStopped(self._order["run"])
        self._write(f"{TOPIC}-{self._order['run']}", {"number": self._order["number"], **event})


def carry_out(order: JobOrder) -> None:
    """Carry the order out in this worker of the fleet; send what its function returns as `result`.

    Dask would keep a returned value in the worker, and who fetches it from a worker that was lost since waits for ever.
    """
    from distributed import get_worker

    module, _, name = order["call"].partition(":")
    channel = JobChannel(order, get_worker().log_event)
    with _alone_on(order["gpu"]), _within(order["cores"]):
        channel.send({"result": getattr(import_module(module), name)(order["work"], channel)})


def stop(run: str) -> None:
    """Let every job of the run end at its next event."""
    _stopped.add(run)


def look(dask_worker: Any) -> dict[str, Any]:
    """Return what this worker is and sees: host, GPUs in CUDA's order and cores."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = sorted(affinity(0)) if affinity else list(range(os.cpu_count() or 1))
    return {"host": platform.node(), "name": str(dask_worker.name), "gpus": _gpus(), "cores": cores}


def _gpus() -> list[str]:
    try:
        with opened() as nvml:
            return [device.uuid for device in visible(devices(nvml))]
    except BackendUnavailable:
        return []


@contextmanager
def _alone_on(gpu: str | None) -> Generator[None]:
    """Let children see this GPU alone, and wait until no other fleet of this user measures on it."""
    if gpu is None:
        yield
        return
    os.environ[VISIBLE] = gpu
    path = Path(gettempdir()) / f"prism-bench-{getuser()}-{path_part(gpu)}.lock"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR)
    try:
        lock(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _within(cores: list[int]) -> Generator[None]:
    """Let this thread, and the children that it starts, run on these cores alone."""
    if not cores or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before.intersection(cores) or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)

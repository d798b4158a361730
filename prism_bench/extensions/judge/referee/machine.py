"""State of the machine before and after a stranger's kernel, and quarantine of devices that are not as they were."""

import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.judge.referee.messages import FactsAnswer
from prism_bench.io.files import cache_folder, lock, writable_cache, write_atomically
from prism_bench.monitor.devices import by_uuid, devices
from prism_bench.monitor.nvml import DeviceLost, opened
from prism_bench.monitor.probe import Probe
from prism_bench.monitor.reading import DeviceReading
from prism_bench.units import bytes_text, time_text

COUNTERS = ("ecc_uncorrected", "ecc_corrected", "rows_remapped")
SETTINGS = ("max_sm_clock", "memory_total")
MEMORY_BYTES = 256 << 20  # which the driver may take for itself meanwhile
SLOWER = 1.5  # times that an empty kernel may take longer than before
SLOWER_SECONDS = 5e-6
SETTLING_READINGS, SETTLING_SECONDS = 20, 0.25  # contexts are listed later than their memory is taken, and end likewise


@dataclass(frozen=True)
class MachineState:
    """A device between two kernels: NVML's `values`, and what canary kernels of a fresh process did.

    `unowned` are the bytes of memory in use that no process holds, with old drivers what these reserve among them, and
    it `lists_processes` where it names some: in a container it may name none whatever runs. `lost` is why the device
    does not answer.
    """

    values: Mapping[str, float] = field(default_factory=dict[str, float])
    unowned: float = 0.0
    lists_processes: bool = True
    canary: int = 0
    overhead: float = 0.0
    lost: str = ""

    def complaints(self, before: "MachineState") -> list[str]:
        """Return in words how the device differs from what it was before."""
        if self.lost:
            return [f"the device does not answer: {self.lost}"]
        found: list[str] = []
        for name, now in self.values.items():
            then, words = before.values.get(name, now), name.replace("_", " ")
            if name in COUNTERS and now > then:
                found.append(f"{words} rose from {then:.0f} to {now:.0f}")
            if name in SETTINGS and now != then:
                found.append(f"{words} is {now:.4g}, it was {then:.4g}")
        if self.lists_processes and self.unowned - before.unowned > MEMORY_BYTES:
            found.append(f"{bytes_text(int(self.unowned - before.unowned))} of its memory are held by no process")
        if self.canary != before.canary:
            found.append("a kernel of known outcome has another one")
        if self.overhead > before.overhead * SLOWER + SLOWER_SECONDS:
            found.append(f"an empty kernel takes {time_text(self.overhead)}, it took {time_text(before.overhead)}")
        return found


def machine_state(facts: FactsAnswer) -> MachineState:
    """Return the state of a device, of which a fresh runner has reported the facts and ended."""
    try:
        with opened() as nvml:
            device = by_uuid(devices(nvml), facts.uuid)
            if device is None:
                return MachineState(canary=facts.canary, overhead=facts.overhead)
            reading = _settled(Probe(nvml, device))
            listed = bool(reading.processes)
            return MachineState(dict(reading.values), _unowned(reading), listed, facts.canary, facts.overhead)
    except BackendUnavailable:
        return MachineState(canary=facts.canary, overhead=facts.overhead)
    except DeviceLost as error:
        return MachineState(lost=str(error))


def _settled(probe: Probe) -> DeviceReading:
    """Return the first reading in which processes hold the memory in use, the last one where none shows that.

    Drivers that count what they reserve as used (`monitor.probe`) show none: the last reading counts there.
    """
    reading = probe.read(time.perf_counter())
    for _ in range(SETTLING_READINGS):
        if not reading.processes or _unowned(reading) <= MEMORY_BYTES:
            break
        time.sleep(SETTLING_SECONDS)
        reading = probe.read(time.perf_counter())
    return reading


def _unowned(reading: DeviceReading) -> float:
    """Return the memory in use that no process holds: on a shared machine others come and go with theirs.

    0 where the memory of one is not known.
    """
    sizes = [one.memory for one in reading.processes or ()]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return 0.0
    return max(0.0, reading.values.get("memory_used", 0.0) - sum(known))


@contextmanager
def device_turn(uuid: str) -> Iterator[None]:
    """Wait until no other judgement of this user works on the device, and keep them waiting meanwhile.

    Who waits is next: a judgement that takes one turn after the other has to wait behind it.
    """
    folder = writable_cache("turns")
    with _file_of(uuid, folder).open("a") as file:
        with _file_of(f"{uuid}-next", folder).open("a") as following:
            lock(following.fileno())
            lock(file.fileno())
        yield


def quarantine_file(uuid: str) -> Path:
    """Return the file that keeps a device from being used by the judge; deleting it releases the device."""
    return _file_of(uuid, cache_folder("quarantine"))


def _file_of(uuid: str, folder: Path) -> Path:
    name = uuid if re.fullmatch(r"[\w-]{1,80}", uuid) else hashlib.sha256(uuid.encode()).hexdigest()[:16]
    return folder / f"{name}.txt"


def quarantine(uuid: str, words: str) -> Path:
    """Keep a device from being used by the judge, with the reason; return the file."""
    path = quarantine_file(uuid)
    write_atomically(path, f"{words}\n".encode())
    return path


def refuse_quarantined(uuid: str) -> None:
    """Raise BackendUnavailable, with the reason, where a device is in quarantine."""
    path = quarantine_file(uuid)
    if path.is_file():
        words = path.read_text(errors="replace").strip()
        raise BackendUnavailable(f"the device is in quarantine: {words}; delete {path} once it has been reset")

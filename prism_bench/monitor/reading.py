"""One look at one device."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    """What was read `at` a moment of `time.perf_counter`, the samples' own clock.

    `values` by quantity (`quantities.py`), in SI units. What is read more rarely than the rest keeps its last
    value. `missing` has the reason why a quantity is null. `processes` is None where they are not known.
    """

    at: float
    values: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    processes: tuple[Process, ...] | None = None
    events: tuple[str, ...] = ()

"""One call into the driver: which quantities it reads, how often, and what it costs."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, thread_time
from types import ModuleType

from prism_bench.monitor.nvml import is_permanent, why_missing

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
            return is_permanent(pynvml, error)
        self.values = {name: value for name, value in found.items() if not isinstance(value, str)}
        self.missing = {name: value for name, value in found.items() if isinstance(value, str)}
        return False

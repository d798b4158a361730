"""How the executor serves, and what it tells of trouble."""

from dataclasses import dataclass
from pathlib import Path

from prism_bench.errors import UsageError, unknown
from prism_bench.extensions.persistent.program import CHAINS

LAUNCHES, PERSISTENT = "launches", "persistent"
FORMS = (PERSISTENT, LAUNCHES)


@dataclass(frozen=True)
class Settings:
    """How many items may wait (2, 4, 8 ...), how long one may take, how long `submit` waits for a slot (seconds), the
    form in which items are served: `persistent`, or `launches` of the same kernels; and the `source` of the queue
    kernel, in which `virtual_grid.cuh` stands before all kernels that are served.
    """

    slots: int = 64
    timeout: float = 5.0
    patience: float = 1.0
    form: str = PERSISTENT
    source: Path = CHAINS

    def __post_init__(self):
        if self.form not in FORMS:
            raise unknown("form", self.form, FORMS)
        if min(self.timeout, self.patience) <= 0:
            raise UsageError(f"timeout ({self.timeout}) and patience ({self.patience}) are seconds above 0")


@dataclass(frozen=True)
class Incident:
    """Something that the watchdog had to act on: what it saw, the item that was given up (its ticket and name, None
    where nothing was under way), and how many others were asked for anew.
    """

    reason: str
    item: tuple[int, str] | None
    moved: int

"""Settings of the executor, and what it reports about faults."""

from dataclasses import dataclass
from pathlib import Path

from prism_bench.errors import UsageError, unknown
from prism_bench.extensions.persistent.program import CHAINS

LAUNCHES, PERSISTENT = "launches", "persistent"
FORMS = (PERSISTENT, LAUNCHES)


@dataclass(frozen=True)
class QueueSettings:
    """How the executor serves.

    `slots` items may wait (2, 4, 8 ...), one may take `timeout` seconds, and `submit` waits `patience` seconds for a
    slot. `form` is `persistent`, or `launches` of the same kernels. `source` is that of the queue kernel, in which
    `virtual_grid.cuh` precedes all kernels that are served.
    """

    slots: int = 64
    timeout: float = 5.0
    patience: float = 1.0
    form: str = PERSISTENT
    source: Path = CHAINS

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise unknown("form", self.form, FORMS)
        if min(self.timeout, self.patience) <= 0:
            raise UsageError(f"timeout ({self.timeout}) and patience ({self.patience}) are seconds above 0")


@dataclass(frozen=True)
class Incident:
    """Something that the watchdog acted on.

    The `reason`, the `item` that was given up (its ticket and name, None where nothing was under way), and how many
    others were submitted again.
    """

    reason: str
    item: tuple[int, str] | None
    moved: int

"""One call of `scripts/claims`: the folder of claims, the catalogue, the machine, and the time that is left."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from prism_bench.backends import Backend
from prism_bench.catalogue import Catalogue
from prism_bench.extensions.claims.making import PROCESSES, ClaimMeasurement
from prism_bench.record.identity import machine


@dataclass(frozen=True)
class OwnRun:
    """The claims of a folder on this machine; `limit` is after how many seconds nothing more begins."""

    folder: Path
    catalogue: Catalogue
    backend: Backend
    processes: int = PROCESSES
    limit: float = float("inf")
    _began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until nothing more begins."""
        return self.limit - (time.monotonic() - self._began)

    @property
    def machine(self) -> str:
        """The folder of this machine's claims."""
        return machine(self.backend.facts())["id"]

    @property
    def uuid(self) -> str:
        """The UUID of the board; empty on a CPU."""
        return str(self.backend.facts().get("uuid") or "")

    @property
    def measurement(self) -> ClaimMeasurement:
        """The measurement of sides here."""
        return ClaimMeasurement(self.backend.name, self.processes)

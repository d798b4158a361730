"""The persistent executor: chains served from a queue by one kernel that stays on the device."""

from prism_bench.persistent.executor import Executor
from prism_bench.persistent.pending import Pending
from prism_bench.persistent.settings import FORMS, LAUNCHES, PERSISTENT, Incident, Settings

__all__ = ["FORMS", "LAUNCHES", "PERSISTENT", "Executor", "Incident", "Pending", "Settings"]

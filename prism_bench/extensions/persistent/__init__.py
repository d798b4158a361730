"""The persistent executor: chains served from a queue by one kernel that stays on the device."""

from prism_bench.extension import Extension
from prism_bench.extensions.persistent.executor import Executor
from prism_bench.extensions.persistent.pending import Pending
from prism_bench.extensions.persistent.settings import FORMS, LAUNCHES, PERSISTENT, Incident, QueueSettings

__all__ = [
    "EXTENSION", "FORMS", "LAUNCHES", "PERSISTENT", "Executor", "Incident", "Pending", "QueueSettings",
]  # fmt: skip

EXTENSION = Extension("persistent")

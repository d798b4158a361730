"""The persistent executor: chains served from a queue by one kernel that stays on the device.

Specs of kernels that serve such a queue import its layout from here: `DESK_WORDS`, `QueueStage`, `message`, `requests`
and `table`. Each name is loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from prism_bench.extension import Extension

if TYPE_CHECKING:
    from prism_bench.extensions.persistent.executor import (
        FORMS,
        LAUNCHES,
        PERSISTENT,
        Executor,
        Incident,
        Pending,
        QueueSettings,
    )
    from prism_bench.extensions.persistent.queue import DESK_WORDS, QueueStage, message, requests, table

_HOMES = {
    "executor": ("FORMS", "LAUNCHES", "PERSISTENT", "Executor", "Incident", "Pending", "QueueSettings"),
    "queue": ("DESK_WORDS", "QueueStage", "message", "requests", "table"),
}
_HOME = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}

__all__ = [
    "DESK_WORDS", "EXTENSION", "FORMS", "LAUNCHES", "PERSISTENT", "Executor", "Incident", "Pending", "QueueSettings",
    "QueueStage", "message", "requests", "table",
]  # fmt: skip

EXTENSION = Extension("persistent")


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(_HOME[name]), name)
    return globals()[name]

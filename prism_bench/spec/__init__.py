"""Nouns of a spec: kernel, workload, arguments, launch, inputs, tolerance, tuning, budget, peer, case.

Spec files, forms in other languages and Python that kernels share import the names listed here from
`prism_bench.spec`, and the rest from `prism_bench`: the modules behind the names may move. Each name is loaded on
first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prism_bench.spec.arguments import Array
    from prism_bench.spec.case import Device
    from prism_bench.spec.dtypes import PRECISIONS, UNIT_ROUNDOFF, packed, unpacked, widened
    from prism_bench.spec.inputs import (
        ONE_BY_ONE,
        AnyArray,
        ArrayModule,
        Domain,
        Fill,
        Runs,
        as_drawn,
        interval,
        nonnegative,
        positive,
        real,
        whole,
    )
    from prism_bench.spec.peer import LIBRARIES, Peer
    from prism_bench.spec.tolerance import Tolerance

_HOMES = {
    "spec.arguments": ("Array",),
    "spec.case": ("Device",),
    "spec.dtypes": ("PRECISIONS", "UNIT_ROUNDOFF", "packed", "unpacked", "widened"),
    "spec.inputs": (
        "ONE_BY_ONE", "AnyArray", "ArrayModule", "Domain", "Fill", "Runs", "as_drawn", "interval", "nonnegative",
        "positive", "real", "whole",
    ),
    "spec.peer": ("LIBRARIES", "Peer"),
    "spec.tolerance": ("Tolerance",),
}  # fmt: skip
_HOME = {name: f"prism_bench.{home}" for home, names in _HOMES.items() for name in names}

__all__ = [
    "LIBRARIES",
    "ONE_BY_ONE",
    "PRECISIONS",
    "UNIT_ROUNDOFF",
    "AnyArray",
    "Array",
    "ArrayModule",
    "Device",
    "Domain",
    "Fill",
    "Peer",
    "Runs",
    "Tolerance",
    "as_drawn",
    "interval",
    "nonnegative",
    "packed",
    "positive",
    "real",
    "unpacked",
    "whole",
    "widened",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(_HOME[name]), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
